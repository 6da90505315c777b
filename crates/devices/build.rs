//! Lists `data/devices/*.toml`, so that a new device is one new file.

#![allow(clippy::disallowed_methods, reason = "a build script reads and writes files")]

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::var("CARGO_MANIFEST_DIR")?;
    let folder = Path::new(&root).join("../../data/devices").canonicalize()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            files.push(path);
        }
    }
    files.sort();
    let mut code = String::from("static FILES: &[(&str, &str)] = &[\n");
    for path in &files {
        let name =
            path.file_stem().and_then(|s| s.to_str()).ok_or("a device file's name is not text")?;
        writeln!(code, "    ({name:?}, include_str!({:?})),", path.display().to_string())?;
    }
    code.push_str("];\n");
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("catalogue.rs"), code)?;
    Ok(())
}
