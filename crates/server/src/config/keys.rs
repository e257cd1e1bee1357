//! The server's own keys, as data, and the schema of the complete file.

use telemetry::config::{self, Key, Kind};

const PORT: Kind = Kind::Integer { min: 1, max: 65535 };

/// The keys that do not belong to the telemetry library.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    Key::new("postgres.host", Kind::Text, "localhost", "Host name or address of Postgres."),
    Key::new("postgres.port", PORT, "5432", "Its port."),
    Key::new("postgres.user", Kind::Text, "postgres", "The role."),
    Key::new("postgres.password", Kind::Secret, "postgres", "The role's password."),
    Key::new("postgres.dbname", Kind::Text, "qualitytrace", "The database."),
    Key::new("postgres.params", Kind::Text, "", "Further parameters: `key=value`, separated by spaces."),
    Key::new("postgres.pool", Kind::Integer { min: 1, max: 1000 }, "16", "Connections at the most, beside the few for what must not wait."),
    Key::new("server.bind", Kind::Text, "127.0.0.1", "The address that all ports are opened on. Others than loopback need `server.auth.mode: on`."),
    Key::new("server.httpPort", PORT, "11633", "Where the API listens."),
    Key::new("server.otlpGrpcPort", PORT, "4317", "Where OTLP is received by gRPC."),
    Key::new("server.probePort", PORT, "", "Where `/livez` and `/readyz` are answered too, by HTTP without TLS, and nothing else is: callers of the API cannot take its connections."),
    Key::new("server.otlpHttpPort", PORT, "4318", "Where OTLP is received by HTTP."),
    Key::new("server.dataDirectory", Kind::Text, "$STATE_DIRECTORY, else .qualitytrace", "What the server keeps beside the record: spans and telemetry that wait."),
    Key::new("server.provisioning", Kind::Text, "", "Documents that are applied at every start: a file, or a folder of them."),
    Key::new("server.tls.cert", Kind::Text, "", "The API's certificate with those that lead to its root, PEM; without it, plaintext."),
    Key::new("server.tls.key", Kind::Text, "", "The key of that certificate, PEM."),
    Key::new("server.otlpTls.cert", Kind::Text, "", "The same for the OTLP ports."),
    Key::new("server.otlpTls.key", Kind::Text, "", "The key of that certificate, PEM."),
    Key::new("server.otlpTls.clientCa", Kind::Text, "", "Who must have signed the certificates of senders, PEM; without it they need none."),
    Key::new("server.telemetry.exporter", Kind::Text, "", "The exporter of the server's own spans and metrics: a name under `telemetry.exporters`."),
    Key::new("server.telemetry.applicationExporter", Kind::Text, "", "The exporter of each run's trigger span, for the trace store of the tested application."),
    Key::new("server.publicUrl", Kind::Text, "", "The URL by which browsers reach this server, such as `https://quality.example.com`. Logins come back there, and with `https` cookies are for TLS alone."),
    Key::new("server.trustedProxies", Kind::List, "", "Proxies before this server, by address or network such as `10.0.0.0/8`. Only theirs of `X-Forwarded-For`, `Forwarded` and `X-Forwarded-Proto` count."),
    Key::new("server.auth.mode", Kind::Words(&["off", "on"]), "off", "Whether callers must say who they are; `off` on loopback only."),
    Key::new("server.auth.ingest.required", Kind::Boolean, "as `server.auth.mode`", "Whether senders of OTLP must say who they are."),
    Key::new("server.auth.oidc.issuer", Kind::Text, "", "The identity provider of people: its issuer, an URL."),
    Key::new("server.auth.oidc.clientId", Kind::Text, "", "What this server is to it."),
    Key::new("server.auth.oidc.clientSecret", Kind::Secret, "", "Its proof, unless it is a public client."),
    Key::new("server.auth.oidc.scopes", Kind::List, "openid, profile, email", "What is asked for at a login."),
    Key::new("server.auth.oidc.roleClaim", Kind::Text, "roles", "The claim that holds a person's roles."),
    Key::new("server.auth.oidc.roles.*", Kind::Words(&["viewer", "editor", "admin"]), "", "What a value of that claim means here; a person without any is refused."),
    Key::new("server.auth.oidc.projectClaim", Kind::Text, "", "The claim that holds the names of a person's projects; without it a person has all."),
    Key::new("server.triggers.exec.allow", Kind::List, "", "Programs that an `exec` trigger may start, by their path; none without it."),
    Key::new("server.triggers.exec.env", Kind::List, "", "Variables that a test may set for such a program, by name; none without it."),
    Key::new("server.triggers.networks.allow", Kind::List, "", "What triggers may reach: networks such as `10.0.0.0/8`, `public`, `private`, `loopback`. Without it `public`; everything where the server listens on loopback only and `server.auth.mode` is `off`; never where clouds give credentials."),
    Key::new("server.triggers.networks.deny", Kind::List, "", "Networks that triggers may not reach, whatever else is said."),
    Key::new("server.stores.networks.allow", Kind::List, "", "What runs may reach to query trace stores: networks such as `10.0.0.0/8`, `public`, `private`, `loopback`. Without it `public`; everything where the server listens on loopback only and `server.auth.mode` is `off`; never where clouds give credentials."),
    Key::new("server.stores.networks.deny", Kind::List, "", "Networks that runs may not reach to query trace stores, whatever else is said."),
    Key::new("server.limits.bodyBytes", Kind::Size, "1MiB", "Bytes of a request's body."),
    Key::new("server.limits.requestsPerSecond", Kind::Integer { min: 1, max: 1_000_000 }, "200", "Requests a second of one caller."),
    Key::new("server.limits.projectRequestsPerSecond", Kind::Integer { min: 1, max: 1_000_000 }, "400", "Requests a second of all callers of one project."),
    Key::new("server.limits.traceBytes", Kind::Size, "64MiB", "Bytes of OTLP that a run's trace is made of."),
    Key::new("server.limits.spansPerTrace", Kind::Integer { min: 1, max: 10_000_000 }, "1000000", "Spans of a run's trace."),
    Key::new("workers.runs", Kind::Integer { min: 1, max: 10_000 }, "64", "Runs in flight at the most."),
    Key::new("workers.lease", Kind::Duration, "10s", "How long a run stays a server's without renewal: 3s to 10m."),
    Key::new("workers.poll", Kind::Duration, "1s", "How often the record is asked for runs when no hint comes: 50ms to 1m."),
    Key::new("workers.perHost", Kind::Integer { min: 1, max: 10_000 }, "32", "Runs in flight against one host at the most, of all servers together."),
    Key::new("workers.timeout", Kind::Duration, "10m", "How long a run may take: 1s to 24h."),
    Key::new("retention.runs", Kind::Text, "400d", "How long runs with their verdicts and events are kept: days, or `forever`."),
    Key::new("retention.traces", Kind::Text, "30d", "How long their traces are kept."),
    Key::new("retention.audit", Kind::Text, "400d", "How long the audit log is kept."),
    Key::new("retention.partition", Kind::Words(&["month", "day"]), "month", "The period of the tables of runs and traces, which are dropped as a whole: `day` for many thousand runs an hour."),
    Key::new("ids.keys", Kind::Secrets, "one in the record, made at the first start", "Keys of 32 hexadecimal digits: the first mints trace ids, all verify them."),
    Key::new("secrets.keys", Kind::Secrets, "", "Keys `name:64 hexadecimal digits` that encrypt variable sets, responses until the verdict and spans on disk: the first encrypts, all decrypt."),
    Key::new("log.level", Kind::Words(&["trace", "debug", "info", "warn", "error"]), "info", "The least severe level that is said on stderr."),
    Key::new("log.format", Kind::Words(&["text", "json"]), "text", "`json` is an object a line, with the ids of trace and span."),
    Key::new("nats.endpoint", Kind::Text, "", "Does not work yet, and is refused."),
];

/// The JSON Schema of the configuration file.
pub fn schema() -> serde_json::Value {
    config::schema(KEYS, "quality-trace-config")
}
