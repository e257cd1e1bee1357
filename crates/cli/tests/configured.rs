//! `config check`, HTTPS and the log, with the built binary.

use std::{fs, path::Path, process::Stdio, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use bench::parts::{Database, TEST_THAT_FIRES_NOTHING, qualitytrace};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{ChildStdout, Command},
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const SAID_MAX: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_configuration_is_checked_without_a_server() -> Result<()> {
    let folder = TempDir::new()?;
    let file = folder.path().join("quality-trace-config.yaml");
    let name = file.to_str().context("a path that is text")?;
    let cases = [
        ("log: {level: debug}\n", Some(0), "is right"),
        ("log: {level: loud}\n", Some(2), "`log.level` must be"),
        (
            "server: {tls: {cert: nowhere.pem, key: nowhere.key}}\n",
            Some(2),
            "`nowhere.pem` of `server.tls` cannot be read",
        ),
        ("server: {bind: 0.0.0.0}\n", Some(2), "is not a loopback address"),
        ("nats: {endpoint: x}\n", Some(2), "`nats.endpoint` must be URLs such as"),
        ("postgresConnString: x\n", Some(2), "instead: `postgres` with `host`"),
        (
            "tracer: {otel: {type: open-telemetry, endpoint: 'https://c:4317', tls: {caFile: nowhere.pem}}}\n",
            Some(2),
            "`nowhere.pem`",
        ),
        ("server: {provisioning: nowhere}\n", Some(2), "nowhere"),
        (
            "telemetry: {exporters: {c: {serviceName: '', exporter: {type: collector}}}}\n",
            Some(2),
            "serviceName` must be a name",
        ),
        // It has no endpoint, and the default is the server's own receiver.
        (
            "tracer: {otel: {type: open-telemetry}}\n",
            Some(0),
            "`tracer.otel` does not send: it has no `endpoint`, and the default",
        ),
        (
            "tracer: {otel: {type: open-telemetry, endpoint: 'localhost:4317'}}\n",
            Some(2),
            "this server's own OTLP port",
        ),
    ];
    for (text, code, words) in cases {
        fs::write(&file, text)?;
        let checked =
            qualitytrace(Path::new(BINARY), &["config", "check", "--config", name]).await?;
        assert_eq!(checked.code, code, "{text}: {checked:?}");
        assert!(format!("{}{}", checked.out, checked.err).contains(words), "{text}: {checked:?}");
    }
    Ok(())
}

/// The shortest tracer that the documentation of other programs shows.
#[tokio::test]
async fn a_tracer_without_an_endpoint_is_listed_as_not_sending() -> Result<()> {
    let folder = TempDir::new()?;
    let file = folder.path().join("quality-trace-config.toml");
    let name = file.to_str().context("a path that is text")?;
    fs::write(&file, "[tracer.otel]\ntype = \"open-telemetry\"\n")?;
    let planned = qualitytrace(Path::new(BINARY), &["telemetry", "plan", "--config", name]).await?;
    assert_eq!(planned.code, Some(0), "{planned:?}");
    assert!(planned.out.contains("not sending: `tracer.otel`"), "{planned:?}");
    assert!(planned.out.contains("`server.otlpGrpcPort`"), "{planned:?}");
    let probed = qualitytrace(Path::new(BINARY), &["telemetry", "probe", "--config", name]).await?;
    assert_eq!(probed.code, Some(1), "{probed:?}");
    assert!(probed.out.contains("not sending: `tracer.otel`"), "{probed:?}");
    Ok(())
}

#[tokio::test]
async fn the_api_is_served_by_tls_and_the_log_names_the_trace() -> Result<()> {
    let database = Database::create("configured").await?;
    let folder = TempDir::new()?;
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = pem("CERTIFICATE", made.cert.der());
    let (cert, key) = (folder.path().join("api.pem"), folder.path().join("api.key"));
    fs::write(&cert, &certificate)?;
    fs::write(&key, pem("PRIVATE KEY", &made.signing_key.serialize_der()))?;
    let config = folder.path().join("quality-trace-config.yaml");
    let text = format!(
        "{}\nserver: {{dataDirectory: '{}', tls: {{cert: '{}', key: '{}'}}}}\nlog: {{level: debug, format: json}}\n",
        database.section()?,
        folder.path().display(),
        cert.display(),
        key.display()
    );
    fs::write(&config, text)?;
    let mut child = Command::new(BINARY)
        .args(["serve", "--http", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0"])
        .args(["--otlp-grpc", "127.0.0.1:0", "--config"])
        .arg(&config)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut out = BufReader::new(child.stdout.take().context("stdout")?).lines();
    // At this level the server logs every statement: a pipe without a reader would block it.
    let mut log = BufReader::new(child.stderr.take().context("stderr")?).lines();
    let ended = async {
        while let Some(line) = log.next_line().await? {
            // Messages to a person about the command itself are no part of the log.
            let Ok(line) = serde_json::from_str::<Value>(&line) else { continue };
            if line["message"] == "a run ended" {
                return Ok(line);
            }
        }
        anyhow::bail!("the log has no word of the run")
    };
    let asks = run_cheap(&mut out, &certificate);
    let (asked, line) = tokio::join!(asks, timeout(SAID_MAX, ended));
    asked?;
    let line = line??;
    assert_eq!(
        (line["level"].as_str(), line["qualitytrace.run.verdict"].as_str()),
        (Some("info"), Some("inconclusive")),
        "{line}"
    );
    assert_eq!(line["trace_id"].as_str().map(str::len), Some(32), "{line}");
    assert_eq!(line["span_id"].as_str().map(str::len), Some(16), "{line}");
    child.kill().await?;
    database.remove().await
}

/// Waits for the server, and runs a test that ends at once: its variable has no value.
async fn run_cheap(out: &mut Lines<BufReader<ChildStdout>>, certificate: &str) -> Result<()> {
    // On a busy machine it first prints that it waits for its database.
    let mut ready = String::new();
    while !ready.starts_with("ready: ") {
        ready = timeout(SAID_MAX, out.next_line()).await??.context("a line")?;
    }
    let address = ready.split_once("API https://").context("it says where")?.1;
    let address = address.split(',').next().context("an address")?.to_owned();
    for (offered, expected) in [
        (["h2", "http/1.1"].as_slice(), Some(b"h2".as_slice())),
        (&["http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let stream = connect(&address, certificate, offered).await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), expected, "{offered:?}");
    }
    ask(&address, certificate, "GET /livez", "").await?;
    ask(&address, certificate, "PUT /api/v1/tests", TEST_THAT_FIRES_NOTHING).await?;
    ask(&address, certificate, "POST /api/v1/tests/cheap/runs", "").await
}

/// Connects by TLS that trusts only this certificate, and offers these protocols.
async fn connect(
    address: &str,
    certificate: &str,
    protocols: &[&str],
) -> Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes())?)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost")?;
    Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
}

/// Sends a request by TLS; a response without a success status is an error.
async fn ask(address: &str, certificate: &str, what: &str, body: &str) -> Result<()> {
    let mut stream = connect(address, certificate, &[]).await?;
    let length = body.len();
    let request = format!(
        "{what} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let _closed = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer)?;
    anyhow::ensure!(answer.starts_with("HTTP/1.1 20"), "{what}: {answer}");
    Ok(())
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}
