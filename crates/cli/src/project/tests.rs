//! The project file, from its text.

use std::{fs, path::Path};

use clap::CommandFactory;
use source::{Colour, Text};

use super::{
    FILE, KEYS, ProjectKey, ProjectReading, ProjectValue, keys::Destination, locate, read,
};

const COMPLETE: &str = r#"
tests = ["tests", "more/a.yaml"]

[system]
command = ["npm", "start"]
ready = "http://127.0.0.1:3000/healthz"
ready-timeout = "30s"

[run]
jobs = 2
retries = 0
timeout = "10s"
otlp = ["127.0.0.1:4317"]
report = ["pretty", "junit=target/out.xml", "json=-"]
vars = ["vars/local.yaml"]

[server]
url = "https://quality.example.com"
project = "shop"
ca = "ca.pem"

[profile.ci.run]
retries = 2

[profile.bare.system]
command = []
"#;

const DESTINATIONS: [Destination; 3] =
    [Destination::Here, Destination::Named, Destination::Default];

fn values(text: &str, profile: Option<&str>) -> Result<Vec<ProjectValue>, String> {
    let text = Text::new(FILE, text);
    let ProjectReading { values, diagnostics, .. } = read(&text, Path::new(".."), profile);
    match source::draw(&diagnostics, Colour::Never) {
        drawn if drawn.is_empty() => Ok(values),
        drawn => Err(drawn),
    }
}

fn found(values: &[ProjectValue], name: &str) -> (String, Option<String>) {
    let value = values.iter().find(|it| it.key.full_name() == name).expect("it has a value");
    (value.texts.join(" "), value.profile.clone())
}

#[test]
fn every_key_is_read_as_it_would_be_typed() {
    let all = values(COMPLETE, None).expect("no mistakes");
    assert_eq!(all.len(), KEYS.len(), "each key");
    assert!(KEYS.len() <= 20);
    for (name, expected) in [
        ("tests", "../tests ../more/a.yaml"),
        ("system.command", "npm start"),
        ("run.jobs", "2"),
        ("run.report", "pretty junit=../target/out.xml json=-"),
        ("server.ca", "../ca.pem"),
    ] {
        assert_eq!(found(&all, name), (expected.to_owned(), None));
    }
    let ci = values(COMPLETE, Some("ci")).expect("no mistakes");
    assert_eq!(found(&ci, "run.retries"), ("2".to_owned(), Some("ci".to_owned())));
    assert_eq!(found(&ci, "run.jobs"), ("2".to_owned(), None));
    let bare = values(COMPLETE, Some("bare")).expect("no mistakes");
    assert_eq!(found(&bare, "system.command").0, "");
    let unknown = values(COMPLETE, Some("cj")).expect_err("no such profile");
    assert!(unknown.contains("no profile `cj`") && unknown.contains("`ci`"), "{unknown}");
}

#[test]
fn a_mistake_in_every_key_shows_its_line() {
    let cases = [
        ("", "tests = \"tests\""),
        ("", "tests = [\"../other\"]"),
        ("", "tests = [\"/etc\"]"),
        ("system", "command = \"npm start\""),
        ("system", "ready = \"ftp://x\""),
        ("system", "ready-timeout = \"soon\""),
        ("run", "jobs = 0"),
        ("run", "retries = -1"),
        ("run", "timeout = 5"),
        ("run", "otlp = [\"localhost\"]"),
        ("run", "report = [\"junitt\"]"),
        ("run", "report = [\"junit=/etc/passwd\"]"),
        ("run", "vars = [\"a/../../b\"]"),
        ("server", "url = \"quality.example.com\""),
        ("server", "project = \"a b\""),
        ("server", "ca = \"../ca.pem\""),
        ("run", "retrys = 1"),
        ("servers", "url = \"x\""),
    ];
    let is_of = |key: &ProjectKey, section: &str, line: &str| {
        section == key.section && line.starts_with(&format!("{} = ", key.name))
    };
    for key in KEYS {
        let has_case = cases.iter().any(|(section, line)| is_of(key, section, line));
        assert!(has_case, "{}", key.full_name());
    }
    for (section, line) in cases {
        for prefix in ["", "profile.ci"] {
            let parts: Vec<_> = [prefix, section].into_iter().filter(|it| !it.is_empty()).collect();
            let table = parts.join(".");
            let head = if table.is_empty() { String::new() } else { format!("[{table}]") };
            let drawn = values(&format!("\n\n{head}\n{line}\n"), None).expect_err(line);
            let place = if section == "servers" { 3 } else { 4 };
            let is_placed = drawn.contains(&format!("{FILE}:{place}:"));
            assert!(is_placed, "{line}: {drawn}");
        }
    }
    let meant = values("[run]\nretrys = 1\n", None).expect_err("a mistake");
    assert!(meant.contains("`retries`"), "{meant}");
}

#[test]
fn the_file_is_found_up_to_the_root_of_the_repository() {
    let folder = tempfile::tempdir().expect("a folder");
    let within = folder.path().join("repository/a/b");
    fs::create_dir_all(&within).expect("made");
    let write = |at: &str| fs::write(folder.path().join(at).join(FILE), "").expect("written");
    write("");
    assert_eq!(locate(&within), None, "without a repository only the folder itself");
    fs::create_dir(folder.path().join("repository/.git")).expect("made");
    assert_eq!(locate(&within), None, "not above the repository");
    write("repository");
    let root = folder.path().join("repository");
    assert_eq!(locate(&within), Some((root.as_path(), "../..".into())));
    write("repository/a");
    assert_eq!(locate(&within).map(|it| it.1), Some("..".into()), "the nearest");
}

#[test]
fn every_key_is_a_flag() {
    let program = crate::args::Args::command();
    for key in KEYS {
        let mut commands = vec![(Vec::new(), &program)];
        let mut holders = 0;
        while let Some((path, command)) = commands.pop() {
            for below in command.get_subcommands() {
                commands.push(([&path[..], &[below.get_name()]].concat(), below));
            }
            let has = command.get_arguments().any(|arg| arg.get_id() == key.flag);
            holders += usize::from(has && DESTINATIONS.iter().any(|it| key.is_of(&path, *it)));
        }
        assert!(holders > 0, "{}", key.full_name());
    }
}
