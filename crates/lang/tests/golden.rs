//! Documents beside what is made of them. A file that does not fit any more is shown as it should be.

mod case;

use std::{
    fs,
    path::{Path, PathBuf},
};

use golden::Golden;
use lang::{Document, Planned, ResolveError, Vars, compile, plans, read, resolve};
use model::Request;
use source::{Colour, Text, draw};

/// Each mistake of `err/*.yaml` is drawn as `err/*.txt` says, and nothing of it compiles by mistake.
#[test]
fn mistakes_are_pictures() {
    let mut golden = Golden::default();
    for file in files("err", "yaml") {
        let (planned, pictures) = plan_all(&file);
        assert!(pictures.contains("error: "), "{}: no mistake found", file.display());
        assert!(planned.is_empty(), "{}: a plan with a mistake", file.display());
        golden.compare(&file.with_extension("txt"), &pictures);
    }
    golden.finish(20);
}

/// What `ok/*.yaml` asks for, and what is worth a word in it, is in `ok/*.txt`.
#[test]
fn documents_that_are_right() {
    let vars = Vars {
        variables: [("NAME", "meowth")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        environment: [("POKESHOP", "http://pokeshop.test"), ("TOKEN", "s3cr3t"), ("NAME", "no")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
    };
    let mut golden = Golden::default();
    for file in files("ok", "yaml") {
        let mut shown = String::new();
        let (planned, pictures) = plan_all(&file);
        assert!(!planned.is_empty(), "{pictures}");
        for Planned { plan, .. } in planned {
            let resolved = resolve(&plan, &vars).expect("all variables are there");
            let Request::Http(request) = resolved.request;
            let settle = plan.settle();
            shown.push_str(&format!(
                "{} `{}`\nskip trace: {}\nsettle: timeout {:?} flush {:?}\n{request:#?}\n",
                plan.id,
                plan.name,
                plan.skip_trace_collection(),
                settle.timeout,
                settle.flush,
            ));
        }
        shown.push_str(&pictures);
        golden.compare(&file.with_extension("txt"), &shown);
    }
    golden.finish(5);
}

/// A document taken out of its file says the same, at the same places.
#[test]
fn a_document_stands_alone() {
    for file in files("ok", "yaml").into_iter().chain(files("err", "yaml")) {
        for Document::Test(test) in read_all(&file) {
            let name = file.file_name().and_then(|name| name.to_str()).expect("a name in letters");
            let (alone, _) = read(&Text::new(name, test.document()));
            let [Document::Test(alone)] = alone.as_slice() else { panic!("{}", test.document()) };
            let (first, second) = (compile(&test), compile(alone));
            let told = |found: &[source::Diagnostic]| draw(found, Colour::Never);
            assert_eq!(told(&first.1), told(&second.1));
            // The mistakes of other documents of the file are not among its own.
            assert!(first.0.is_none() || second.0.is_some(), "{}", test.document());
        }
        for planned in plan_all(&file).0 {
            let name = text(&file).name().to_owned();
            let (alone, _) = plans(&Text::new(name, &planned.document));
            let [alone] = alone.as_slice() else { panic!("{}", planned.document) };
            assert_eq!((&alone.plan.id, &alone.document), (&planned.plan.id, &planned.document));
        }
    }
}

/// Each `judge/*.case` holds evidence, specs and the judgement that has to come of them.
#[test]
fn judgements() {
    let mut golden = Golden::default();
    for file in files("judge", "case") {
        let content = fs::read_to_string(&file).expect("a case can be read");
        let mut parts = content.splitn(3, "\n---\n");
        let (evidence, specs) =
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let judged = case::judge(evidence, specs);
        golden.compare(&file, &format!("{evidence}\n---\n{specs}\n---\n{judged}"));
    }
    golden.finish(25);
}

#[test]
fn what_cannot_be_resolved_names_its_place() {
    let request = |request: &str| {
        let yaml = format!(
            "type: Test\nspec:\n  name: x\n  trigger:\n    type: http\n    httpRequest: {request}\n"
        );
        let (documents, _) = read(&Text::new("t.yaml", yaml));
        let Document::Test(test) = &documents[0];
        let plan = compile(test).0.expect("the document is right");
        let vars = Vars {
            variables: [("HOST", "/x"), ("BREAK", "a\nb"), ("FTP", "ftp://x")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            environment: [("HOME", "/root")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        };
        resolve(&plan, &vars).map(drop).map_err(|error: ResolveError| error.to_string())
    };
    let header = |key: &str, value: &str| {
        format!("{{url: \"http://x\", headers: [{{key: \"{key}\", value: \"{value}\"}}]}}")
    };
    for (given, expected) in [
        ("{url: \"http://x\", body: \"${env:HOME}\"}".to_owned(), ""),
        (
            "{url: \"http://x/${var:NOPE}\"}".to_owned(),
            "the variable `NOPE` at t.yaml:6:34 has no value: set it, or take it out of the test",
        ),
        (
            "{url: \"http://x\", body: \"${var:HOME}\"}".to_owned(),
            "the variable `HOME` at t.yaml:6:43 has no value: set it, or take it out of the test",
        ),
        (
            "{url: \"${var:HOST}\"}".to_owned(),
            "the URL at t.yaml:6:25 is not complete: expected `http://` or `https://` and a host",
        ),
        (
            "{url: \"${var:FTP}\"}".to_owned(),
            "the URL at t.yaml:6:25 is not complete: expected `http://` or `https://` and a host",
        ),
        (
            header("X Y", "z"),
            "the header at t.yaml:6:53 cannot be sent: its name may hold letters, digits and `-` only",
        ),
        (
            header("X", "${var:BREAK}"),
            "the header at t.yaml:6:53 cannot be sent: its value holds a line break or another control character",
        ),
    ] {
        assert_eq!(request(&given).err().unwrap_or_default(), expected, "{given}");
    }
}

fn text(file: &Path) -> Text {
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name in letters");
    Text::new(name, fs::read_to_string(file).expect("a case can be read"))
}

fn read_all(file: &Path) -> Vec<Document> {
    read(&text(file)).0
}

/// The plans of a file, and everything that is said about it.
fn plan_all(file: &Path) -> (Vec<Planned>, String) {
    let (planned, found) = plans(&text(file));
    (planned, draw(&found, Colour::Never))
}

/// The files of a golden folder, sorted.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    golden::files(&folder, &[extension])
}
