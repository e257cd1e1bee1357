//! Documents on a server: list, get, delete, export.

use http::Method;
use model::{DocumentKind, TestId};
use serde::Deserialize;
use server::config::Environment;

use super::{
    client::{Server, connect},
    error::ClientError,
};
use crate::{args, exit::Exit, terminal::Terminal};

/// The number of items per page.
const PAGE: &str = "500";
/// The upper bound for the pages of a list.
const PAGES_MAX: usize = 10_000;

#[derive(Debug, Deserialize)]
struct Page {
    items: Vec<DocumentSummary>,
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DocumentSummary {
    pub(super) id: TestId,
    name: String,
    version: i32,
}

/// Lists the documents of a kind.
pub(crate) async fn list(
    args: &args::List,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.at, environment, terminal)?;
    let listed = server.list(args.kind, &args.at.project).await;
    for one in listed.map_err(|error| terminal.refuse(&error))? {
        terminal.result(&format!("{} `{}`: version {}", one.id, one.name, one.version));
    }
    Ok(Exit::Passed)
}

/// Prints a document as it was written.
pub(crate) async fn get(
    args: &args::Get,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.at, environment, terminal)?;
    let document = server.get(args.kind, &args.id, &args.at.project).await;
    let document = document.map_err(|error| terminal.refuse(&error))?;
    terminal.report(&format!("{}\n", report::harmless(document.trim_end())));
    Ok(Exit::Passed)
}

/// Deletes a document.
pub(crate) async fn delete(
    args: &args::Delete,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.at, environment, terminal)?;
    let path = format!("/api/v1/{}/{}", args.kind.collection(), args.id.id);
    let mut request = server.request(Method::DELETE, &path).query(&[("project", &args.at.project)]);
    if let Some(version) = args.id.version {
        request = request.header("if-match", &format!("\"{version}\""));
    }
    server.text(request).await.map_err(|error| terminal.refuse(&error))?;
    terminal.result(&format!("{} `{}`: deleted", args.kind, args.id.id));
    Ok(Exit::Passed)
}

/// Prints all documents, or those of some kinds, as one file that can be applied.
pub(crate) async fn export(
    args: &args::Export,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.at, environment, terminal)?;
    let kinds = if args.kinds.is_empty() { &DocumentKind::ALL[..] } else { &args.kinds };
    let mut is_first = true;
    for kind in kinds {
        let listed = server.list(*kind, &args.at.project).await;
        for one in listed.map_err(|error| terminal.refuse(&error))? {
            let id = args::VersionedId { id: one.id, version: Some(one.version) };
            let document = server.get(*kind, &id, &args.at.project).await;
            let document = document.map_err(|error| terminal.refuse(&error))?;
            let between = if is_first { "" } else { "---\n" };
            terminal.report(&format!("{between}{}\n", report::harmless(document.trim_end())));
            is_first = false;
        }
    }
    Ok(Exit::Passed)
}

impl Server {
    pub(super) async fn list(
        &self,
        kind: DocumentKind,
        project: &str,
    ) -> Result<Vec<DocumentSummary>, ClientError> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let path = format!("/api/v1/{}", kind.collection());
            let mut request =
                self.request(Method::GET, &path).query(&[("project", project), ("limit", PAGE)]);
            if let Some(cursor) = &cursor {
                request = request.query(&[("cursor", cursor)]);
            }
            let page: Page = self.send(request).await?;
            all.extend(page.items);
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(all),
            }
        }
        Ok(all)
    }

    async fn get(
        &self,
        kind: DocumentKind,
        id: &args::VersionedId,
        project: &str,
    ) -> Result<String, ClientError> {
        let path = format!("/api/v1/{}/{}", kind.collection(), id.id);
        let request = self.request(Method::GET, &path).query(&[("project", project)]);
        let mut request = request.header("accept", "application/yaml");
        if let Some(version) = id.version {
            request = request.query(&[("version", &version.to_string())]);
        }
        self.text(request).await
    }
}
