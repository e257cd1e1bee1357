//! `apply --prune`: deletes the documents that came from files and are not in them any more.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use http::Method;
use model::{DocumentKind, ErrorCode, TestId};

use super::{client::Server, documents::DocumentSummary};
use crate::{args, exit::Exit, terminal::Terminal};

/// Refuses paths of which a mistake would delete too much.
pub(super) fn check(
    args: &args::Apply,
    files: &[PathBuf],
    terminal: &Terminal,
) -> Result<(), Exit> {
    if files.is_empty() {
        terminal.error(
            ErrorCode::PruneUnsafe,
            "the paths hold no files: `--prune` would delete all that came from them",
        );
        return Err(Exit::Refused);
    }
    // Documents that no file brought have names without a folder.
    if let Some(path) = args.paths.iter().find(|path| plain(path).as_os_str().is_empty()) {
        terminal.error(ErrorCode::PruneUnsafe, format_args!(
            "`--prune` needs a folder with a name, not `{}`: documents of the project that came from elsewhere would be deleted",
            path.display()
        ));
        return Err(Exit::Refused);
    }
    Ok(())
}

impl Server {
    /// Deletes the documents that were applied from these paths and are not among those that are present. Returns whether there
    /// are any.
    pub(super) async fn prune(
        &self,
        args: &args::Apply,
        present: &BTreeSet<(DocumentKind, TestId)>,
        terminal: &Terminal,
    ) -> Result<bool, Exit> {
        let mut found = false;
        for kind in DocumentKind::ALL {
            let listed = self.list(kind).await.map_err(|error| terminal.refuse(&error))?;
            let is_gone = |one: &DocumentSummary| {
                !one.is_provisioned
                    && args.paths.iter().any(|path| is_below(&one.file, path))
                    && !present.contains(&(kind, one.id.clone()))
            };
            for gone in listed.into_iter().filter(is_gone) {
                found = true;
                if args.is_dry() {
                    terminal.result(&format!("{kind} {}: would be deleted", gone.id));
                    continue;
                }
                // Only what was listed: a version that came since is not.
                let path = format!("/api/v1/{}/{}", kind.collection(), gone.id);
                let request = self.request_in_project(Method::DELETE, &path);
                let request = request.header("if-match", &format!("\"{}\"", gone.version));
                self.text(request).await.map_err(|error| terminal.refuse(&error))?;
                terminal.result(&format!("{kind} {}: deleted", gone.id));
            }
        }
        Ok(found)
    }
}

/// Whether a file, as it was named, is this path or below it.
fn is_below(file: &str, path: &Path) -> bool {
    plain(Path::new(file)).starts_with(plain(path))
}

/// Returns a path without the parts that name no folder.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_below;

    #[test]
    fn a_file_is_below_the_folder_that_names_it() {
        for (file, path) in [
            ("tests/a.yaml", "tests"),
            ("tests/a.yaml", "./tests/"),
            ("./tests/b/a.yaml", "tests"),
            ("tests/a.yaml", "tests/a.yaml"),
            ("/srv/tests/a.yaml", "/srv/tests"),
        ] {
            assert!(is_below(file, Path::new(path)), "{file} below {path}");
        }
        for (file, path) in [
            ("tests2/a.yaml", "tests"),
            ("tests", "tests/a.yaml"),
            ("/srv/tests/a.yaml", "tests"),
            ("document.yaml", "tests"),
            ("../tests/a.yaml", "tests"),
        ] {
            assert!(!is_below(file, Path::new(path)), "{file} below {path}");
        }
    }
}
