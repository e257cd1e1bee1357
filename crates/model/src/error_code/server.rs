//! Pages of errors that keep a server from starting.
#![expect(non_upper_case_globals, reason = "each page has the name of its code")]

use super::{ErrorPage, page};

pub(super) const ConfigurationInvalid: ErrorPage = page(
    "The configuration is invalid, or parts of it contradict each other.",
    "A key is unknown, a value has another form, a variable in it is not set, or two keys exclude each other.",
    "Correct the line that is shown; `qualitytrace config check --config FILE` reads the file and starts nothing.",
);
pub(super) const AccessOff: ErrorPage = page(
    "The server would listen beyond this machine while access is off.",
    "`server.bind` is no loopback address, and `server.auth.mode` is `off`, so that everyone could do everything.",
    "Write `server.auth.mode: on`, or listen on `127.0.0.1`.",
);
pub(super) const NatsRequired: ErrorPage = page(
    "The configuration needs NATS, and does not fit it.",
    "One process receives spans and another judges them without `nats.endpoint`, or NATS keeps spans for less time than a run takes.",
    "Set `nats.endpoint`, run both roles in one process, or set `nats.maxAge` above `workers.timeout`.",
);
pub(super) const PortInUse: ErrorPage = page(
    "The server cannot listen on an address.",
    "Another process listens there, or the address is not one of this machine.",
    "Stop that process, or choose another port with the key that the message names.",
);
pub(super) const CertificateInvalid: ErrorPage = page(
    "A certificate or its key cannot be used.",
    "A file is missing, is no PEM, or key and certificate do not belong together.",
    "Check the files of the key that the message names with `openssl x509 -in FILE -noout -text`.",
);
pub(super) const DataDirectoryUnusable: ErrorPage = page(
    "Spans cannot be stored in the data directory.",
    "`server.dataDirectory` cannot be written, is on a full disk, or another server uses it.",
    "Give each server a writable folder of its own in `server.dataDirectory`.",
);
pub(super) const ProvisioningInvalid: ErrorPage = page(
    "Documents of `server.provisioning` cannot be applied.",
    "A file cannot be read, a document in it is invalid, or two files have the same document.",
    "Correct what the message shows; `qualitytrace check FOLDER` reads the folder and starts nothing.",
);
pub(super) const ExporterInvalid: ErrorPage = page(
    "An exporter of the server's own telemetry cannot be started.",
    "A file of its TLS is missing, its directory cannot be written, or `server.telemetry.exporter` names none of `telemetry.exporters`.",
    "Correct the exporter that the message names; `qualitytrace telemetry probe --config FILE` sends a span through each.",
);
pub(super) const DatabaseUnreachable: ErrorPage = page(
    "Postgres cannot be reached.",
    "It does not run, `postgres.host` or `postgres.port` name another place, or all its connections are taken.",
    "Start it, and check the address with `psql` from this machine.",
);
pub(super) const DatabaseDenied: ErrorPage = page(
    "Postgres denies access.",
    "The password is wrong, or the role has no right to create tables in the database.",
    "Correct `postgres.user` and `postgres.password`, and make the role the owner of the database.",
);
pub(super) const DatabaseMissing: ErrorPage = page(
    "The database does not exist.",
    "`postgres.dbname` names a database that Postgres does not have.",
    "Create it with `create database NAME`, or name another one in `postgres.dbname`.",
);
pub(super) const DatabaseVersion: ErrorPage = page(
    "The database belongs to another version of this program.",
    "Its tables were made by a newer version, or by another program.",
    "Start the version that the other servers have, or name another database.",
);
