//! Workspaces with a crate that names what it may not.

use crate::{guards, planted::check};

#[test]
fn a_forbidden_edge() {
    let check =
        |crates: &[(&str, &str)], expected: &[&str]| check(guards::floors, crates, &[], expected);
    let up = "[dependencies]\nlang = { path = \"../lang\" }";
    check(&[("model", up), ("lang", "")], &["`model` may not depend on `lang`"]);
    check(&[("report", up), ("lang", "")], &["`report` may not depend on `lang`"]);
    check(&[("runner", up), ("lang", "")], &[]);
    let build = "[build-dependencies]\nlang = { path = \"../lang\" }";
    check(&[("model", build), ("lang", "")], &["`model` may not depend on `lang`"]);
    let renamed = "[dependencies]\nwords = { path = \"../lang\", package = \"lang\" }";
    check(&[("model", renamed), ("lang", "")], &["`model` may not depend on `lang`"]);
    let only_tests = "[dev-dependencies]\nlang = { path = \"../lang\" }";
    check(&[("report", only_tests), ("lang", "")], &[]);
    check(&[("attic", "")], &["`attic` has no floor: give it a line in `xtask/tests/tidy.rs`"]);
}

#[test]
fn a_foreign_world_named_by_a_stranger() {
    let check = |name: &str, foreign: &str, expected: &[&str]| {
        let lines = format!("[dependencies]\n{foreign} = \"1\"");
        check(guards::owners, &[(name, &lines)], &[], expected);
    };
    check("server", "sqlx", &["`server` names `sqlx`, which only `db` may"]);
    check("server", "async-nats", &["`server` names `async-nats`, which only `bus` may"]);
    check("drivers", "axum", &["`drivers` names `axum`, which only `server` may"]);
    check(
        "cli",
        "opentelemetry_sdk",
        &["`cli` names `opentelemetry_sdk`, which only `qualitytrace-telemetry` may"],
    );
    check(
        "server",
        "opentelemetry-otlp",
        &["`server` names `opentelemetry-otlp`, which only `bench` may"],
    );
    check("server", "clap", &["`server` names `clap`, which only `cli` and `xtask` may"]);
    for (name, foreign) in [
        ("db", "sqlx"),
        ("bus", "async-nats"),
        ("cli", "clap"),
        ("qualitytrace-telemetry", "opentelemetry_sdk"),
        ("bench", "opentelemetry-otlp"),
        ("bench", "sqlx"),
        ("bench", "clap"),
    ] {
        check(name, foreign, &[]);
    }
}

#[test]
fn a_client_of_its_own() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        check(guards::wire, &[("drivers", ""), ("cli", "")], &[(path, text)], expected);
    };
    let uses = "use hyper::client::conn::http1;\n";
    check("crates/drivers/src/receiver/http.rs", uses, &[]);
    check("crates/cli/tests/run.rs", uses, &[]);
    check(
        "crates/cli/src/a.rs",
        "// `hyper` is not used.\n#[cfg(test)]\nmod tests {\n    use hyper::A;\n}\n",
        &[],
    );
    let complaint = |path: &str, name: &str| {
        format!("{path}: `{name}` belongs into `lib/net` or into a listener")
    };
    let path = "crates/drivers/src/trigger/http.rs";
    check(path, uses, &[&complaint(path, "hyper")]);
    let path = "crates/cli/src/remote.rs";
    check(path, "fn a() -> tokio_rustls::TlsConnector {}\n", &[&complaint(path, "tokio_rustls")]);
}

#[test]
fn a_store_outside_of_its_driver() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        check(guards::stores, &[("drivers", ""), ("cli", "")], &[(path, text)], expected);
    };
    let names = "const KIND: &str = \"zipkin\";\n";
    check("crates/drivers/src/store/zipkin/mod.rs", names, &[]);
    check("crates/cli/tests/stores.rs", names, &[]);
    check("crates/cli/src/a.rs", "// Zipkin, zipkin.\n", &[]);
    let complaint = "crates/cli/src/a.rs: `zipkin` is a trace store: what depends on it belongs into its driver";
    check("crates/cli/src/a.rs", names, &[complaint]);
}

#[test]
fn an_impure_crate_on_a_pure_floor() {
    let check = |name: &str, foreign: &str, expected: &[&str]| {
        let lines = format!("[dependencies]\n{foreign} = \"1\"");
        check(guards::pure_manifests, &[(name, &lines)], &[], expected);
    };
    let complaint = |name: &str, foreign: &str| {
        format!(
            "`{name}` is pure and may not name `{foreign}`: one that never waits, reads or calls may be added to \
             `PURE` in `xtask/tests/tidy.rs`"
        )
    };
    for (name, foreign) in [
        ("model", "tokio"),
        ("lang", "mio"),
        ("qualitytrace-source", "serde"),
        ("report", "axum"),
        ("otlp", "tonic"),
    ] {
        check(name, foreign, &[&complaint(name, foreign)]);
    }
    check("lang", "serde_json", &[]);
    check("runner", "tokio", &[]);
}

