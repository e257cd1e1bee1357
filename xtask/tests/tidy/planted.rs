//! Tests of each guard with a workspace that breaks its rule: the guard must reject it with this message.

use std::fs;

use crate::{
    FILE_LINES_MAX, circles, formats,
    guards::{self, Guard},
    search, sleeps, type_names, words,
    workspace::Workspace,
};

/// Checks a guard on a workspace of `crates/<name>`, each with these lines in its manifest, plus the files of `more`.
pub(crate) fn check(
    guard: Guard,
    crates: &[(&str, &str)],
    more: &[(&str, &str)],
    expected: &[&str],
) {
    let root = tempfile::tempdir().expect("a temporary folder");
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a file stands in a folder"))
            .expect("a new folder");
        fs::write(path, text).expect("a new file");
    };
    write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n");
    for (name, lines) in crates {
        let package = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n{lines}\n"
        );
        write(&format!("crates/{name}/Cargo.toml"), &package);
        write(&format!("crates/{name}/src/lib.rs"), "//! Planted.\n");
    }
    for (path, text) in more {
        write(path, text);
    }
    assert_eq!(guard(&Workspace::read(root.path())), expected);
}

#[test]
fn a_type_without_a_name_of_its_own() {
    let check = |text: &str, expected: &[&str]| {
        check(type_names::check, &[("db", "")], &[("crates/db/src/a.rs", text)], expected);
    };
    check(
        "struct Asked;\n",
        &["crates/db/src/a.rs:1: `Asked` is not a noun: name the type for the thing that it is"],
    );
    check(
        "\npub(crate) enum Kept<T> {}\n",
        &["crates/db/src/a.rs:2: `Kept` is not a noun: name the type for the thing that it is"],
    );
    check(
        "pub struct Row;\nmod x;\ntype Row<T> = T;\n",
        &["crates/db/src/a.rs:3: `Row` is the name of another type too, at crates/db/src/a.rs:1"],
    );
    check(
        "struct AskedQuestion;\nstruct Seed;\n// struct Told;\nimpl A {\n    type Held = u8;\n}\n",
        &[],
    );
    check("#[cfg(test)]\nmod tests {\n    struct Told;\n}\n", &[]);
}

#[test]
fn a_word_that_leads_elsewhere() {
    let check = |page: &str, expected: &[&str]| {
        let files = [
            ("CONTRIBUTING.md", page),
            ("crates/db/src/cache.rs", "struct CachedRow;\nfn read() {}\n"),
            ("crates/db/src/rows.rs", "// cache\nfn cache_rows() {}\n"),
            ("crates/db/src/names.rs", "fn cache() {}\nstruct NameCache;\n"),
            ("crates/db/src/kept.rs", "struct Known;\n"),
        ];
        check(search::check, &[("db", "")], &files, expected);
    };
    let page = |file: &str| {
        format!(
            "# A\n\n## Find your way by search\n\n| word | file |\n| --- | --- |\n| cache | `{file}` |\n"
        )
    };
    check("# A\n", &["CONTRIBUTING.md: no table of words under `## Find your way by search`"]);
    check(
        &page("crates/db/src/kept.rs"),
        &[
            "CONTRIBUTING.md: a search for `cache` does not lead to crates/db/src/kept.rs, but to: crates/db/src/cache.rs (4), \
           crates/db/src/names.rs (2), crates/db/src/rows.rs (1)",
        ],
    );
    check(&page("crates/db/src/names.rs"), &[]);
}

