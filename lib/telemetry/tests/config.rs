//! Configuration files as test data: each is compared with the plan or the rendered diagnostics beside it. A `.env`
//! beside a file contains its environment.

use std::{fs, path::Path};

use golden::Golden;
use proptest::prelude::*;
use source::{Colour, Fields, Text};
use telemetry::{
    config::{self, Defaults, Environment, KEYS, Key, Kind, Overlay},
    plan::Plan,
};

/// Keys of a fictional caller.
const CALLERS: &[Key] = &[
    Key::new("server.httpPort", Kind::Integer { min: 1, max: 65535 }, "80", ""),
    Key::new("server.verbose", Kind::Boolean, "false", ""),
    Key::new("database.password", Kind::Secret, "", ""),
    Key::new("database.host", Kind::Text, "localhost", ""),
];

/// The result of reading a file.
struct Read {
    plan: Plan,
    is_usable: bool,
    notices: Vec<String>,
    drawn: String,
}

fn read(name: &str, content: &str, environment: Environment) -> Read {
    let text = Text::new(name, content);
    let (root, mistakes) = source::read_one(&text);
    let keys = [KEYS, CALLERS];
    let overlay =
        Overlay { prefix: "APP", keys: &keys, environment: &environment, taken: &["APP_CONFIG"] };
    let overlaid = overlay.apply(&text, root);
    let found = overlaid.found(mistakes);
    let defaults = Defaults {
        service_name: "program".to_owned(),
        directory: environment.get("DIRECTORY").map(Into::into),
        own_directory: Some("own".into()),
        environment,
    };
    let mut plan = Plan::default();
    if let Some(mut root) = Fields::of(&overlaid.root, "the configuration", &found) {
        plan = config::read(&mut root, &defaults, &found);
        let mut server = root.section("server");
        server.integer("httpPort", 1..=u16::MAX);
        server.boolean("verbose");
        server.finish();
        let mut database = root.section("database");
        database.string("password");
        database.string("host");
        database.finish();
        root.finish();
    }
    let is_usable = !found.has_errors();
    let drawn = source::draw(&found.into_vec(), Colour::Never);
    Read { plan, is_usable, notices: overlaid.notices, drawn }
}

fn lines(variables: &str) -> Environment {
    variables.lines().filter_map(|line| line.split_once('=')).collect()
}

#[test]
fn every_file_gives_its_plan_or_all_its_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config");
    let mut golden = Golden::default();
    for path in golden::files(&folder, &["yaml", "toml"]) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let content = fs::read_to_string(&path).expect("a file");
        let variables = fs::read_to_string(folder.join(format!("{name}.env"))).unwrap_or_default();
        let read = read(name, &content, lines(&variables));
        let notices: String =
            read.notices.iter().map(|notice| format!("notice: {notice}\n")).collect();
        let plan = if read.is_usable { config::describe(&read.plan) } else { String::new() };
        golden.compare(
            &folder.join(format!("{name}.txt")),
            &format!("{}{notices}{plan}", read.drawn),
        );
    }
    golden.finish(20);
    for environment in golden::files(&folder, &["env"]) {
        assert!(environment.with_extension("").exists(), "no file is left for {environment:?}");
    }
}

#[test]
fn the_schema_is_what_is_checked_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config");
    let schema = config::schema(CALLERS, "an application");
    let mut golden = Golden::default();
    golden.compare(&folder.join("schema.json"), &format!("{schema:#}\n"));
    golden.finish(1);
}

/// Returns a value that a key accepts, other than its default.
fn sample(key: &Key) -> &'static str {
    match key.kind {
        Kind::Boolean if key.default == "true" => "false",
        Kind::Boolean => "true",
        Kind::Integer { .. } | Kind::Number { .. } => "50",
        Kind::Duration => "1500ms",
        Kind::Size => "3MiB",
        Kind::Words(words) if key.default == Key::REQUIRED || words[0] == "memory" => words[0],
        Kind::Words(words) => words[words.len() - 1],
        Kind::Headers => "x-header=secret",
        Kind::Text | Kind::Secret if key.path.contains(".endpoint") => "h:1",
        Kind::Text | Kind::Secret if key.path.ends_with("on-full") => "block-timeout(7s)",
        Kind::Text | Kind::Secret | Kind::List | Kind::Secrets => "words",
    }
}

#[test]
fn every_key_of_the_table_is_read_from_the_file_and_from_its_variable() {
    let least = "telemetry.exporters.n.exporter.type: collector\nmetrics.open-telemetry: {}\n\
                 tracer.n.type: open-telemetry\n";
    let unset = read("t.yaml", least, Environment::default());
    assert!(unset.is_usable, "{}", unset.drawn);
    // A certificate requires its key; a file sets both.
    let alone = |key: &&Key| !key.path.ends_with("certFile") && !key.path.ends_with("keyFile");
    for key in KEYS.iter().filter(alone) {
        let path = key.path.replace('*', "n");
        let name = config::environment_name("APP", &path);
        let by_variable = read("t.yaml", least, [(name, sample(key))].into_iter().collect());
        assert!(by_variable.is_usable && by_variable.notices.is_empty(), "{}", by_variable.drawn);
        if least.contains(&path) {
            continue;
        }
        let is_idle = path.ends_with(".path") || path.ends_with(".durability");
        assert!(is_idle || by_variable.plan != unset.plan, "{path} changes nothing");

        let value = match key.kind {
            Kind::Headers => "[\"x-header: secret\"]".to_owned(),
            Kind::Boolean | Kind::Number { .. } => sample(key).to_owned(),
            _ => format!("\"{}\"", sample(key)),
        };
        let by_file = read("t.yaml", &format!("{least}{path}: {value}\n"), Environment::default());
        assert!(by_file.is_usable, "{path}\n{}", by_file.drawn);
        assert_eq!(by_file.plan, by_variable.plan, "{path}");
    }
}