#[test]
fn a_pure_floor_may_name_the_floor_below() {
    let down = "[dependencies]\nmodel = { path = \"../model\" }";
    check(guards::pure_manifests, &[("lang", down), ("model", "")], &[], &[]);
    let build = "[build-dependencies]\ncc = \"1\"";
    let complaint = "`model` is pure and may not name `cc`: one that never waits, reads or calls may be added to \
                     `PURE` in `xtask/tests/tidy.rs`";
    check(guards::pure_manifests, &[("model", build)], &[], &[complaint]);
}

#[test]
fn a_system_call_on_a_pure_floor() {
    let check = |text: &str, expected: &[&str]| {
        check(
            guards::pure_sources,
            &[("lang", "")],
            &[("crates/lang/src/read.rs", text)],
            expected,
        );
    };
    let complaint =
        |found: &str| format!("crates/lang/src/read.rs: `lang` is pure and may not use `{found}`");
    check("use std::fs;\n", &[&complaint("std::fs")]);
    check(
        "use std::{\n    collections::{BTreeMap, btree_map::Entry},\n    net,\n};\n",
        &[&complaint("std::net")],
    );
    check("fn f() -> bool {\n    std::env::args().count() > 1\n}\n", &[&complaint("std::env")]);
    check("async fn f() {}\n", &[&complaint("async fn")]);
    check("use std::time::{Duration, SystemTime};\n", &[&complaint("SystemTime")]);
    check(
        "// std::fs is not for us, nor is async fn.\nuse std::{fmt, time::Duration};\nfn process() {}\n",
        &[],
    );
    check("const U: &str = \"https://x\"; use std::fs;\n", &[&complaint("std::fs")]);
    check("const U: &str = \"std::fs, async fn\";\n", &[]);
    check("use std as s;\n", &[&complaint("std as ")]);
    check("use std::{self as s};\n", &[&complaint("std::self")]);
    check("use std::*;\n", &[&complaint("std::*")]);
    check("use std::io::stdin;\n", &[&complaint("std::io")]);
    check("use {std::{fmt, os}};\n", &[&complaint("std::os")]);
    check("fn f() {\n    jiff::Timestamp::now();\n}\n", &[&complaint("::now(")]);
    check("fn f() {}\n\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n", &[]);
    check("#[cfg(test)]\nmod tests;\n\nuse std::fs;\n", &[&complaint("std::fs")]);
    check("#[cfg(test)]\nmod tests {}\n\nuse std::fs;\n", &[&complaint("std::fs")]);
    check("#[cfg(test)]\nmod tests {\n}\n\nuse std::fs;\n", &[&complaint("std::fs")]);
    check("#[cfg(test)]\nmod tests_too {\n    use std::fs;\n}\n", &[&complaint("std::fs")]);
}

#[test]
fn a_system_call_when_a_pure_floor_is_built() {
    let check = |path: &str, expected: &[&str]| {
        let file = (path, "fn main() {\n    std::process::exit(1)\n}\n");
        check(guards::pure_sources, &[("lang", "")], &[file], expected);
    };
    let complaint = "crates/lang/build.rs: `lang` is pure and may not use `std::process`";
    check("crates/lang/build.rs", &[complaint]);
    check("crates/lang/tests/words.rs", &[]);
}

#[test]
fn a_library_that_knows_the_product() {
    let check = |name: &str, path: &str, text: &str, expected: &[&str]| {
        let file = format!("crates/{name}/{path}");
        check(guards::libraries, &[(name, "")], &[(&file, text)], expected);
    };
    let complaint = |place: &str, word: &str| {
        format!("{place}: `qualitytrace-journal` is for any program and may not speak of `{word}`")
    };
    for (path, text, line, word) in [
        ("src/read.rs", "//! Reads.\n//! For Qualitytrace.\n", 2, "qualitytrace"),
        ("README.md", "the prefix QUALITYTRACE_", 1, "qualitytrace"),
        ("tests/golden/a.yaml", "\n\nserviceName: quality-trace\n", 3, "quality-trace"),
        ("build.txt", "quality_trace", 1, "quality_trace"),
        ("tests/read.rs", "// qualitytrace-journal of Qualitytrace\n", 1, "qualitytrace"),
        ("README.md", "qualitytrace-server", 1, "qualitytrace"),
    ] {
        let place = format!("crates/qualitytrace-journal/{path}:{line}");
        check("qualitytrace-journal", path, text, &[&complaint(&place, word)]);
    }
    let names =
        "# qualitytrace-journal\n\nUnder qualitytrace-telemetry, beside qualitytrace-source.\n";
    check("qualitytrace-journal", "README.md", names, &[]);
    check("qualitytrace-journal", "tests/golden/a.txt.proposed", "quality-trace", &[]);
    check("server", "src/read.rs", "// Qualitytrace\n", &[]);
}
