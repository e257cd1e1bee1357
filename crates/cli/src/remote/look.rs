//! What `doctor` sees of a server: each part on its own, so that one that fails does not hide the others.

use std::time::Duration;

use http::{Method, Uri};
use model::{DocumentKind, ErrorCode, Timestamp};
use net::{ServerCertificate, server_certificate};
use serde::Deserialize;
use tokio::time::timeout;

use super::{
    client::{Me, Server},
    error::ClientError,
    exporters::{Exporter, StatusResponse},
    http::roots,
    status::{Readiness, ServerFacts, facts, readiness},
};
use crate::contexts::ServerAccess;

/// The upper bound for a TLS session.
const SESSION_MAX: Duration = Duration::from_secs(10);
/// The upper bound for stores that are tried out.
const STORES_MAX: usize = 16;

/// What a server responds.
pub(crate) struct ServerLook {
    /// Why it is not ready.
    pub(crate) unready: Option<String>,
    /// When it responded, by its clock.
    pub(crate) date: Option<Timestamp>,
    /// None if the server is not ready.
    pub(crate) ready: Option<ReadyLook>,
}

/// What a server responds that is ready.
pub(crate) struct ReadyLook {
    pub(crate) version: String,
    /// `on` or `off`.
    pub(crate) access: String,
    /// The caller; none where access is off.
    pub(crate) me: Option<Result<Me, ClientError>>,
    pub(crate) exporters: Result<Vec<Exporter>, ClientError>,
    /// The trace stores of the project.
    pub(crate) stores: Result<Vec<StoreLook>, ClientError>,
}

/// A trace store, as the server reaches it.
pub(crate) struct StoreLook {
    pub(crate) id: String,
    /// Why it does not respond, if it does not; an error if it could not be tried out.
    pub(crate) result: Result<Option<String>, ClientError>,
}

#[derive(Deserialize)]
struct StoreProbe {
    steps: Vec<StoreProbeStep>,
}

#[derive(Deserialize)]
struct StoreProbeStep {
    name: String,
    ok: bool,
    message: String,
}

/// Looks at a server; an error if it does not respond.
pub(crate) async fn look(access: &ServerAccess) -> Result<ServerLook, ClientError> {
    let server = Server::new(access)?;
    let Readiness { unready, date, .. } = readiness(&server).await?;
    let ready = match unready {
        None => Some(server.ready_look().await?),
        Some(_) => None,
    };
    Ok(ServerLook { unready, date, ready })
}

/// Returns the certificate of a server at this time; none without TLS, or if there is no session, which a request explains too.
pub(crate) async fn certificate(
    access: &ServerAccess,
    now: Timestamp,
) -> Result<Option<ServerCertificate>, ClientError> {
    let roots = roots(&access.url, access.ca.as_deref())?;
    let Ok(url) = access.url.parse::<Uri>() else { return Ok(None) };
    let now = now.since(Timestamp::default());
    let found = timeout(SESSION_MAX, server_certificate(&url, roots, now)).await;
    Ok(found.ok().and_then(Result::ok).flatten())
}

impl Server {
    async fn ready_look(&self) -> Result<ReadyLook, ClientError> {
        let ServerFacts { version, access } = facts(self).await?;
        let me = match access.as_str() {
            "off" => None,
            _ => Some(self.send(self.request(Method::GET, "/api/v1/me")).await),
        };
        let status = self.send::<StatusResponse>(self.request(Method::GET, "/api/v1/telemetry"));
        let exporters = status.await.map(|status| status.exporters);
        Ok(ReadyLook { version, access, me, exporters, stores: self.store_looks().await })
    }

    async fn store_looks(&self) -> Result<Vec<StoreLook>, ClientError> {
        let mut looks = Vec::new();
        let kind = DocumentKind::TraceStore;
        for store in self.list(kind).await?.into_iter().take(STORES_MAX) {
            let id = store.id.to_string();
            let path = format!("/api/v1/{}/{id}/probe", kind.collection());
            let probed =
                self.send::<StoreProbe>(self.request_in_project(Method::POST, &path)).await;
            let result = probed.map(|StoreProbe { steps }| {
                let failed = steps.into_iter().find(|step| !step.ok);
                failed.map(|StoreProbeStep { name, message, .. }| format!("{name}: {message}"))
            });
            looks.push(StoreLook { id, result });
        }
        Ok(looks)
    }
}

/// Whether an error only means that the token does not allow it, or that an older server does not have it.
pub(crate) fn is_out_of_reach(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Refused {
            code: ErrorCode::Unauthenticated | ErrorCode::Forbidden | ErrorCode::NotFound,
            ..
        }
    )
}
