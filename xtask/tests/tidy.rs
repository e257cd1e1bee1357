//! Project rules that a compiler cannot check, as ordinary tests.
//!
//! This file has the tables and the real workspace; `tidy/guards.rs` has the rules, each a function from a workspace to its
//! complaints, and `tidy/planted.rs` shows that each of them can fail, and with which message.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/formats.rs"]
mod formats;
#[path = "tidy/guards.rs"]
mod guards;
#[path = "tidy/planted.rs"]
mod planted;
#[path = "tidy/planted_dependencies.rs"]
mod planted_dependencies;
#[path = "tidy/search.rs"]
mod search;
#[path = "tidy/sleeps.rs"]
mod sleeps;
#[path = "tidy/type_names.rs"]
mod type_names;
#[path = "tidy/words.rs"]
mod words;
#[path = "tidy/workspace.rs"]
mod workspace;

use std::path::Path;

use guards::Guard;
use workspace::Workspace;

/// The workspace crates that each crate may depend on. Any other dependency needs an ADR.
#[rustfmt::skip]
const FLOORS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("qualitytrace-source", &[]),
    ("qualitytrace-journal", &[]),
    ("qualitytrace-net", &[]),
    ("lang", &["model", "qualitytrace-source"]),
    ("report", &["model", "qualitytrace-source"]),
    ("otlp", &["model"]),
    ("shape", &["model", "qualitytrace-source"]),
    ("web", &[]),
    ("drivers", &["model", "otlp", "qualitytrace-net"]),
    ("db", &["model"]),
    ("bus", &["model", "qualitytrace-journal"]),
    ("qualitytrace-telemetry", &["qualitytrace-journal", "qualitytrace-net", "qualitytrace-source"]),
    ("runner", &["model", "lang", "drivers"]),
    ("golden", &[]),
    ("demo", &["model", "qualitytrace-telemetry"]),
    ("server", &["model", "qualitytrace-source", "lang", "report", "otlp", "drivers", "db", "bus", "runner", "web", "qualitytrace-net", "qualitytrace-telemetry"]),
    ("cli", &["model", "qualitytrace-source", "lang", "report", "otlp", "shape", "drivers", "runner", "demo", "server", "qualitytrace-net", "qualitytrace-telemetry"]),
    ("bench", &["model", "qualitytrace-source", "qualitytrace-journal", "lang", "report", "otlp", "drivers", "db", "bus", "qualitytrace-telemetry", "runner", "demo", "server"]),
    ("xtask", &[]),
];

/// The crates that may depend on each of these external crates; the others use those. `bench` compares external crates with ours,
/// and tests and examples may depend on anything.
const OWNERS: &[(&str, &[&str])] = &[
    ("sqlx", &["db"]),
    ("async-nats", &["bus"]),
    ("axum", &["server"]),
    ("opentelemetry_sdk", &["qualitytrace-telemetry"]),
    ("opentelemetry-otlp", &["bench"]),
    ("clap", &["cli", "xtask"]),
    ("reqwest", &["bench"]),
    ("rustls-native-certs", &["qualitytrace-net"]),
    ("socket2", &["qualitytrace-net"]),
];

/// The crates of HTTP and TLS, as code names them.
const WIRE: &[&str] = &["hyper", "hyper_util", "rustls", "tokio_rustls"];

/// The places whose code may name the crates of HTTP and TLS: the one library of clients, and each listener.
const WIRE_PLACES: &[&str] = &[
    "lib/net/src/",
    "crates/drivers/src/greeting.rs",
    "crates/drivers/src/receiver/",
    "crates/server/src/http/",
    "crates/demo/src/",
    "crates/bench/",
];

/// The types of trace stores, as documents name them; `jaeger` is the name of a propagation format too.
const STORES: &[&str] = &["tempo", "opensearch", "elasticsearch", "clickhouse", "zipkin"];

/// The places whose code may name a trace store: its driver, its document, what starts the parts that tests run against, and what
/// measures runs through each of them.
const STORE_PLACES: &[&str] = &[
    "crates/bench/src/stores.rs",
    "crates/drivers/src/store/",
    "crates/lang/src/document/",
    "crates/lang/src/schema/",
    "xtask/src/",
];

/// Crates for any program: none of their files names the product, except in the names of these packages.
const LIBRARIES: &[&str] =
    &["qualitytrace-source", "qualitytrace-journal", "qualitytrace-net", "qualitytrace-telemetry"];

/// The spellings of the product's name, in lower case.
const PRODUCT: &[&str] = &["qualitytrace", "quality-trace", "quality_trace"];