#[test]
fn a_circle_between_rooms() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        check(circles::check, &[("db", "")], files, expected);
    };
    let (inner, outer) = ("crates/db/src/inner/a.rs", "crates/db/src/outer/mod.rs");
    let complaint = "crates/db/src/: `inner` and `outer` import each other: crates/db/src/inner/a.rs names `outer`; \
                     and back: crates/db/src/outer/mod.rs names `inner`";
    check(
        &[(inner, "use crate::outer::B;\n"), (outer, "fn f(_: crate::inner::A) {}\n")],
        &[complaint],
    );
    check(
        &[(inner, "use super::super::{x, outer::{B, c}};\n"), (outer, "use super::inner;\n")],
        &[complaint],
    );
    let between = [
        (inner, "use crate::{db::D, between::C};\n"),
        ("crates/db/src/between.rs", "use crate::outer::B;\n"),
        (outer, "use crate::inner::A;\n"),
    ];
    check(
        &between,
        &[
            "crates/db/src/: `inner` and `outer` import each other: crates/db/src/inner/a.rs names `between`, \
           crates/db/src/between.rs names `outer`; and back: crates/db/src/outer/mod.rs names `inner`",
        ],
    );
    check(
        &[
            (inner, "use crate::outer::B;\n"),
            (outer, "// use crate::inner::A;\nuse super::Root;\n"),
        ],
        &[],
    );
    let tests = "#[cfg(test)]\nmod tests {\n    use crate::inner::A;\n}\n";
    check(&[(inner, "use crate::outer::B;\n"), (outer, tests)], &[]);
}

#[test]
fn a_format_that_another_crate_names() {
    let html = (
        "crates/report/src/html.rs",
        "pub(crate) const HTML: Format = Format {\n    ..Format::new(\n        \"html\", TEXT)\n};\n",
    );
    let check = |path: &str, text: &str, lines: &[usize]| {
        let complaint = |line| {
            format!(
                "{path}:{line}: names the format `html`: read a field of `Format`, or a default of `crates/report`"
            )
        };
        let expected: Vec<_> = lines.iter().map(complaint).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        check(formats::check, &[("report", ""), ("cli", "")], &[html, (path, text)], &expected);
    };
    let (source, test) = ("crates/cli/src/a.rs", "crates/cli/tests/a.rs");
    for path in [source, test] {
        check(path, "\nfn f(f: Format) -> bool {\n    f == Format::Html\n}\n", &[3]);
        check(path, "const F: F = report::Format::HTML;\n", &[1]);
        check(path, "use report::{Waterfall, html};\n", &[1]);
        check(path, "fn f() {\n    report::html::html();\n}\n", &[2]);
        check(path, "use report::FORMATS; // report::html\nuse super::report::html;\n", &[]);
        check(path, "fn f() {\n    AnswerFormat::Html\n}\n", &[]);
    }
    let named = "use report::Format;\n// \"html\"\nfn f() {\n    Format::parse(\"html\");\n}\n";
    check(source, named, &[4]);
    check(test, named, &[]);
    check(source, "use report::MutationReport;\nconst ENDING: &str = \"html\";\n", &[]);
    let in_tests =
        "use report::Format;\n\n#[cfg(test)]\nmod tests {\n    const F: &str = \"html\";\n}\n";
    check(source, in_tests, &[]);
    check("crates/report/tests/a.rs", "use report::html;\n", &[]);
}

#[test]
fn formats_that_the_guard_does_not_find() {
    let complaint = "crates/report: no format is built by `Format::new(`";
    check(formats::check, &[("report", "")], &[], &[complaint]);
}

#[test]
fn a_function_that_only_its_author_finds() {
    let check = |text: &str, expected: &[&str]| {
        check(words::functions, &[("db", "")], &[("crates/db/src/a.rs", text)], expected);
    };
    check(
        "fn fetch() {}\nfn masked() {}\n#[cfg(test)]\nmod tests {\n    fn it_is_told() {}\n}\n",
        &[],
    );
    let complaint =
        "crates/db/src/a.rs: `is_told` has `told`: write `reported`, `notified` or `configured`";
    check("pub(crate) async fn is_told<T>() {}\n", &[complaint]);
}

#[test]
fn a_word_that_only_its_author_finds() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        check(words::check, &[("db", "")], &[(path, text)], expected);
    };
    let code = "crates/db/src/a.rs";
    let told = "`told`: write `reported`, `notified` or `configured`";
    check(code, "// It is told.\n", &[&format!("{code}:1: {told}")]);
    check(code, "fn told() {}\n/// Calls `told`, or \"told\".\nlet a = 1; // told\n", &[]);
    check("docs/a.md", "A line.\n```\ntold\n```\nTold!\n", &[&format!("docs/a.md:5: {told}")]);
    check("docs/a.md", "[a page](what-is-told.md), \"told\" and `told`\n", &[]);
    check("CHANGELOG.md", "What was told before.\n", &[]);
}

