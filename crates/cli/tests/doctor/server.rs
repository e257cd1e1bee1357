//! Faults between this machine and a server.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use anyhow::Result;
use base64::{Engine, prelude::BASE64_STANDARD};
use bench::parts::{Api, Database, Mount, Server, free_port};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    process::Command,
    time::{Instant, sleep},
};

use super::{BINARY, begins, doctor, is_sound};

/// The key of stored secrets.
const SECRETS_KEY: &str = "2026:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// How long an exporter takes to notice that nothing is there.
const FAILED_MAX: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn faults_between_a_machine_and_a_server_come_first() -> Result<()> {
    let folder = TempDir::new()?;
    let nothing = format!("http://127.0.0.1:{}", free_port()?);
    let (code, printed) = doctor(folder.path(), &["--server", &nothing], &[]).await?;
    begins(&printed, "✘ connection", &["cannot be reached", &nothing]);
    assert_eq!(code, Some(1), "{printed}");

    let database = Database::create("doctor").await?;
    let away = database.section_at(free_port()?)?;
    let server = Server::start_listening(Path::new(BINARY), &away, "127.0.0.1:0").await?;
    let (code, printed) = doctor(folder.path(), &["--server", &server.api], &[]).await?;
    begins(&printed, "✘ database", &["postgres"]);
    assert_eq!(code, Some(1), "{printed}");
    server.kill().await?;

    let exporter = format!(
        "{}\nserver: {{auth: {{mode: on}}}}\ntracer: {{own: {{type: open-telemetry, endpoint: '{nothing}'}}}}\n",
        database.section()?
    );
    let server = Server::start_with(Path::new(BINARY), &exporter, "127.0.0.1:0").await?;
    let (code, printed) = doctor(folder.path(), &["--server", &server.api], &[]).await?;
    begins(&printed, "✘ rights", &["token"]);
    assert_eq!(code, Some(1), "{printed}");
    let wrong = [("QUALITYTRACE_TOKEN", "qtt_secretwrong")];
    let (_, printed) = doctor(folder.path(), &["--server", &server.api], &wrong).await?;
    begins(&printed, "✘ rights", &["token"]);
    assert!(!printed.contains("secretwrong"), "{printed}");

    let config = server.config.display().to_string();
    let mut create = Command::new(BINARY);
    create.args(["token", "create", "--name", "a", "--role", "viewer", "--config", &config]);
    let token = String::from_utf8(create.output().await?.stdout)?;
    let right = [("QUALITYTRACE_TOKEN", token.trim())];
    let began = Instant::now();
    let (code, printed) = loop {
        let (code, printed) = doctor(folder.path(), &["--server", &server.api], &right).await?;
        if printed.starts_with("! ") || began.elapsed() > FAILED_MAX {
            break (code, printed);
        }
        // The exporter tries once it has a span of a request.
        sleep(Duration::from_millis(200)).await;
    };
    begins(&printed, "! exporter", &["`tracer.own`", "refused the connection"]);
    assert_eq!(code, Some(0), "a warning is no error: {printed}");
    for line in ["✔ rights: `a`, role `viewer`", "✔ clocks", "✔ versions", "✔ readiness"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    assert!(!printed.contains(token.trim()), "{printed}");
    let (_, printed) =
        doctor(folder.path(), &["--server", &server.api, "--format", "json"], &right).await?;
    let findings: Value = serde_json::from_str(&printed)?;
    assert_eq!(findings[0]["state"], "warning", "{findings:#}");

    let plain = ["--server", "http://192.0.2.1:11633"];
    let (_, printed) = doctor(folder.path(), &plain, &right).await?;
    begins(&printed, "✘ connection", &["not sent", "TLS"]);
    assert!(printed.contains("[plain-token]"), "{printed}");
    let (_, printed) = doctor(folder.path(), &["--context", "nowhere"], &[]).await?;
    begins(&printed, "✘ context", &["`nowhere`"]);
    server.kill().await?;
    database.remove().await
}

/// Writes the certificate of an authority, and a certificate that it issued for a host and for some days from now, with its key.
#[expect(
    clippy::disallowed_methods,
    reason = "a certificate has dates, and the binary has the clock"
)]
fn certificates(folder: &Path, host: &str, days: i64) -> Result<[String; 3]> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?;
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new([host.to_owned()])?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let day = Duration::from_secs(86_400);
    let from = date_time_ymd(1970, 1, 1) + now - 30 * day;
    (params.not_before, params.not_after) = (from, from + day * u32::try_from(30 + days)?);
    let certificate = params.signed_by(&key, &issuer)?;
    let write = |name: &str, label: &str, der: &[u8]| -> Result<String> {
        let path = folder.join(name);
        let text = BASE64_STANDARD.encode(der);
        fs::write(&path, format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n"))?;
        Ok(path.display().to_string())
    };
    Ok([
        write("ca.pem", "CERTIFICATE", authority.der())?,
        write("api.pem", "CERTIFICATE", certificate.der())?,
        write("api.key", "PRIVATE KEY", &key.serialize_der())?,
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_certificate_comes_first() -> Result<()> {
    let folder = TempDir::new()?;
    let database = Database::create("doctor_tls").await?;
    let cases = [
        ("127.0.0.1", 90, "", ""),
        ("127.0.0.1", 5, "! certificate", "expires in 4 days"),
        ("127.0.0.1", -1, "✘ certificate", "expired on 20"),
        ("example.com", 90, "✘ certificate", "is for another host"),
    ];
    for (host, days, sign, words) in cases {
        let [ca, cert, key] = certificates(folder.path(), host, days)?;
        let tls = format!("server: {{tls: {{cert: '{cert}', key: '{key}'}}}}\n");
        let configuration = format!("{}\n{tls}", database.section()?);
        let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
        let arguments = ["--server", &server.api, "--ca", &ca];
        let (code, printed) = doctor(folder.path(), &arguments, &[]).await?;
        if sign.is_empty() {
            is_sound(code, &printed);
            assert!(printed.contains("✔ certificate: trusted, until 20"), "{printed}");
            let (code, printed) = doctor(folder.path(), &arguments[..2], &[]).await?;
            begins(&printed, "✘ certificate", &["an authority that this machine does not trust"]);
            assert!(printed.contains("`--ca FILE`"), "{printed}");
            assert_eq!(code, Some(1), "{printed}");
        } else {
            begins(&printed, sign, &[words, &server.api]);
            assert_eq!(code, Some(i32::from(sign.starts_with('✘'))), "{printed}");
        }
        server.kill().await?;
    }
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_respond_comes_first() -> Result<()> {
    let folder = TempDir::new()?;
    let database = Database::create("doctor_store").await?;
    let configuration = format!("{}\nsecrets: {{keys: ['{SECRETS_KEY}']}}\n", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let (code, printed) = doctor(folder.path(), &["--server", &server.api], &[]).await?;
    is_sound(code, &printed);
    let closed = free_port()?;
    let store = format!(
        "type: TraceStore\nspec:\n  name: prod\n  type: jaeger\n  jaeger: {{endpoint: '127.0.0.1:{closed}', tls: {{insecure: true}}}}\n"
    );
    Api::new(&server.api)?.apply(&store).await?;
    let (code, printed) = doctor(folder.path(), &["--server", &server.api], &[]).await?;
    begins(&printed, "✘ trace store", &["`prod` does not respond", &closed.to_string()]);
    assert_eq!(code, Some(1), "{printed}");
    server.kill().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "a test says what it skips")]
async fn a_full_disk_comes_first() -> Result<()> {
    const MIB: u64 = 1024 * 1024;
    let folder = TempDir::new()?;
    let Ok(disk) = Mount::new(64 * MIB) else {
        println!("skipped: a disk of its own needs root");
        return Ok(());
    };
    let database = Database::create("doctor_disk").await?;
    // Nothing takes the spans of the server, so that it writes them to its disk.
    let configuration = format!(
        "{}\ntracer: {{own: {{type: open-telemetry, endpoint: 'http://127.0.0.1:{}'}}}}\n",
        database.section()?,
        free_port()?
    );
    let within = TempDir::new_in(disk.path())?;
    let server = Server::start_in(within, Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    // What is left of the disk.
    let mut filler = fs::File::create(disk.path().join("filler"))?;
    while std::io::Write::write_all(&mut filler, &[1; 4096]).is_ok() {}
    let began = Instant::now();
    let (code, printed) = loop {
        let (code, printed) = doctor(folder.path(), &["--server", &server.api], &[]).await?;
        if printed.starts_with("✘ ") || began.elapsed() > FAILED_MAX {
            break (code, printed);
        }
        // Each request gives it a span to write.
        sleep(Duration::from_millis(200)).await;
    };
    begins(&printed, "✘ disk", &["`tracer.own`", "No space left on device"]);
    assert_eq!(code, Some(1), "{printed}");
    server.kill().await?;
    database.remove().await
}