/// Floors 0 and 1: no async, no network, no files, no clock, no environment. With each crate, the external crates that it may
/// depend on: those that follow the same rule.
const PURE: &[(&str, &[&str])] = &[
    ("model", &["hashbrown", "jiff", "serde", "siphasher", "thiserror", "uuid"]),
    ("qualitytrace-source", &["annotate-snippets", "saphyr-parser", "toml_parser"]),
    ("lang", &["base64", "jiff", "regex", "regex-syntax", "serde_json", "siphasher", "thiserror"]),
    ("report", &["serde", "serde_json"]),
    ("otlp", &["base64", "bytes", "serde", "serde_json", "thiserror"]),
    ("shape", &["thiserror"]),
];

/// Modules of `std` that a pure crate may not use; `self` would import all of them under another name.
const IMPURE_MODULES: &[&str] = &["env", "fs", "io", "net", "os", "process", "self", "thread"];

/// Patterns that a pure crate may not contain.
const IMPURE_WORDS: &[&str] =
    &["async fn", "async move", ".await", "Instant::", "SystemTime", "::now(", "std as ", "std::*"];

/// The upper bound of lines of a file without its `mod tests`.
const FILE_LINES_MAX: usize = 500;

/// Names that do not describe the content.
const EMPTY_NAMES: &[&str] =
    &["common", "util", "utils", "helper", "helpers", "misc", "imp", "manager", "base", "types"];

/// Nouns that end like participles.
const NOUNS: &[&str] = &[
    "Encoding", "Greeting", "Finding", "Need", "Ring", "Listing", "Paging", "Seed", "Spelling",
    "String",
];

/// Irregular participles, and words that are no nouns.
#[rustfmt::skip]
const PARTICIPLES: &[&str] = &[
    "Again", "Anybody", "Came", "Done", "Drawn", "Found", "Given", "Gone", "Heard", "Held", "Here", "Kept", "Known", "Left", "Lost", "Made",
    "Met", "Nobody", "Nothing", "Read", "Said", "Seen", "Sent", "Shown", "Taken", "Told", "Took", "Unread", "Whose", "Written",
];

/// Words that only their author searches for, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("anybody", "who it is, such as `any sender`"),
    ("asked", "`requested`, `queried` or `called`"),
    ("heard", "`received`"),
    ("nobody", "who it is, or the passive: `no exporter`, `is not read`"),
    ("said", "`reported`, `logged` or `stated`"),
    ("says", "`reports`, `logs` or `states`"),
    ("somebody", "who it is: `the caller`, `an attacker`"),
    ("told", "`reported`, `notified` or `configured`"),
    ("whoever", "who it is: `the caller`, `the sender`"),
];

/// Crates with types that do not follow the rule yet. Do not add a crate here.
const WITHOUT_TYPE_NAMES: &[&str] = &[];

#[test]
fn types_have_names_of_their_own() {
    check(type_names::check);
}

#[test]
fn prose_has_the_words_of_the_field() {
    check(words::check);
    check(words::functions);
}

#[test]
fn dependencies_point_down() {
    check(guards::floors);
}

#[test]
fn rooms_do_not_import_each_other() {
    check(circles::check);
}

#[test]
fn a_search_by_everyday_words_finds_the_place() {
    check(search::check);
}

#[test]
fn each_foreign_world_has_its_owners() {
    check(guards::owners);
}

#[test]
fn only_one_library_and_the_listeners_speak_http() {
    check(guards::wire);
}

#[test]
fn a_trace_store_is_named_only_where_it_is_driven() {
    check(guards::stores);
}

#[test]
fn the_pure_floors_name_no_impure_crate() {
    check(guards::pure_manifests);
}

#[test]
fn the_pure_floors_touch_no_system() {
    check(guards::pure_sources);
}

#[test]
fn the_libraries_do_not_know_the_product() {
    check(guards::libraries);
}

#[test]
fn only_its_crate_names_a_format_of_a_report() {
    check(formats::check);
}

#[test]
fn files_are_small() {
    check(guards::lengths);
}

#[test]
fn tests_are_the_last_thing_in_a_file() {
    check(guards::tests_last);
}

#[test]
fn files_are_named_for_what_they_hold() {
    check(guards::names);
}

#[test]
fn no_test_is_ignored() {
    check(guards::ignored);
}

#[test]
fn tests_wait_for_conditions_and_not_for_time() {
    check(sleeps::check);
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    check(guards::lints);
}

#[test]
fn the_architecture_says_what_each_crate_is_and_is_not() {
    check(guards::architecture);
}

#[test]
fn the_architecture_names_what_is_there() {
    check(guards::architecture_names);
}

fn check(guard: Guard) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask stands in a workspace");
    let complaints = guard(&Workspace::read(root));
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