#[test]
fn something_behind_the_tests() {
    let check = |text: &str, expected: &[&str]| {
        let file = ("crates/lang/src/read.rs", text);
        check(guards::tests_last, &[("lang", "")], &[file], expected);
    };
    let complaint = |line: u32| {
        format!(
            "crates/lang/src/read.rs:{line}: stands behind the end of `mod tests`, the first `}}` in column 1: move it up"
        )
    };
    let tests = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {\n    }\n}\n";
    check(tests, &[]);
    check(&format!("{tests}\nfn h() {{}}\n"), &[&complaint(9)]);
    check(&format!("{tests}}}\n"), &[&complaint(8)]);
    check("#[cfg(test)]\nmod tests {\n}\nfn h() {}\n", &[&complaint(4)]);
    check("#[cfg(test)]\nmod tests;\n\nfn h() {}\n", &[]);
}

#[test]
fn an_overlong_file() {
    let long = "// A line.\n".repeat(FILE_LINES_MAX + 1);
    let full = "// A line.\n".repeat(FILE_LINES_MAX) + "\n#[cfg(test)]\nmod tests {\n}\n";
    let check = |path: &str, text: &str, expected: &[&str]| {
        check(guards::lengths, &[("model", "")], &[(path, text)], expected);
    };
    let path = "crates/model/src/trace.rs";
    check(
        path,
        &long,
        &["crates/model/src/trace.rs: 501 lines, more than 500: split it by what it holds"],
    );
    check(path, full.trim_start(), &[]);
    let path = "crates/model/tests/trace.rs";
    check(
        path,
        &long,
        &["crates/model/tests/trace.rs: 501 lines, more than 500: split it by what it holds"],
    );
}

#[test]
fn an_empty_name() {
    let check = |path: &str, expected: &[&str]| {
        check(guards::names, &[("model", "")], &[(path, "")], expected);
    };
    let complaint = |path: &str, name: &str| {
        format!("{path}: `{name}` says nothing about what is inside: name it for what it holds")
    };
    for (path, name) in [
        ("crates/model/src/utils.rs", "utils"),
        ("crates/model/src/helpers/mod.rs", "helpers"),
        ("crates/model/tests/common/mod.rs", "common"),
    ] {
        check(path, &[&complaint(path, name)]);
    }
    check("crates/model/src/trace.rs", &[]);
}

#[test]
fn an_ignored_test() {
    let check = |attribute: &str, expected: &[&str]| {
        let text = format!("#[test]\n{attribute}\nfn slow() {{}}\n");
        check(
            guards::ignored,
            &[("model", "")],
            &[("crates/model/tests/slow.rs", &text)],
            expected,
        );
    };
    let complaint = "crates/model/tests/slow.rs:2: never runs: mend it or remove it";
    for attribute in [
        "#[ignore]",
        "    #[ignore = \"slow\"]",
        "#[cfg_attr(not(miri), ignore)]",
        "#[cfg_attr(\n    not(feature = \"slow\"),\n    ignore = \"slow\"\n)]",
        "#[cfg(any())]",
        "#[cfg(all(test, any()))]",
        "#[cfg(false)]",
    ] {
        check(attribute, &[complaint]);
    }
    check("#![cfg(any())]", &[complaint]);
    for attribute in [
        "#[should_panic]",
        "#[cfg_attr(miri, expect(clippy::ignored_unit_patterns))]",
        "#[cfg(any(unix, windows))]",
        "// #[ignore]",
    ] {
        check(attribute, &[]);
    }
}

