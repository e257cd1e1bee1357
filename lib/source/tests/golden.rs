//! Rendered diagnostics: reads each file of `golden/`, and compares the rendered result with the `.txt` beside it.

use std::{fs, path::Path};

use golden::Golden;
use source::{Colour, Diagnostics, Fields, Node, Scalar, Text, Value, draw, read_toml, read_yaml};

#[test]
fn pictures_are_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut golden = Golden::default();
    for file in golden::files(&folder, &["yaml", "toml"]) {
        let drawn = picture(&file);
        assert!(!drawn.is_empty(), "{}: nothing to tell", file.display());
        golden.compare(&file.with_extension(format!("{}.txt", extension(&file))), &drawn);
    }
    golden.finish(10);
}

fn extension(file: &Path) -> &str {
    file.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn picture(file: &Path) -> String {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let text = Text::new(name, fs::read_to_string(file).expect("a golden file can be read"));
    let found = Diagnostics::new(&text);
    let documents = if extension(file) == "toml" {
        let (document, mistakes) = read_toml(&text);
        found.extend(mistakes);
        Vec::from_iter(document)
    } else {
        let (documents, mistakes) = read_yaml(&text);
        found.extend(mistakes);
        documents
    };
    for document in &documents {
        point_inside(document, &found);
        if name.starts_with("config") {
            configuration(document, &found);
        }
    }
    draw(&found.into_vec(), Colour::Never)
}

/// Points at the word HERE in every scalar, like a language inside strings that reports its own errors.
fn point_inside(node: &Node, found: &Diagnostics) {
    let point = |scalar: &Scalar| {
        if let Some(at) = scalar.text.find("HERE") {
            let span = scalar.span_of(at..at + "HERE".len());
            found.push(found.warning(span, format!("{:?}", scalar.style)).label("here"));
        }
    };
    match &node.value {
        Value::Scalar(scalar) => point(scalar),
        Value::Sequence(items) => items.iter().for_each(|item| point_inside(item, found)),
        Value::Table(entries) => entries.iter().for_each(|entry| point_inside(&entry.value, found)),
    }
}

fn configuration(document: &Node, found: &Diagnostics) -> Option<()> {
    let mut root = Fields::of(document, "the configuration", found)?;
    if let Some(mut postgres) = root.table("postgres") {
        postgres.string("host");
        postgres.integer("port", 1..=u16::MAX);
        postgres.string("password");
        postgres.boolean("ssl");
        postgres.require("dbname");
        postgres.finish();
    }
    if let Some(mut telemetry) = root.table("telemetry") {
        let exporters = telemetry.table("exporters").map(|mut fields| fields.rest());
        exporters.into_iter().flatten().for_each(|(_, item)| {
            if let Some(mut exporter) = item.fields() {
                exporter.number("sampling", 0.0..=100.0);
                exporter.duration("interval");
                exporter.choice("transport", &[("grpc", 1), ("http", 2)]);
                exporter.list("headers").into_iter().flatten().for_each(|header| {
                    header.string();
                });
                exporter.finish();
            }
        });
        telemetry.finish();
    }
    root.finish();
    Some(())
}
