//! `queue/scheduler`: the names a kernel offers and the one in force.

/// The content of `queue/scheduler`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerList {
    /// All names, in the kernel's order.
    pub names: Vec<String>,
    /// The one in brackets; `None` when the file has no choice.
    pub current: Option<String>,
}

/// Reads `none [mq-deadline] kyber bfq`.
#[must_use]
pub fn parse(text: &str) -> SchedulerList {
    let mut list = SchedulerList::default();
    for word in text.split_whitespace() {
        let inner = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
        let name = inner.unwrap_or(word).to_string();
        if inner.is_some() && list.current.is_none() {
            list.current = Some(name.clone());
        }
        if !name.is_empty() {
            list.names.push(name);
        }
    }
    // Stacked devices of older kernels print a bare `none`.
    if list.current.is_none() && list.names.len() == 1 {
        list.current = list.names.first().cloned();
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_kernels_forms() {
        let l = parse("none mq-deadline kyber [bfq] \n");
        assert_eq!(l.current.as_deref(), Some("bfq"));
        assert_eq!(l.names, ["none", "mq-deadline", "kyber", "bfq"]);
        assert_eq!(parse("none").current.as_deref(), Some("none"));
        assert_eq!(parse("[none] mq-deadline adios").names[2], "adios");
        assert_eq!(parse(""), SchedulerList::default());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,80}") {
            let l = parse(&text);
            prop_assert!(l.current.is_none_or(|c| l.names.contains(&c)));
        }
    }
}