#[test]
fn a_test_that_waits_for_time() {
    let check = |path: &str, text: &str, expected: &[u32]| {
        let complaint = |line: &u32| {
            format!(
                "{path}:{line}: sleeps: wait for a condition in a loop, or give the reason in a comment above"
            )
        };
        let expected: Vec<_> = expected.iter().map(complaint).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        check(sleeps::check, &[("db", "")], &[(path, text)], &expected);
    };
    let path = "crates/db/tests/a.rs";
    check(path, "fn f() {\n    sleep(SOON);\n}\n", &[2]);
    check(path, "fn f() {\n    tokio::time::sleep(SOON).await;\n    sleep(SOON);\n}\n", &[2, 3]);
    check(path, "fn f() {\n    while !g() {\n        h();\n    }\n    sleep(SOON);\n}\n", &[5]);
    check(path, "fn f() {\n    for _ in CASES {\n        sleep(SOON);\n    }\n}\n", &[3]);
    check(path, "fn f() {\n    // Far.\n\n\n\n    sleep(SOON);\n}\n", &[6]);
    check(path, "/// Of the function.\nfn f() {\n    sleep(SOON);\n}\n", &[3]);
    check(path, "fn f() {\n    g(\"// No comment.\");\n    sleep(SOON);\n}\n", &[3]);
    check(path, "fn f() {\n    // While nothing arrives.\n    sleep(SOON);\n}\n", &[]);
    check(path, "fn f() {\n    sleep(SOON); // While nothing arrives.\n}\n", &[]);
    check(path, "fn f() {\n    sleep_until(LATER);\n    g(\"sleep(1)\");\n}\n", &[]);
    check(path, "fn f() {\n    let it = loop {\n        sleep(SOON);\n    };\n}\n", &[]);
    let split = "fn f() {\n    while g()\n        || h()\n    {\n        if i() {\n            sleep(SOON);\n        }\n    }\n}\n";
    check(path, split, &[]);
    let paused = "#[tokio::test(start_paused = true)]\nasync fn f() {\n    sleep(SOON).await;\n}\n";
    check(path, paused, &[]);
    check(path, &format!("{paused}async fn g() {{\n    sleep(SOON).await;\n}}\n"), &[6]);
    let path = "crates/db/src/a.rs";
    let product = "fn f() {\n    sleep(SOON);\n}\n";
    check(path, product, &[]);
    let tests = format!(
        "{product}\n#[cfg(test)]\nmod tests {{\n    fn g() {{\n        sleep(SOON);\n    }}\n}}\n"
    );
    check(path, &tests, &[8]);
    check("crates/db/src/a/tests.rs", product, &[2]);
}

#[test]
fn a_crate_without_the_lints() {
    let check =
        |lines: &str, expected: &[&str]| check(guards::lints, &[("model", lines)], &[], expected);
    let complaint = "crates/model/Cargo.toml: add `[lints]` with `workspace = true`";
    check("", &[complaint]);
    check("[lints.rust]\nunsafe_code = \"forbid\"", &[complaint]);
}

#[test]
fn an_architecture_that_leaves_something_out() {
    let check = |text: &str, expected: &[&str]| {
        check(
            guards::architecture,
            &[("lang", ""), ("model", "")],
            &[("ARCHITECTURE.md", text)],
            expected,
        );
    };
    let lang = "### `lang`\n\nReads.\n\n**Boundary.** All.\n**Invariant.** No I/O.\n";
    let model = "### `crates/model`\n\nNouns.\n\n**Boundary.** All.\n";
    check(
        &format!("# Architecture\n\n{lang}"),
        &["ARCHITECTURE.md: no section is headed `crates/model`"],
    );
    check(
        &format!("# Architecture\n\n{lang}\n{model}\n## Elsewhere\n\n**Invariant.** Of another.\n"),
        &["ARCHITECTURE.md: the section `crates/model` has no **Invariant.**"],
    );
    check(&format!("# Architecture\n\n{lang}\n{model}**Invariant.** No clock.\n"), &[]);
}

#[test]
fn an_architecture_of_what_is_not_there() {
    let text = "# Architecture\n\n`src/lib.rs` has `Planted`, `GONE` and `gone`.\n`src/gone.rs` has `Gone`, `ib.rs` nothing.\n";
    let more = [("ARCHITECTURE.md", text), ("crates/model/src/a.rs", "struct Planted;\n")];
    let complaints =
        ["src/gone.rs", "Gone", "ib.rs"].map(|it| format!("ARCHITECTURE.md:4: there is no `{it}`"));
    let complaints = complaints.each_ref().map(String::as_str);
    check(guards::architecture_names, &[("model", "")], &more, &complaints);
}

#[test]
fn no_architecture_at_all() {
    let complaint = "ARCHITECTURE.md: is missing; it has a section for each crate";
    check(guards::architecture, &[("model", "")], &[], &[complaint]);
}
