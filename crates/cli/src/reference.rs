//! The pages of `docs/reference` that the program describes itself: commands, checks, keys, documents and the API.
//!
//! For tests only: a page that differs from the program fails, and `cargo xtask accept` takes the new one.

mod api;
mod commands;
mod doctor;
mod documented;
mod errors;
mod keys;
mod schema;
mod table;

use std::path::Path;

use golden::Golden;

/// The first lines of a page, below its title.
const MADE: &str =
    "<!-- Made from the program. A test compares; `cargo xtask accept` takes a new form. -->\n";

/// Every page, by the name of its file.
fn pages() -> [(&'static str, String); 7] {
    [
        ("commands.md", commands::page()),
        ("configuration.md", keys::configuration()),
        ("project-file.md", keys::project_file()),
        ("doctor.md", doctor::page()),
        ("documents.md", schema::documents()),
        ("api.md", api::page()),
        ("errors.md", errors::page()),
    ]
}

#[test]
fn the_reference_is_as_the_program_has_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let pages = pages();
    let mut golden = Golden::default();
    for (name, page) in &pages {
        golden.compare(&folder.join(name), page);
    }
    golden.finish_among_others();
}
