//! Configuration files as data: each gives the plan or the rendered diagnostics in the file beside it.

use std::{fs, path::Path};

use golden::Golden;
use server::config::{self, Environment};
use source::{Colour, Text};

#[test]
fn every_file_gives_its_configuration_or_all_its_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config");
    let mut golden = Golden::default();
    for path in golden::files(&folder, &["yaml", "toml"]) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let text = Text::new(name, fs::read_to_string(&path).expect("a file"));
        let read = config::read(&text, &Environment::default());
        let drawn = source::draw(&read.diagnostics, Colour::Never);
        let found = match read.config {
            Some(config) => format!("{drawn}{config:#?}\n"),
            None => drawn,
        };
        golden.compare(&folder.join(format!("{name}.txt")), &found);
    }
    golden.finish(14);
}

#[test]
fn the_schema_is_the_one_that_editors_get() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let schema = serde_json::to_string_pretty(&config::schema()).expect("JSON");
    let mut golden = Golden::default();
    golden.compare(&docs.join("quality-trace-config.schema.json"), &format!("{schema}\n"));
    golden.finish(1);
}

#[test]
fn no_two_keys_or_flags_share_a_variable() {
    let shared = telemetry::config::shared_names(&[telemetry::config::KEYS, config::KEYS]);
    assert!(shared.is_empty(), "{shared:?}");
    for flag in config::FLAGS {
        let keys = telemetry::config::KEYS.iter().chain(config::KEYS);
        let named = keys
            .filter(|key| !key.path.contains('*'))
            .find(|key| telemetry::config::environment_name(config::PREFIX, key.path) == **flag);
        assert_eq!(named, None, "{flag}");
    }
}

#[test]
fn the_environment_overrules_the_file_and_its_mistakes_are_shown_there() {
    let text =
        Text::new("config.yaml", "server: {httpPort: 1}\npostgres: {password: \"${PASS:-x}\"}\n");
    let environment = Environment::from_iter([
        ("QUALITYTRACE_SERVER_HTTPPORT", "4000"),
        ("PASS", "secret"),
        ("QUALITYTRACE_PORT_443_TCP", "injected"),
    ]);
    let read = config::read(&text, &environment);
    let config = read.config.expect("nothing is wrong");
    assert_eq!((config.listen.http.port(), config.postgres.password.expose()), (4000, "secret"));
    assert!(read.notices[0].contains("QUALITYTRACE_PORT_443_TCP"), "{:?}", read.notices);

    let environment = Environment::from_iter([("QUALITYTRACE_SERVER_HTTPPORT", "70000")]);
    let read = config::read(&text, &environment);
    let drawn = source::draw(&read.diagnostics, Colour::Never);
    assert!(read.config.is_none() && drawn.contains("environment:1:"), "{drawn}");
    assert!(drawn.contains("QUALITYTRACE_SERVER_HTTPPORT=70000"), "{drawn}");
}

/// A value for each of the server's own keys that differs from its default.
const VALUES: &str = "
postgres.host=db
postgres.port=1
postgres.user=me
postgres.password=word
postgres.dbname=record
postgres.params=sslmode=require
postgres.pool=3
server.bind=0.0.0.0
server.migrate=false
server.auth.bootstrapToken=qtt_0123456789012345678901234567890123456789abc
server.httpPort=2
server.otlpGrpcPort=3
server.otlpHttpPort=4
server.probePort=5
server.dataDirectory=/data
server.provisioning=/documents
server.tls.cert=api.pem
server.tls.key=api.key
server.otlpTls.cert=otlp.pem
server.otlpTls.key=otlp.key
server.otlpTls.clientCa=senders.pem
server.telemetry.exporter=one
server.telemetry.applicationExporter=one
server.auth.mode=on
server.auth.ingest.required=false
server.auth.oidc.issuer=https://id.example.com
server.auth.oidc.clientId=qualitytrace
server.auth.oidc.clientSecret=word
server.auth.oidc.ca=provider.pem
server.auth.oidc.scopes=openid, groups
server.auth.oidc.roleClaim=groups
server.auth.oidc.roles.testers=admin
server.auth.oidc.projectClaim=teams
server.publicUrl=https://quality.example.com
server.web=off
server.pathPrefix=/team/quality
server.demo=true
server.trustedProxies=10.0.0.0/8, ::1
server.roles=api,ingest
server.triggers.exec.allow=/bin/one,/bin/two
server.triggers.exec.env=ONE,TWO
server.triggers.networks.allow=10.0.0.0/8
server.triggers.networks.deny=10.1.0.0/16, fd00::/8
server.limits.bodyBytes=2MiB
server.limits.requestsPerSecond=5
server.limits.projectRequestsPerSecond=9
server.stores.networks.allow=private
server.stores.networks.deny=10.9.0.0/16
server.limits.queuedRuns=8
server.limits.traceBytes=3MiB
server.limits.spansPerTrace=6
workers.runs=7
workers.lease=8s
workers.poll=9s
workers.perHost=10
workers.timeout=11s
retention.runs=12d
retention.traces=13d
retention.audit=forever
retention.partition=day
ids.keys=00112233445566778899aabbccddeeff
secrets.keys=a:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
log.level=error
log.format=json
nats.endpoint=nats://one:4222, tls://two:4222
nats.user=quality
nats.password=hunter2
nats.ca=ca.pem
nats.prefix=qa-2
nats.streams=2
nats.replicas=5
nats.synced=true
nats.maxBytes=14MiB
nats.maxAge=15m
";

/// The ways to log in to NATS beside that by name: only one is allowed.
const OTHER_LOGINS: [&str; 2] = ["nats.nkey", "nats.credentials"];

#[test]
fn every_key_of_the_table_is_read_from_its_variable() {
    let values: Vec<_> = VALUES.lines().filter_map(|line| line.split_once('=')).collect();
    for key in config::KEYS.iter().filter(|key| !OTHER_LOGINS.contains(&key.path)) {
        let path = key.path.replace('*', "testers");
        assert!(values.iter().any(|(known, _)| *known == path), "`{path}` has no value above");
    }
    let name = |path: &str| telemetry::config::environment_name(config::PREFIX, path);
    let environment: Environment =
        values.iter().map(|(path, value)| (name(path), (*value).to_owned())).collect();
    // A name that the user chooses is in the file.
    let text = "telemetry: {exporters: {one: {exporter: {type: collector}}}}
server: {auth: {oidc: {roles: {testers: viewer}}}}
";
    let read = config::read(&Text::new("config.yaml", text), &environment);
    let drawn = source::draw(&read.diagnostics, Colour::Never);
    assert!(read.notices.is_empty(), "{:?}", read.notices);
    let config = read.config.unwrap_or_else(|| panic!("{drawn}"));
    let found = server::config::Config { telemetry: Default::default(), ..config.clone() };
    assert_eq!(config.telemetry.roles().own.as_deref(), Some("telemetry.exporters.one"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut golden = Golden::default();
    golden.compare(&folder.join("environment.txt"), &format!("{found:#?}\n"));
    golden.finish(1);
}
