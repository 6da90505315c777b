//! Lists `data/kernels/*.toml`, so that adding a kernel profile is adding one file.

#![allow(clippy::disallowed_methods, reason = "a build script reads and writes files")]

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let dir = Path::new(&manifest).join("../../data/kernels");
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut files: Vec<_> = std::fs::read_dir(&dir)
        .expect("data/kernels exists")
        .map(|e| e.expect("a readable folder").path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    let mut out = String::from("pub(crate) static PROFILES: &[(&str, &str)] = &[\n");
    for f in files {
        println!("cargo::rerun-if-changed={}", f.display());
        let stem = f.file_stem().expect("a file name").to_string_lossy();
        let path = f.canonicalize().expect("an existing file");
        writeln!(out, "    ({stem:?}, include_str!({path:?})),").expect("writing to a string");
    }
    out.push_str("];\n");
    let target = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&target).join("profiles.rs"), out).expect("OUT_DIR is writable");
}
