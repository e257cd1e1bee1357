//! Passes on from which commit and day the program is built, and for which target: `src/version.rs` prints them.
//!
//! `cargo xtask release build` names commit and day. Every other build is a development build and has neither, so that a commit does
//! not compile the crate anew. Deliberately absent: git and the clock, so that one commit always gives the same bytes.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo passes a build script its parameters in the environment"
)]

use std::env;

const COMMIT: &str = "QUALITYTRACE_BUILD_COMMIT";
const DATE: &str = "QUALITYTRACE_BUILD_DATE";

/// The digits of a commit that a person reads; `version --format json` has all of them.
const SHOWN: usize = 8;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in [COMMIT, DATE] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let (commit, date) = (variable(COMMIT), variable(DATE));
    let is_right = match (commit.as_str(), date.as_str()) {
        ("", "") => true,
        (commit, date) => is_commit(commit) && is_date(date),
    };
    if !is_right {
        println!(
            "cargo::error=`{COMMIT}` must be a commit of 40 lower-case hexadecimal digits and `{DATE}` its day, such as \
             2026-11-20; set both, or neither for a development build"
        );
        return;
    }
    let (version, target) = (variable("CARGO_PKG_VERSION"), variable("TARGET"));
    let of = match commit.get(..SHOWN) {
        Some(commit) => format!("{commit} {date}"),
        None => "dev".to_owned(),
    };
    // Cargo sets them for tests too, where a server would take names that begin as its own for keys.
    println!("cargo::rustc-env=PROGRAM_VERSION={version} ({of} {target})");
    println!("cargo::rustc-env=PROGRAM_TARGET={target}");
    println!("cargo::rustc-env=PROGRAM_COMMIT={commit}");
    println!("cargo::rustc-env=PROGRAM_DATE={date}");
}

/// Returns a variable; empty if it is not set.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
}

fn is_date(text: &str) -> bool {
    let fits = |(at, it): (usize, u8)| match at {
        4 | 7 => it == b'-',
        _ => it.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(fits)
}
