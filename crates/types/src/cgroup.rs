//! Names of control groups: paths below the root.

/// The path without slashes at its ends and doubled ones.
///
/// # Errors
/// A path that names the root, or walks (`.`, `..`). Groups form a tree by their paths alone, so a group
/// cannot be made its own ancestor in any other way.
pub fn path(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('/').filter(|p| !p.is_empty()).collect();
    if parts.is_empty() {
        return Err(format!("\"{text}\" is the root of all control groups"));
    }
    if let Some(walk) = parts.iter().find(|p| matches!(**p, "." | "..")) {
        return Err(format!(
            "\"{walk}\" in a control group's path: \"{text}\" would lead back to itself"
        ));
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn paths_are_trees() {
        assert_eq!(path("/a//b/"), Ok("a/b".into()));
        assert_eq!(path("a.b"), Ok("a.b".into()));
        for bad in ["", "/", "//"] {
            assert!(path(bad).unwrap_err().contains("root"), "{bad}");
        }
        for bad in ["a/../a", "..", "./a", "a/."] {
            assert!(path(bad).unwrap_err().contains("back to itself"), "{bad}");
        }
    }
}
