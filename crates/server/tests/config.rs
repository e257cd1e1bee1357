//! Configuration files as data: each gives the plan or the picture beside it.

use std::{fs, path::Path};

use golden::Golden;
use server::config;
use source::{Colour, Text};

#[test]
fn every_file_gives_its_configuration_or_all_its_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config");
    let mut golden = Golden::default();
    for path in golden::files(&folder, &["yaml", "toml"]) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let text = Text::new(name, fs::read_to_string(&path).expect("a file"));
        let (config, diagnostics) = config::read(&text);
        let drawn = source::draw(&diagnostics, Colour::Never);
        let found = match config {
            Some(config) => format!("{drawn}{config:#?}\n"),
            None => drawn,
        };
        golden.compare(&folder.join(format!("{name}.txt")), &found);
    }
    golden.finish(8);
}
