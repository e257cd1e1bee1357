//! A bill of materials in the form of CycloneDX 1.6.
//!
//! A crate of ours has no package URL: the crate registry has foreign crates of the names `db` and `server`, and a scanner would
//! report their weaknesses as ours. Deliberately absent are a serial number, which would differ each time, and the standard
//! library of Rust and the C library, which no lockfile names: the properties of the document name compiler and target instead.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::{
    DebianPart,
    crates::{Crate, Crates, Key, Origin},
    json::Json,
    page::Package,
};
use crate::release::artefacts::REPOSITORY;

const SCHEMA: &str = "http://cyclonedx.org/schema/bom-1.6.schema.json";
const OUR_LICENCE: &str = "Apache-2.0";
/// The crate that packs the page.
const PAGE: &str = "web";

/// What is in one binary.
#[derive(Debug)]
pub(super) struct Binary {
    pub(super) target: String,
    /// The digest of the file.
    pub(super) sha256: String,
    pub(super) crates: Crates,
    pub(super) packages: Vec<Package>,
}

/// The version, time and compiler of a release.
#[derive(Debug)]
pub(super) struct Provenance {
    /// Of the release, such as `0.1.0`.
    pub(super) version: String,
    /// Seconds since 1970.
    pub(super) epoch: u64,
    /// What `rustc --version` prints.
    pub(super) rustc: String,
}

/// Components and edges by reference, so that the same part of two binaries is in the document once.
#[derive(Default)]
struct Parts {
    components: BTreeMap<String, Json>,
    edges: BTreeMap<String, Vec<String>>,
}

/// Returns the document of one binary, which is its subject.
pub(super) fn of_binary(provenance: &Provenance, binary: &Binary) -> Result<String> {
    let mut parts = Parts::default();
    let reference = parts.add_binary(provenance, binary)?;
    let subject = parts.components.remove(&reference).context("the binary is a component")?;
    Ok(document(provenance, subject, std::slice::from_ref(&binary.target), parts))
}

/// Returns the document of an image with a binary for each platform.
pub(super) fn of_image(
    provenance: &Provenance,
    binaries: &[Binary],
    others: &[DebianPart],
) -> Result<String> {
    let mut parts = Parts::default();
    let mut content = Vec::new();
    for binary in binaries {
        content.push(parts.add_binary(provenance, binary)?);
    }
    for other in others {
        let reference = format!("pkg:deb/debian/{}@{}", other.name, escaped(&other.version));
        let component = component("library", &reference, &other.name, &other.version, |fields| {
            fields.push(("licenses", licences(&other.licence)));
            fields.push(("purl", Json::text(&reference)));
        });
        parts.components.insert(reference.clone(), component);
        content.push(reference);
    }
    let reference = format!("qualitytrace@{}:image", provenance.version);
    let subject =
        component("container", &reference, "qualitytrace", &provenance.version, |fields| {
            fields.push(("licenses", licences(OUR_LICENCE)));
        });
    parts.edges.insert(reference, content);
    let targets: Vec<String> = binaries.iter().map(|binary| binary.target.clone()).collect();
    Ok(document(provenance, subject, &targets, parts))
}

impl Parts {
    /// Adds a binary and all that it is made of; returns its reference.
    fn add_binary(&mut self, provenance: &Provenance, binary: &Binary) -> Result<String> {
        let Binary { target, sha256, crates, packages } = binary;
        let reference = format!("qualitytrace@{}:{target}", provenance.version);
        for (key, it) in &crates.by_key {
            let edges = it.needs.iter().map(|key| crate_reference(crates, key));
            let mut edges = edges.collect::<Result<Vec<_>>>()?;
            if key.name == PAGE && it.origin == Origin::Checkout {
                edges.extend(packages.iter().map(package_url));
            }
            if *key == crates.root {
                self.connect(reference.clone(), edges);
            } else {
                self.components.entry(own_reference(key, it)).or_insert_with(|| of_crate(key, it));
                self.connect(own_reference(key, it), edges);
            }
        }
        for package in packages {
            let url = package_url(package);
            self.components.entry(url).or_insert_with(|| of_package(package));
        }
        let application =
            component("application", &reference, "qualitytrace", &provenance.version, |fields| {
                fields.push(("hashes", hashes(sha256)));
                fields.push(("licenses", licences(OUR_LICENCE)));
                fields.push(("externalReferences", vcs(REPOSITORY)));
            });
        self.components.insert(reference.clone(), application);
        Ok(reference)
    }

