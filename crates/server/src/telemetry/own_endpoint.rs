//! Exporters that would send to this server itself: telemetry about ingest and export must not be ingested again.

use std::fmt;

use model::{ErrorCode, Fault, Faulty};
use telemetry::plan::{self, Destination};
use thiserror::Error;

use crate::{config, database::identity, host_name::names_this_machine};

/// Why the exporters cannot start.
#[derive(Debug, Error)]
pub enum TelemetryError {
    /// An exporter that would send to the server's own ingest.
    #[error(
        "`{}` sends to `{}`, which is this server's own OTLP port: give its `endpoint` the address \
         of your Collector, or move the port with `{}` (or `{}`)",
        .0.exporter, .0.endpoint, .0.port_key, .0.port_flag
    )]
    OwnEndpoint(Box<OwnEndpoint>),
    /// An exporter cannot be started.
    #[error(transparent)]
    Exporter(#[from] telemetry::StartError),
}

impl Faulty for TelemetryError {
    fn fault(&self) -> Fault {
        // The operator configured the endpoint, the folder or the file.
        Fault::Invalid
    }

    fn code(&self) -> ErrorCode {
        ErrorCode::ExporterInvalid
    }
}

/// Refuses exporters that send to this server: telemetry about ingest and export must not be ingested again. A configured
/// endpoint is refused; an exporter with this server as its default endpoint is left out ([`not_sending`]).
pub(crate) fn refuse_own_endpoints(
    telemetry: &config::TelemetryConfig,
    listen: config::Listen,
) -> Result<(), TelemetryError> {
    let is_written =
        |exporter: &&plan::Exporter| !telemetry.plan.by_default.contains(&exporter.name);
    let roles = telemetry.roles();
    let mut own = telemetry.plan.active(&roles).filter(is_written);
    match own.find_map(|exporter| own_endpoint(exporter, listen)) {
        Some(own) => Err(TelemetryError::OwnEndpoint(Box::new(own))),
        None => Ok(()),
    }
}

/// An exporter that would send to this server itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnEndpoint {
    /// The name of the exporter.
    pub exporter: String,
    /// The endpoint to which it would send.
    pub endpoint: String,
    /// The key of the port at this endpoint.
    pub port_key: &'static str,
    /// The flag that overrides the key.
    pub port_flag: &'static str,
}

impl fmt::Display for OwnEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exporter, endpoint, port_key, port_flag } = self;
        write!(
            f,
            "`{exporter}` does not send: it has no `endpoint`, and the default `{endpoint}` is this server's own receiver; \
             write its `endpoint`, or another port here (`{port_key}`, `{port_flag}`)"
        )
    }
}

/// Returns the exporters that do not send, since their default endpoint is this server itself.
pub fn not_sending(
    telemetry: &config::TelemetryConfig,
    listen: config::Listen,
) -> Vec<OwnEndpoint> {
    let is_default =
        |exporter: &&plan::Exporter| telemetry.plan.by_default.contains(&exporter.name);
    let roles = telemetry.roles();
    let own = telemetry.plan.active(&roles).filter(is_default);
    own.filter_map(|exporter| own_endpoint(exporter, listen)).collect()
}

fn own_endpoint(exporter: &plan::Exporter, listen: config::Listen) -> Option<OwnEndpoint> {
    let own = [
        (listen.otlp_grpc.port(), "server.otlpGrpcPort", "--otlp-grpc"),
        (listen.otlp_http.port(), "server.otlpHttpPort", "--otlp-http"),
        (listen.http.port(), "server.httpPort", "--http"),
    ];
    let Destination::Otlp(otlp) = &exporter.destination else { return None };
    exporter.signals.carried().find_map(|signal| {
        let endpoint = otlp.endpoint(signal);
        let (host, port) = telemetry::config::address(endpoint);
        let is_local = names_this_machine(host, &identity::host());
        let (_, port_key, port_flag) = own.into_iter().find(|it| is_local && it.0 == port)?;
        let endpoint = plan::shown(endpoint);
        Some(OwnEndpoint { exporter: exporter.name.clone(), endpoint, port_key, port_flag })
    })
}

/// Returns the plan and the roles without the exporters that do not send, and these exporters.
pub(super) fn effective(
    config: &config::TelemetryConfig,
    listen: config::Listen,
) -> (plan::Plan, telemetry::Roles, Vec<OwnEndpoint>) {
    let (mut plan, mut roles) = (config.plan.clone(), config.roles());
    let not_sending = not_sending(config, listen);
    let is_left_out = |name: &String| not_sending.iter().any(|own| own.exporter == *name);
    plan.exporters.retain(|exporter| !is_left_out(&exporter.name));
    roles.own = roles.own.filter(|name| !is_left_out(name));
    roles.others.retain(|name| !is_left_out(name));
    (plan, roles, not_sending)
}
