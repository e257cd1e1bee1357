//! The project file `qualitytrace.toml`: defaults for flags, for all who work in a repository.
//!
//! It is found in the working folder or above it, up to the root of the repository and no further: a file outside of it may be of
//! another person. A flag and a variable come before it. Paths in it are relative to it and stay below its folder.

mod defaults;
mod keys;
mod show;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use model::ErrorCode;
use source::{Diagnostic, Diagnostics, Fields, Text};

use crate::{documents, exit::Exit, terminal::Terminal};

pub(crate) use defaults::prepare;
pub(crate) use keys::schema;
pub(crate) use show::show;

use keys::{KEYS, KeyKind, ProjectKey, SECTIONS};

/// The name of the file.
pub(crate) const FILE: &str = "qualitytrace.toml";

/// What a project file gives, with a profile.
#[derive(Debug)]
pub(crate) struct ProjectFile {
    /// As messages name it.
    path: PathBuf,
    /// Its folder.
    folder: PathBuf,
    values: Vec<ProjectValue>,
}

/// The value of a key.
#[derive(Debug, PartialEq, Eq)]
struct ProjectValue {
    key: &'static ProjectKey,
    /// As they would be typed.
    texts: Vec<String>,
    /// The profile that has it.
    profile: Option<String>,
    line: usize,
}

/// What reading a file found.
struct ProjectReading {
    values: Vec<ProjectValue>,
    /// Whether the file has the requested profile.
    has_profile: bool,
    diagnostics: Vec<Diagnostic>,
}

impl ProjectFile {
    /// Finds and reads the file; none if there is none.
    pub(crate) fn find(
        start: &Path,
        profile: Option<&str>,
        terminal: &Terminal,
    ) -> Result<Option<Self>, Exit> {
        let Some((folder, above)) = locate(start) else {
            return match profile {
                None => Ok(None),
                Some(profile) => {
                    terminal.error(ErrorCode::ProfileUnknown, format_args!(
                        "there is no profile `{profile}`: no `{FILE}` is here or above, up to the root of the repository"
                    ));
                    Err(Exit::Refused)
                }
            };
        };
        let path = above.join(FILE);
        let text = documents::read(&path, terminal)?;
        let ProjectReading { values, has_profile, diagnostics } = read(&text, &above, profile);
        let code = match has_profile {
            true => ErrorCode::ProjectFileInvalid,
            false => ErrorCode::ProfileUnknown,
        };
        terminal.diagnostics_of(code, &diagnostics);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Exit::Refused);
        }
        Ok(Some(Self { path, folder: folder.to_owned(), values }))
    }

    /// Returns its path, as messages name it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its keys, each with the value if that is a number or a time: others may be secret.
    pub(crate) fn without_secrets(&self) -> BTreeMap<String, Option<String>> {
        let shown = |value: &ProjectValue| {
            let is_harmless = matches!(value.key.kind, KeyKind::Number { .. } | KeyKind::Duration);
            is_harmless.then(|| value.texts.join(" "))
        };
        self.values.iter().map(|value| (value.key.full_name(), shown(value))).collect()
    }

    fn value(&self, key: &ProjectKey) -> Option<&ProjectValue> {
        self.values.iter().find(|value| value.key == key)
    }
}

/// Returns the folder of the file, and the way to it from the working folder.
fn locate(start: &Path) -> Option<(&Path, PathBuf)> {
    let root = start.ancestors().find(|folder| folder.join(".git").exists());
    let mut above = PathBuf::new();
    for folder in start.ancestors() {
        if folder.join(FILE).is_file() {
            return Some((folder, above));
        }
        if root.is_none_or(|root| root == folder) {
            return None;
        }
        above.push("..");
    }
    None
}

/// Reads the values of a file; those of the profile come first.
fn read(text: &Text, above: &Path, profile: Option<&str>) -> ProjectReading {
    let (node, diagnostics) = source::read_one(text);
    let found = Diagnostics::new(text);
    found.extend(diagnostics);
    let mut values = Vec::new();
    let mut profiles = Vec::new();
    if let Some(node) = &node
        && let Some(mut fields) = Fields::of(node, "the project file", &found)
    {
        values = section_values(&mut fields, (text, above), None);
        let tables = fields.table("profile");
        for (name, item) in tables.into_iter().flat_map(|mut it| it.rest()) {
            profiles.push(name.text.to_string());
            let Some(mut fields) = item.fields() else { continue };
            let of_profile = section_values(&mut fields, (text, above), Some(&name.text));
            fields.finish();
            if profile == Some(&*name.text) {
                values.retain(|value| of_profile.iter().all(|it| it.key != value.key));
                values.extend(of_profile);
            }
        }
        fields.finish();
    }
    let unknown = profile.filter(|profile| !profiles.iter().any(|it| it == profile));
    if let Some(profile) = unknown {
        let message = format!("there is no profile `{profile}` in `{}`", text.name());
        let known = profiles.iter().map(String::as_str);
        let error = found.error(None, message);
        found.push(error.suggest(source::did_you_mean(profile, known)));
    }
    ProjectReading { values, has_profile: unknown.is_none(), diagnostics: found.into_vec() }
}

fn section_values(
    fields: &mut Fields<'_>,
    (text, above): (&Text, &Path),
    profile: Option<&str>,
) -> Vec<ProjectValue> {
    let mut values = Vec::new();
    for section in SECTIONS {
        let mut table = None;
        let keys = KEYS.iter().filter(|key| key.section == *section);
        if !section.is_empty() {
            table = Some(fields.section(section));
        }
        for key in keys {
            let within = table.as_mut().unwrap_or(&mut *fields);
            let Some(item) = within.take(key.name) else { continue };
            let line = text.place(item.node.span.start).line;
            if let Some(texts) = key.texts(&item, above) {
                values.push(ProjectValue { key, texts, profile: profile.map(str::to_owned), line });
            }
        }
        if let Some(table) = table {
            table.finish();
        }
    }
    values
}