#[test]
fn a_directory_makes_what_is_buffered_survive_the_process() {
    let file = "tracer: {a: {type: stdout}, b: {type: stdout, buffer: {directory: d, durability: memory}}}";
    let read = read("t.yaml", file, lines("DIRECTORY=/var"));
    let buffers: Vec<_> = read
        .plan
        .exporters
        .iter()
        .map(|exporter| format!("{:?} {:?}", exporter.buffer.directory, exporter.buffer.durability))
        .collect();
    assert_eq!(buffers, ["Some(\"/var\") Process", "Some(\"d\") Memory"]);
}

/// Generates the words of files: keys, values and separators.
fn words() -> impl Strategy<Value = String> {
    let keys: Vec<String> = KEYS
        .iter()
        .flat_map(|key| key.path.split('.').map(str::to_owned).chain([key.path.replace('*', "n")]))
        .collect();
    let values: Vec<&str> = vec![
        "true",
        "grpc",
        "http",
        "open-telemetry",
        "collector",
        "10s",
        "32MiB",
        "h:1",
        "https://h/v1/logs",
        "${A}",
        "${B:-x}",
        "${",
        "$${",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "\"a: b\"",
        "'",
        "é",
        "*",
        "&a ",
        "*a",
        "",
        "-1",
        "1e9",
        "block-timeout(1s)",
        "://@",
        "http://é@x",
        "[::1]:1",
    ];
    let piece = prop_oneof![
        4 => (prop::sample::select(keys), 0_usize..5).prop_map(|(key, depth)| format!("\n{}{key}: ", "  ".repeat(depth))),
        3 => prop::sample::select(values).prop_map(str::to_owned),
        1 => Just("\n      - ".to_owned()),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|words| words.concat())
}

proptest! {
    // A failure is reported with its input; a case worth keeping becomes a line in a table.
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_file_and_no_environment_panics(
        content in words(),
        key in prop::sample::select(KEYS),
        value in any::<String>(),
        otel in prop::sample::select(vec!["ENDPOINT", "HEADERS", "TIMEOUT", "PROTOCOL", "TRACES_ENDPOINT"]),
    ) {
        let environment: Environment = [
            (config::environment_name("APP", &key.path.replace('*', "n")), value.clone()),
            (format!("OTEL_EXPORTER_OTLP_{otel}"), value.clone()),
            ("OTEL_RESOURCE_ATTRIBUTES".to_owned(), value.clone()),
            ("A".to_owned(), value),
        ].into_iter().collect();
        for name in ["t.yaml", "t.toml"] {
            let read = read(name, &content, environment.clone());
            prop_assert!(!config::describe(&read.plan).is_empty());
        }
        let flat = format!("tracer.n.type: open-telemetry\n{content}");
        read("t.yaml", &flat, environment);
    }

    #[test]
    fn no_header_is_ever_shown(
        value in "[a-z:=,% ]{0,5}s3cr3t[é\u{1}a-z]{0,5}",
        form in prop::sample::select(vec![
            "headers: ['a: V']", "headers: ['V']", "headers: 'V'", "headers: {a: 'V'}", "headers: {'b c': 'V'}", "headers: {a: ['V']}",
            "headers: ['a: ${X}']", "headers: {a: '${X}'}", "heders: {a: 'V'}", "headers: [[['V']]]", "headers: ['é: V', 5]",
            "endpoint: 'http://V@h:1'", "endpoint: 'http://${X}@h:1'", "throttle: 5",
        ]),
        variable in prop::sample::select(vec!["APP_TRACER_N_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS", "X", "APP_DATABASE_PASSWORD"]),
    ) {
        let content = format!(
            "tracer: {{n: {{type: open-telemetry, {}, lossy: 5, level: x}}}}\n",
            form.replace('V', &value)
        );
        let read = read("t.yaml", &content, [(variable, value)].into_iter().collect());
        let shown = format!("{}{}{:?}{:?}", read.drawn, config::describe(&read.plan), read.plan, read.notices);
        prop_assert!(!shown.contains("s3cr3t"), "{content}{shown}");
    }
}

#[test]
fn a_plan_is_made_of_one_document() {
    let defaults = Defaults {
        service_name: "program".to_owned(),
        directory: None,
        own_directory: None,
        environment: Environment::default(),
    };
    let of = |name: &str, content: &str| config::plan(&Text::new(name, content), &defaults);
    let tracer = "tracer: {one: {type: open-telemetry}}\n";
    assert_eq!(of("a.yaml", tracer).expect("no mistakes").exporters[0].name, "tracer.one");
    let mistakes = of("a.yaml", &format!("{tracer}---\n{tracer}")).expect_err("two documents");
    assert_eq!(mistakes[0].message, "a configuration is one document");
    assert!(of("a.toml", tracer).is_err(), "the name tells the format");
}
