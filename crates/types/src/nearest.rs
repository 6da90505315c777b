//! "Did you mean …": the valid word nearest to a mistyped one.

/// The candidate with the smallest edit distance to `word`, unless all are too far away
/// (more than a third of the word's length, at least two edits).
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|c| (distance(word, c), c))
        .filter(|(d, c)| *d <= limit && *d < c.chars().count().max(1))
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// ` (did you mean "x"?)` or the empty string, ready to append to a message.
#[must_use]
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |c| format!("did you mean \"{c}\"?"))
}

/// Optimal string alignment distance of the first 64 letters, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|s| s.to_lowercase().chars().take(64).collect::<String>());
    strsim::osa_distance(&a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_a_near_word_only() {
        let words = ["mq-deadline", "deadline", "noop", "none"];
        assert_eq!(nearest("mq-dedline", words), Some("mq-deadline"));
        assert_eq!(nearest("nop", words), Some("noop"));
        assert_eq!(nearest("xyzzyplugh", words), None);
    }
}
