//! Documents on a server: list, get, delete, export.

use http::Method;
use model::{DocumentKind, TestId};
use serde::Deserialize;
use serde_json::Value;
use server::config::Environment;

use super::{
    client::{Server, connect},
    error::ClientError,
};
use crate::{
    args,
    exit::Exit,
    listing::{ListedRow, Listing, text},
    terminal::Terminal,
};

/// The maximum number of documents of a list.
const ITEMS_MAX: usize = 5_000_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DocumentSummary {
    pub(super) id: TestId,
    pub(super) version: i32,
    /// The file that it was last applied from, as it was named.
    #[serde(default)]
    pub(super) file: String,
    /// Whether it is of the server's own files; of an older server that is not known.
    #[serde(default)]
    pub(super) is_provisioned: bool,
}

/// Lists the documents of a kind.
pub(crate) async fn list(
    args: &args::List,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let listed = server.list_values(args.kind).await.map_err(|error| terminal.refuse(&error))?;
    let row = |one: Value| ListedRow {
        name: text(&one, "id"),
        cells: vec![text(&one, "id"), text(&one, "version"), text(&one, "name")],
        value: one,
    };
    let rows = listed.into_iter().map(row).collect();
    let heads = &["ID", "VERSION", "NAME"];
    Listing { heads, rows, none: "no documents" }.print(args.output.format, terminal);
    Ok(Exit::Passed)
}

/// Prints a document as it was written.
pub(crate) async fn get(
    args: &args::Get,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let document = server.get(args.kind, &args.id).await;
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
    let server = connect(&args.connection, environment, terminal)?;
    let path = format!("/api/v1/{}/{}", args.kind.collection(), args.id.id);
    let mut request = server.request_in_project(Method::DELETE, &path);
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
    let server = connect(&args.connection, environment, terminal)?;
    let kinds = if args.kinds.is_empty() { &DocumentKind::ALL[..] } else { &args.kinds };
    let mut is_first = true;
    for kind in kinds {
        let listed = server.list(*kind).await;
        for one in listed.map_err(|error| terminal.refuse(&error))? {
            let id = args::VersionedId { id: one.id, version: Some(one.version) };
            let document = server.get(*kind, &id).await;
            let document = document.map_err(|error| terminal.refuse(&error))?;
            let between = if is_first { "" } else { "---\n" };
            terminal.report(&format!("{between}{}\n", report::harmless(document.trim_end())));
            is_first = false;
        }
    }
    Ok(Exit::Passed)
}

impl Server {
    async fn list_values(&self, kind: DocumentKind) -> Result<Vec<Value>, ClientError> {
        let path = format!("/api/v1/{}", kind.collection());
        self.pages(|| self.request_in_project(Method::GET, &path), ITEMS_MAX).await
    }

    pub(super) async fn list(
        &self,
        kind: DocumentKind,
    ) -> Result<Vec<DocumentSummary>, ClientError> {
        let found = self.list_values(kind).await?;
        let parsed = found.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
        parsed.map_err(|error| self.foreign(&error))
    }

    pub(super) async fn get(
        &self,
        kind: DocumentKind,
        id: &args::VersionedId,
    ) -> Result<String, ClientError> {
        let path = format!("/api/v1/{}/{}", kind.collection(), id.id);
        let request = self.request_in_project(Method::GET, &path);
        let mut request = request.header("accept", "application/yaml");
        if let Some(version) = id.version {
            request = request.query(&[("version", &version.to_string())]);
        }
        self.text(request).await
    }
}
