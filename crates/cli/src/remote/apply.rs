//! `apply`: stores documents on a server, or shows what that would do.

use std::collections::BTreeSet;

use model::{DocumentKind, TestId};
use server::config::Environment;
use similar::TextDiff;
use source::Text;

use super::{
    client::{AppliedDocument, Server, connect},
    error::ClientError,
    prune,
};
use crate::{
    args::{self, VersionedId},
    documents::{files, read},
    exit::Exit,
    terminal::Terminal,
};

/// The unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Stores the documents of files on a server.
pub(crate) async fn apply(
    args: &args::Apply,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let files = files(&args.paths, terminal)?;
    if args.prune {
        prune::check(args, &files, terminal)?;
    }
    let (mut present, mut is_changed) = (BTreeSet::new(), false);
    for file in &files {
        let text = read(file, terminal)?;
        let applied = server.apply(&text, args.is_dry()).await;
        let applied = applied.map_err(|error| terminal.refuse(&error))?;
        terminal.line(&applied.notices);
        for one in applied.documents {
            terminal.result(&line(&one, args.is_dry()));
            if args.diff && one.changed {
                let lines = server.difference(&text, &one).await;
                lines
                    .map_err(|error| terminal.refuse(&error))?
                    .iter()
                    .for_each(|line| terminal.result(line));
            }
            is_changed |= one.changed;
            present.insert((one.kind(), one.id));
        }
    }
    if args.prune {
        is_changed |= server.prune(args, &present, terminal).await?;
    }
    Ok(if args.diff && is_changed { Exit::Failed } else { Exit::Passed })
}

fn line(one: &AppliedDocument, is_dry: bool) -> String {
    let change = match (one.changed, is_dry) {
        (true, false) => "new",
        (true, true) => "would be new",
        (false, _) => "unchanged",
    };
    format!("{} {} `{}`: version {} ({change})", one.kind(), one.id, one.name, one.version)
}

impl Server {
    /// Returns the lines that differ between the stored document and the one of the file.
    async fn difference(
        &self,
        text: &Text,
        one: &AppliedDocument,
    ) -> Result<Vec<String>, ClientError> {
        if one.kind().holds_secrets() {
            return Ok(vec!["  its values are not shown: they may be secret".to_owned()]);
        }
        let stored =
            match self.get(one.kind(), &VersionedId { id: one.id.clone(), version: None }).await {
                Ok(stored) => stored,
                Err(ClientError::Refused { status: 404, .. }) => String::new(),
                Err(error) => return Err(error),
            };
        let (documents, _) = lang::storable_documents(text, "");
        let same = |id: &TestId, kind: DocumentKind| *id == one.id && kind == one.kind();
        let written = documents.into_iter().find(|it| same(&it.id, it.kind));
        let written = written.map(|it| it.document).unwrap_or_default();
        Ok(lines(&stored, &written))
    }
}

/// Returns the difference of two documents. A document is padded to its place in its file, which is no line of it.
fn lines(stored: &str, written: &str) -> Vec<String> {
    let plain = |text: &str| format!("{}\n", text.trim_matches(['\n', '\r']));
    let (stored, written) = (plain(stored), plain(written));
    if stored == written {
        return vec!["  the same lines, at another place of the file".to_owned()];
    }
    let difference = TextDiff::from_lines(&stored, &written);
    let text = difference.unified_diff().context_radius(CONTEXT_LINES).to_string();
    text.lines().map(|line| format!("  {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_difference_is_what_a_person_would_mark() {
        assert_eq!(
            lines("\n\na: 1\nb: 2\nc: 3\n", "a: 1\nb: 3\nc: 3"),
            ["  @@ -1,3 +1,3 @@", "   a: 1", "  -b: 2", "  +b: 3", "   c: 3"]
        );
        assert_eq!(
            lines("\n\na: 1\n", "a: 1\n"),
            ["  the same lines, at another place of the file"]
        );
    }
}
