//! `hctxN/tags` and `sched_tags` in debugfs: the depth the driver really uses.

/// One tag set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// Tags allocated.
    pub nr_tags: u32,
    /// Tags in use now at most: what `nr_requests` under `none` sets.
    pub depth: u32,
    /// Tags taken.
    pub busy: u32,
}

/// Reads a tags file; `None` for the empty file of a queue without a scheduler.
#[must_use]
pub fn parse(text: &str) -> Option<Tags> {
    let mut tags = Tags::default();
    let mut in_bitmap = false;
    let mut seen = false;
    for line in text.lines() {
        in_bitmap |= line.trim() == "bitmap_tags:";
        let Some((key, value)) = line.trim().split_once('=') else { continue };
        let Ok(value) = value.parse::<u32>() else { continue };
        match key {
            "nr_tags" => (tags.nr_tags, seen) = (value, true),
            "depth" if in_bitmap => tags.depth = value,
            "busy" if in_bitmap => tags.busy = value,
            _ => {}
        }
        if line.trim() == "breserved_tags:" {
            break;
        }
    }
    seen.then_some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_a_real_file() {
        let text = "nr_tags=128\nnr_reserved_tags=0\nactive_queues=0\n\nbitmap_tags:\ndepth=16\n\
                    busy=0\ncleared=0\nbits_per_word=32\nmap_nr=4\n";
        assert_eq!(parse(text), Some(Tags { nr_tags: 128, depth: 16, busy: 0 }));
        assert_eq!(parse(""), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "([a-z_]{1,12}(=|:).{0,12}\n){0,12}") {
            let _ = parse(&text);
        }
    }
}
