//! "Did you mean …": the valid word nearest to a mistyped one.

/// The shortest candidate that begins with `word`, of two letters and more: who stops early has mistyped nothing. Else the
/// one with the smallest edit distance, unless all are too far away (more than a third of the word's length, at least two
/// edits).
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(2);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let lower = word.to_lowercase();
    let begins = |c: &&&str| c.to_lowercase().starts_with(&lower);
    if lower.chars().count() > 1
        && let Some(longer) = candidates.iter().filter(begins).min_by_key(|c| c.chars().count())
    {
        return Some(longer);
    }
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

    #[test]
    fn a_word_that_was_begun_is_finished() {
        let words = ["0r", "10r-rand", "10r-seq", "5r5w-seq"];
        assert_eq!(nearest("10r", words), Some("10r-seq"));
        assert_eq!(nearest("10R", words), Some("10r-seq"));
        assert_eq!(nearest("1", ["10r-seq"]), None, "a letter says nothing");
    }
}