    /// Adds edges to those that another binary has.
    fn connect(&mut self, from: String, to: Vec<String>) {
        let edges = self.edges.entry(from).or_default();
        edges.extend(to);
        edges.sort();
        edges.dedup();
    }
}

fn document(provenance: &Provenance, subject: Json, targets: &[String], parts: Parts) -> String {
    let tool = Json::Map(vec![
        ("type", Json::text("application")),
        ("name", Json::text("cargo xtask release")),
        ("version", Json::text(&provenance.version)),
    ]);
    let property = |name: &str, value: &str| {
        Json::Map(vec![("name", Json::text(name)), ("value", Json::text(value))])
    };
    let mut properties = vec![property("qualitytrace:rustc", &provenance.rustc)];
    properties.extend(targets.iter().map(|target| property("qualitytrace:target", target)));
    let edges = parts.edges.into_iter().map(|(from, to)| {
        let to = to.into_iter().map(Json::Text).collect();
        Json::Map(vec![("ref", Json::Text(from)), ("dependsOn", Json::List(to))])
    });
    let edges = edges.collect();
    let phase = Json::Map(vec![("phase", Json::text("build"))]);
    let metadata = vec![
        ("timestamp", Json::Text(timestamp(provenance.epoch))),
        ("lifecycles", Json::List(vec![phase])),
        ("tools", Json::Map(vec![("components", Json::List(vec![tool]))])),
        ("component", subject),
        ("properties", Json::List(properties)),
    ];
    let document = Json::Map(vec![
        ("$schema", Json::text(SCHEMA)),
        ("bomFormat", Json::text("CycloneDX")),
        ("specVersion", Json::text("1.6")),
        ("version", Json::Number(1)),
        ("metadata", Json::Map(metadata)),
        ("components", Json::List(parts.components.into_values().collect())),
        ("dependencies", Json::List(edges)),
    ]);
    document.document()
}

