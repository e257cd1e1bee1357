//! Documents beside what is made of them. A file that does not fit any more is shown as it should be.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use golden::Golden;
use lang::{Document, Plan, Seed, Vars, compile, plans, read, request};
use model::{Request, Timestamp};
use source::{Colour, Text, draw};

/// Each mistake of `err/*.yaml` is drawn as `err/*.txt` says, and nothing of it compiles by mistake.
#[test]
fn mistakes_are_pictures() {
    let mut golden = Golden::default();
    for file in files("err") {
        let (planned, found) = plans(&text(&file));
        let pictures = draw(&found, Colour::Never);
        assert!(pictures.contains("error: "), "{}: no mistake found", file.display());
        assert!(planned.is_empty(), "{}: a plan with a mistake", file.display());
        golden.compare(&file.with_extension("txt"), &pictures);
    }
    golden.finish(150);
}

/// What `ok/*.yaml` asks for, and what is worth a word in it, is in `ok/*.txt`.
#[test]
fn documents_that_are_right() {
    let mut golden = Golden::default();
    for file in files("ok") {
        let (documents, mut found) = read(&text(&file));
        let mut shown = String::new();
        for document in &documents {
            match document {
                Document::Test(test) => {
                    let (plan, mistakes) = compile(test);
                    found.extend(mistakes);
                    let Some(plan) = plan else { panic!("{}", draw(&found, Colour::Never)) };
                    shown.push_str(&show(&plan));
                }
                other => writeln!(shown, "{other:#?}").expect("a string"),
            }
        }
        assert!(!documents.is_empty(), "{}: nothing found", file.display());
        assert!(!found.iter().any(source::Diagnostic::is_error), "{}", file.display());
        shown.push_str(&draw(&found, Colour::Never));
        golden.compare(&file.with_extension("txt"), &shown);
    }
    golden.finish(50);
}

/// A document taken out of its file says the same, at the same places.
#[test]
fn a_document_stands_alone() {
    let mut seen = 0;
    for file in files("ok").into_iter().chain(files("err")) {
        let name = text(&file).name().to_owned();
        for document in read(&text(&file)).0 {
            let Document::Test(test) = document else { continue };
            let (alone, _) = read(&Text::new(&name, test.document()));
            let [Document::Test(alone)] = alone.as_slice() else { panic!("{}", test.document()) };
            let (first, second) = (compile(&test), compile(alone));
            let told = |found: &[source::Diagnostic]| draw(found, Colour::Never);
            assert_eq!(told(&first.1), told(&second.1));
            // The mistakes of other documents of the file are not among its own.
            assert!(first.0.is_none() || second.0.is_some(), "{}", test.document());
            seen += 1;
        }
        for planned in plans(&text(&file)).0 {
            let (alone, _) = plans(&Text::new(&name, &planned.document));
            let [alone] = alone.as_slice() else { panic!("{}", planned.document) };
            assert_eq!((&alone.plan.id, &alone.document), (&planned.plan.id, &planned.document));
        }
    }
    assert!(seen > 40, "{seen} tests");
}

#[test]
fn what_cannot_be_fired_names_its_place() {
    let variables = [("HOST", "/x"), ("BREAK", "a\nb"), ("FTP", "ftp://x")];
    let missing = "has no value: set it, or take it out of the test";
    let url = "is not complete: expected `http://` or `https://` and a host";
    let control = "its value holds a line break or another control character";
    let later = "cannot be fired by this version yet";
    for (given, expected) in [
        ("httpRequest: {url: \"http://x\", body: \"${env:HOME}\"}", String::new()),
        (
            "httpRequest: {url: \"http://x/${var:NOPE}\"}",
            format!("the variable `NOPE` at t.yaml:6:36 {missing}"),
        ),
        (
            "httpRequest: {url: \"http://x\", body: \"${var:HOME}\"}",
            format!("the variable `HOME` at t.yaml:6:45 {missing}"),
        ),
        ("httpRequest: {url: \"${var:HOST}\"}", format!("the URL at t.yaml:6:25 {url}")),
        ("httpRequest: {url: \"${var:FTP}\"}", format!("the URL at t.yaml:6:25 {url}")),
        (
            "httpRequest: {url: \"http://x\", headers: [{key: X Y, value: z}]}",
            "the header at t.yaml:6:52 cannot be sent: its name may hold letters, digits and `-` only"
                .to_owned(),
        ),
        (
            "httpRequest: {url: \"http://x\", headers: [{key: X, value: \"${var:BREAK}\"}]}",
            format!("the header at t.yaml:6:52 cannot be sent: {control}"),
        ),
        (
            "httpRequest: {url: \"http://x\", auth: {type: bearer, bearer: {token: \"${var:BREAK}\"}}}",
            format!("the header at t.yaml:6:74 cannot be sent: {control}"),
        ),
        (
            "httpRequest: {url: \"http://x\", body: ./x.json}",
            format!("a trigger with a file as its body at t.yaml:6:42 {later}"),
        ),
        (
            "tls: {caFile: ./ca.pem}\n    httpRequest: {url: \"http://x\"}",
            format!("a trigger with `tls` at t.yaml:6:5 {later}"),
        ),
    ] {
        let yaml =
            format!("type: Test\nspec:\n  name: x\n  trigger:\n    type: http\n    {given}\n");
        let (planned, found) = plans(&Text::new("t.yaml", yaml));
        let [planned] = planned.as_slice() else { panic!("{}", draw(&found, Colour::Never)) };
        let fired = request(&planned.plan, &vars(&variables), &seed());
        assert_eq!(fired.err().map_or(String::new(), |e| e.to_string()), expected, "{given}");
    }
}

/// What can be seen of a plan from outside.
fn show(plan: &Plan) -> String {
    let settle = plan.settle();
    let mut shown = format!("{} `{}`\n", plan.id, plan.name);
    let mut line = |what: &str, value: String| {
        if !value.is_empty() {
            writeln!(shown, "{what}: {value}").expect("a string");
        }
    };
    line("tags", plan.tags.join(", "));
    line("settle", format!("timeout {:?}, flush {:?}", settle.timeout, settle.flush));
    line("expected", plan.expected().join(" | "));
    line("absent", plan.absent().join(", "));
    line("polling profile", plan.polling_profile().map(|p| format!("{p:?}")).unwrap_or_default());
    line("skip trace", plan.skip_trace_collection().to_string());
    for file in plan.files() {
        let at = &file.place;
        line("file", format!("{} named at {}:{}", file.path, at.line, at.column));
    }
    let vars = vars(&[("NAME", "meowth")]);
    match request(plan, &vars, &seed()) {
        Ok(Request::Http(request)) => line("request", format!("{request:#?}")),
        Err(error) => line("request", error.to_string()),
    }
    shown
}

fn vars(variables: &[(&str, &str)]) -> Vars {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Vars {
        variables: variables.iter().map(owned).collect(),
        environment: [
            ("POKESHOP", "http://pokeshop.test"),
            ("TOKEN", "s3cr3t"),
            ("NAME", "no"),
            ("HOME", "/root"),
        ]
        .iter()
        .map(owned)
        .collect(),
        ..Vars::default()
    }
}

fn seed() -> Seed {
    Seed { now: Timestamp::from_nanos(1_700_000_000_000_000_000), random: [7; 32] }
}

fn text(file: &Path) -> Text {
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name in letters");
    Text::new(name, fs::read_to_string(file).expect("a case can be read"))
}

/// The documents of a golden folder, sorted.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    golden::files(&folder, &["yaml"])
}
