//! Configuration files as data: each gives the plan or the picture beside it.

use std::{fs, path::Path};

use golden::Golden;
use server::config::{self, Environment};
use source::{Colour, Text};

#[test]
fn every_file_gives_its_configuration_or_all_its_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config");
    let mut golden = Golden::default();
    for path in golden::files(&folder, &["yaml", "toml"]) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let text = Text::new(name, fs::read_to_string(&path).expect("a file"));
        let read = config::read(&text, &Environment::default());
        let drawn = source::draw(&read.diagnostics, Colour::Never);
        let found = match read.config {
            Some(config) => format!("{drawn}{config:#?}\n"),
            None => drawn,
        };
        golden.compare(&folder.join(format!("{name}.txt")), &found);
    }
    golden.finish(8);
}

#[test]
fn the_schema_is_the_one_that_editors_get() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let schema = serde_json::to_string_pretty(&config::schema()).expect("JSON");
    let mut golden = Golden::default();
    golden.compare(&docs.join("quality-trace-config.schema.json"), &format!("{schema}\n"));
    golden.finish(1);
}

#[test]
fn no_two_keys_or_flags_share_a_variable() {
    let shared = telemetry::config::shared_names(&[telemetry::config::KEYS, config::KEYS]);
    assert!(shared.is_empty(), "{shared:?}");
    for flag in config::FLAGS {
        let keys = telemetry::config::KEYS.iter().chain(config::KEYS);
        let named = keys
            .filter(|key| !key.path.contains('*'))
            .find(|key| telemetry::config::environment_name(config::PREFIX, key.path) == **flag);
        assert_eq!(named, None, "{flag}");
    }
}

#[test]
fn the_environment_overrules_the_file_and_its_mistakes_are_shown_there() {
    let text =
        Text::new("config.yaml", "server: {httpPort: 1}\npostgres: {password: \"${PASS:-x}\"}\n");
    let environment = Environment::from_iter([
        ("QUALITYTRACE_SERVER_HTTPPORT", "4000"),
        ("PASS", "secret"),
        ("QUALITYTRACE_PORT_443_TCP", "injected"),
    ]);
    let read = config::read(&text, &environment);
    let config = read.config.expect("nothing is wrong");
    assert_eq!((config.listen.http.port(), config.postgres.password.expose()), (4000, "secret"));
    assert!(read.notices[0].contains("QUALITYTRACE_PORT_443_TCP"), "{:?}", read.notices);

    let environment = Environment::from_iter([("QUALITYTRACE_SERVER_HTTPPORT", "70000")]);
    let read = config::read(&text, &environment);
    let drawn = source::draw(&read.diagnostics, Colour::Never);
    assert!(read.config.is_none() && drawn.contains("environment:1:"), "{drawn}");
    assert!(drawn.contains("QUALITYTRACE_SERVER_HTTPPORT=70000"), "{drawn}");
}
