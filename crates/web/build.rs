//! Packs `dist`, which `cargo xtask web` writes, into one table of files. Without it the program has a page that states how to
//! build it, so that `cargo build` never needs Node; with `QUALITYTRACE_WEB=required`, as in a release, the build fails instead.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo passes a build script its folders in the environment"
)]

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

/// The folder of hashed files, below `dist` and in URLs.
const ASSETS: &str = "assets";
/// The licences of the packages in the page, and their compressed copies: without a hash in the name.
const LICENCES: &str = "licences.txt";
/// The endings of compressed copies, with the field of the table that has them.
const COPIES: [(&str, &str); 2] = [("br", "brotli"), ("gz", "gzip")];

fn main() {
    println!("cargo::rerun-if-changed=dist");
    println!("cargo::rerun-if-changed=src/missing.html");
    println!("cargo::rerun-if-env-changed=QUALITYTRACE_WEB");
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let dist = root.join("dist");
    let index = dist.join("index.html");
    let is_built = index.is_file();
    if !is_built && env::var_os("QUALITYTRACE_WEB").is_some_and(|value| value == "required") {
        println!(
            "cargo::error=the web page is not built: run `cargo xtask web build`, or unset `QUALITYTRACE_WEB`"
        );
        return;
    }
    let index = if is_built { index } else { root.join("src/missing.html") };
    let mut files = if is_built { files(&dist.join(ASSETS)) } else { BTreeMap::new() };
    files.extend(self::files(&dist).into_iter().filter(|(name, _)| name.starts_with(LICENCES)));
    let table = table(&index, &files);
    let out = Path::new(&variable("OUT_DIR")).join("table.rs");
    if let Err(error) = fs::write(&out, table) {
        println!("cargo::error=`{}` cannot be written: {error}", out.display());
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Returns the files of a folder by name.
fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}

/// Returns the Rust code of the table.
fn table(index: &Path, files: &BTreeMap<String, PathBuf>) -> String {
    let is_copy =
        |name: &str| COPIES.iter().any(|(ending, _)| name.ends_with(&format!(".{ending}")));
    let rows = files.iter().filter(|(name, _)| !is_copy(name)).map(|(name, path)| {
        let copies = COPIES.map(|(ending, field)| match files.get(&format!("{name}.{ending}")) {
            Some(copy) => format!("{field}: Some(include_bytes!({copy:?}))"),
            None => format!("{field}: None"),
        });
        let copies = copies.join(", ");
        format!("    WebFile {{ name: {name:?}, plain: include_bytes!({path:?}), {copies} }},\n")
    });
    let rows: String = rows.collect();
    format!(
        "const INDEX: &str = include_str!({index:?});\nconst FILES: &[WebFile] = &[\n{rows}];\n"
    )
}
