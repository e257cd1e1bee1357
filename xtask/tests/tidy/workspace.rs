//! The workspace as the guards see it: its crates with their dependencies, and their source files.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders that others fill: cargo, and npm.
const PASSED_OVER: &[&str] = &["target", "node_modules", "dist"];

use cargo_metadata::{DependencyKind, MetadataCommand};

pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) crates: Vec<Crate>,
}

pub(crate) struct Crate {
    pub(crate) name: String,
    /// From the root of the workspace, such as `crates/model`.
    pub(crate) folder: String,
    /// Its dependencies, without those of its tests, which may use anything.
    pub(crate) dependencies: Vec<String>,
    pub(crate) manifest: String,
    /// Its Rust files, of the sources and of the tests.
    pub(crate) files: Vec<Source>,
}

/// A file with its text.
pub(crate) struct Source {
    /// From the root of the workspace.
    pub(crate) path: String,
    pub(crate) text: String,
}

const TESTS: &str = "#[cfg(test)]\nmod tests {\n";

impl Workspace {
    pub(crate) fn read(root: &Path) -> Self {
        let root = root.canonicalize().expect("the workspace is there");
        let manifest = root.join("Cargo.toml");
        let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec();
        let metadata = metadata.expect("cargo can describe the workspace");
        let crates = metadata.workspace_packages().into_iter().map(|package| {
            let manifest = package.manifest_path.as_std_path();
            let folder = manifest.parent().expect("a manifest stands in a folder");
            let own = package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development);
            Crate {
                name: package.name.to_string(),
                folder: relative(&root, folder),
                dependencies: own.map(|dependency| dependency.name.clone()).collect(),
                manifest: fs::read_to_string(manifest).expect("a manifest can be read"),
                files: files(&root, folder, |path| path.extension().is_some_and(|it| it == "rs")),
            }
        });
        Self { crates: crates.collect(), root }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Source> {
        self.crates.iter().flat_map(|one| &one.files)
    }

    /// Returns all files of a crate, of any type. Proposals of golden tests are excluded.
    pub(crate) fn texts(&self, one: &Crate) -> Vec<Source> {
        let is_file = |path: &Path| path.extension().is_none_or(|it| it != "proposed");
        files(&self.root, &self.root.join(&one.folder), is_file)
    }

    /// Returns the Markdown pages of all folders, without golden files and without hidden folders at the root.
    pub(crate) fn pages(&self) -> Vec<Source> {
        let is_page = |path: &Path| {
            path.extension().is_some_and(|it| it == "md")
                && !path.components().any(|it| it.as_os_str() == "golden")
        };
        let mut pages = files(&self.root, &self.root, is_page);
        pages.retain(|page| !page.path.starts_with('.'));
        pages
    }
}

impl Source {
    /// Returns the file without the block `mod tests`. `mod tests;` stays: it names another file.
    pub(crate) fn body(&self) -> String {
        let (before, after) = self.around_tests();
        format!("{}\n{}", before.trim_end(), after.trim_start())
    }

    /// Returns the text before the block `mod tests` and the text behind its end, the first `}` in column 1.
    pub(crate) fn around_tests(&self) -> (&str, &str) {
        let text = self.text.as_str();
        let mut found = text.match_indices(TESTS).map(|(at, _)| at);
        let Some(start) = found.find(|at| *at == 0 || text[..*at].ends_with('\n')) else {
            return (text, "");
        };
        let (before, tests) = text.split_at(start);
        // The newline that ends the opening line may be the one before the `}`.
        let end = tests[TESTS.len() - 1..].find("\n}").map(|at| TESTS.len() + 1 + at);
        (before, &tests[end.unwrap_or(tests.len())..])
    }
}

fn files(root: &Path, folder: &Path, is_wanted: fn(&Path) -> bool) -> Vec<Source> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).expect("a source folder can be listed") {
            let path = entry.expect("a folder entry can be read").path();
            if path.is_dir() && !PASSED_OVER.iter().any(|name| path.ends_with(name)) {
                pending.push(path);
            } else if path.is_file() && is_wanted(&path) {
                let bytes = fs::read(&path).expect("a file can be read");
                let text = String::from_utf8_lossy(&bytes).into_owned();
                found.push(Source { path: relative(root, &path), text });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).expect("the workspace holds it").display().to_string()
}
