//! The server's own keys, as data, and the schema of the whole file.

use telemetry::config::{self, Key, Kind};

const PORT: Kind = Kind::Integer { min: 1, max: 65535 };

/// The keys that are not the telemetry library's.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    Key::new("postgres.host", Kind::Text, "localhost", "Host name or address of Postgres."),
    Key::new("postgres.port", PORT, "5432", "Its port."),
    Key::new("postgres.user", Kind::Text, "postgres", "The role."),
    Key::new("postgres.password", Kind::Secret, "postgres", "The role's password."),
    Key::new("postgres.dbname", Kind::Text, "qualitytrace", "The database."),
    Key::new("postgres.params", Kind::Text, "", "Further parameters: `key=value`, separated by spaces."),
    Key::new("server.httpPort", PORT, "11633", "Where the API listens."),
    Key::new("server.otlpGrpcPort", PORT, "4317", "Where OTLP is received by gRPC."),
    Key::new("server.otlpHttpPort", PORT, "4318", "Where OTLP is received by HTTP."),
    Key::new("server.dataDirectory", Kind::Text, "$STATE_DIRECTORY, else .qualitytrace", "What the server keeps beside the record: telemetry that waits for delivery."),
    Key::new("server.telemetry.exporter", Kind::Text, "", "The exporter of the server's own spans and metrics: a name under `telemetry.exporters`."),
    Key::new("server.telemetry.applicationExporter", Kind::Text, "", "The exporter of each run's trigger span, for the trace store of the tested application."),
];

/// The JSON Schema of the configuration file.
pub fn schema() -> serde_json::Value {
    config::schema(KEYS, "quality-trace-config")
}