/// Returns a component with the fields that each has, and those that `more` adds.
fn component(
    kind: &str,
    reference: &str,
    name: &str,
    version: &str,
    more: impl FnOnce(&mut Vec<(&'static str, Json)>),
) -> Json {
    let mut fields = vec![
        ("type", Json::text(kind)),
        ("bom-ref", Json::text(reference)),
        ("name", Json::text(name)),
        ("version", Json::text(version)),
    ];
    more(&mut fields);
    Json::Map(fields)
}

fn of_crate(key: &Key, it: &Crate) -> Json {
    // What only the compiler runs is listed too, since it could have changed the binary; but no call of the program reaches it.
    let scope = if it.is_linked { "required" } else { "excluded" };
    component("library", &own_reference(key, it), &key.name, &key.version, |fields| {
        fields.push(("scope", Json::text(scope)));
        if let Origin::Registry { sha256 } = &it.origin {
            fields.push(("hashes", hashes(sha256)));
        }
        fields.push(("licenses", licences(&it.licence)));
        if matches!(it.origin, Origin::Registry { .. }) {
            fields.push(("purl", Json::Text(own_reference(key, it))));
        }
        if !it.repository.is_empty() {
            fields.push(("externalReferences", vcs(&it.repository)));
        }
    })
}

fn of_package(package: &Package) -> Json {
    let url = package_url(package);
    component("library", &url, &package.name, &package.version, |fields| {
        fields.push(("scope", Json::text("required")));
        fields.push(("licenses", licences(&package.licence)));
        fields.push(("purl", Json::text(&url)));
    })
}

fn hashes(sha256: &str) -> Json {
    let hash = vec![("alg", Json::text("SHA-256")), ("content", Json::text(sha256))];
    Json::List(vec![Json::Map(hash)])
}

fn vcs(url: &str) -> Json {
    let fields = vec![("type", Json::text("vcs")), ("url", Json::text(url))];
    Json::List(vec![Json::Map(fields)])
}

fn licences(expression: &str) -> Json {
    Json::List(vec![Json::Map(vec![("expression", Json::text(expression))])])
}

fn crate_reference(crates: &Crates, key: &Key) -> Result<String> {
    let it = crates.by_key.get(key).context("each edge ends at a crate of the tree")?;
    Ok(own_reference(key, it))
}

/// Returns the package URL of a foreign crate, or a name within this document for one of ours.
fn own_reference(key: &Key, it: &Crate) -> String {
    match it.origin {
        Origin::Registry { .. } => {
            format!("pkg:cargo/{}@{}", escaped(&key.name), escaped(&key.version))
        }
        Origin::Checkout => format!("qualitytrace:{}@{}", key.name, key.version),
    }
}

fn package_url(package: &Package) -> String {
    let name: Vec<String> = package.name.split('/').map(escaped).collect();
    format!("pkg:npm/{}@{}", name.join("/"), escaped(&package.version))
}

/// Escapes a part of a package URL, where a `+` of a version and an `@` of a name have a meaning of their own.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Returns seconds since 1970 as RFC 3339 writes them.
fn timestamp(epoch: u64) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut days, second) = (epoch / DAY, epoch % DAY);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, version: &str) -> Key {
        Key { name: name.to_owned(), version: version.to_owned() }
    }

    fn of(origin: Origin, is_linked: bool, needs: &[Key]) -> Crate {
        let (licence, repository) = ("MIT".to_owned(), String::new());
        Crate { origin, licence, repository, is_linked, needs: needs.iter().cloned().collect() }
    }

    fn binary(target: &str) -> Binary {
        let (root, page, zstd) = (key("cli", "0.1.0"), key("web", "0.1.0"), key("zstd", "1.0.0+z"));
        let foreign = |sha256: &str| Origin::Registry { sha256: sha256.to_owned() };
        let by_key = BTreeMap::from([
            (root.clone(), of(Origin::Checkout, true, std::slice::from_ref(&page))),
            (page, of(Origin::Checkout, true, std::slice::from_ref(&zstd))),
            (zstd, of(foreign("aa00"), true, &[key("cc", "1.0.0")])),
            (key("cc", "1.0.0"), of(foreign("bb00"), false, &[])),
        ]);
        let [name, version, licence, notice] =
            ["@a/b", "2.0.0", "ISC", "by A"].map(|text| text.to_owned());
        Binary {
            target: target.to_owned(),
            sha256: "ff00".to_owned(),
            crates: Crates { root, by_key },
            packages: vec![Package { name, version, licence, notice }],
        }
    }

    fn provenance() -> Provenance {
        let (version, rustc) = ("0.1.0".to_owned(), "rustc 1.95.0".to_owned());
        Provenance { version, epoch: 1_767_225_600, rustc }
    }

    /// Returns the values of a field, in the order of the document.
    fn values<'a>(document: &'a str, field: &str) -> Vec<&'a str> {
        let start = format!("\"{field}\": \"");
        let value = |line: &'a str| line.trim().strip_prefix(&start)?.split('"').next();
        document.lines().filter_map(value).collect()
    }

    #[test]
    fn foreign_parts_have_package_urls_and_ours_have_none() {
        let document = of_binary(&provenance(), &binary("x")).expect("a document");
        let urls = ["pkg:cargo/cc@1.0.0", "pkg:cargo/zstd@1.0.0%2Bz", "pkg:npm/%40a/b@2.0.0"];
        assert_eq!(values(&document, "purl"), urls);
        let references =
            [&["qualitytrace@0.1.0:x"], &urls[..], &["qualitytrace:web@0.1.0"]].concat();
        assert_eq!(values(&document, "bom-ref"), references);
        assert_eq!(values(&document, "scope"), ["excluded", "required", "required", "required"]);
        assert_eq!(values(&document, "content"), ["ff00", "bb00", "aa00"]);
        assert_eq!(values(&document, "timestamp"), ["2026-01-01T00:00:00Z"]);
        let edges = "{
      \"ref\": \"qualitytrace:web@0.1.0\",
      \"dependsOn\": [
        \"pkg:cargo/zstd@1.0.0%2Bz\",
        \"pkg:npm/%40a/b@2.0.0\"
      ]
    }";
        assert!(document.contains(edges), "{document}");
    }

    #[test]
    fn an_image_has_each_part_once_and_its_own_beside_them() {
        let [name, version, licence] =
            ["ca-certificates", "1+deb12u1", "MPL-2.0"].map(|text| text.to_owned());
        let other = DebianPart { name, version, licence };
        let binaries = [binary("x"), binary("y")];
        let document = of_image(&provenance(), &binaries, &[other]).expect("a document");
        let references = [
            "qualitytrace@0.1.0:image",
            "pkg:cargo/cc@1.0.0",
            "pkg:cargo/zstd@1.0.0%2Bz",
            "pkg:deb/debian/ca-certificates@1%2Bdeb12u1",
            "pkg:npm/%40a/b@2.0.0",
            "qualitytrace:web@0.1.0",
            "qualitytrace@0.1.0:x",
            "qualitytrace@0.1.0:y",
        ];
        assert_eq!(values(&document, "bom-ref"), references);
        assert_eq!(values(&document, "type")[1], "container");
    }

    #[test]
    fn a_time_is_that_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ];
        for (epoch, expected) in cases {
            assert_eq!(timestamp(epoch), expected);
        }
    }
}
