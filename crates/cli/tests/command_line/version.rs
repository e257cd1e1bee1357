//! The version that the program prints, for people and for programs.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};
use regex::Regex;
use serde_json::Value;

use crate::{BINARY, schema};

/// The schema of the JSON form.
const SCHEMA: &str = include_str!("../../../../docs/reference/schemas/version.json");

fn printed(arguments: &[&str]) -> Result<String> {
    let output = Command::new(Path::new(BINARY)).args(arguments).output()?;
    ensure!(output.status.success(), "{arguments:?}: {output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn commit_day_and_target_are_printed() -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(printed(&["-V"])?, format!("qualitytrace {version}\n"));
    assert_eq!(printed(&["version", "--format", "name"])?, format!("{version}\n"));
    let long = printed(&["--version"])?;
    let form = format!(
        r"^qualitytrace {} \((dev|[0-9a-f]{{8}} 20\d\d-\d\d-\d\d) [a-z0-9_]+(-[a-z0-9_.]+){{2,3}}\)\n$",
        regex::escape(version)
    );
    assert!(Regex::new(&form)?.is_match(&long), "{long}");
    assert_eq!(printed(&["version"])?, long);
    Ok(())
}

#[test]
fn programs_read_the_versions_of_all_formats() -> Result<()> {
    let value: Value = serde_json::from_str(&printed(&["version", "--format", "json"])?)?;
    let schema: Value = serde_json::from_str(SCHEMA)?;
    schema::check(&value, &schema, &schema).map_err(anyhow::Error::msg)?;
    let long = printed(&["--version"])?;
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    // `--version` has the first digits of the commit.
    let of = match value["commit"].is_null() {
        true => "dev".to_owned(),
        false => format!("{} {}", &text("commit")[..8], text("date")),
    };
    assert_eq!(long, format!("qualitytrace {} ({of} {})\n", text("version"), text("target")));
    assert_eq!(text("api"), server::API_VERSION);
    Ok(())
}

#[test]
fn a_manual_page_is_the_same_for_every_commit() -> Result<()> {
    let page = printed(&["man"])?;
    let version = printed(&["version", "--format", "name"])?;
    assert!(page.contains(&format!("v{}", version.trim())), "{page}");
    assert!(!page.contains("(dev") && !page.contains("unknown-linux"), "{page}");
    Ok(())
}
