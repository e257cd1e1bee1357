//! Peers whose certificates an authority of the operator's own signed: the identity provider, Postgres and NATS, by TLS. A file of that
//! authority makes the server trust them, and nothing else does.

use std::{fs, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use bench::parts::{Cluster, Database, NatsCluster, Server, qualitytrace};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use reqwest::{Client, Response, header::LOCATION, redirect::Policy};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const STATE_MAX: Duration = Duration::from_secs(30);
/// How a certificate is refused, whatever the authority that was tried: none, or another one of the same name.
const NOT_TRUSTED: &str = "invalid peer certificate";

/// An authority, and a certificate of this machine that it signed, all in PEM form.
struct Certificates {
    authority: String,
    certificate: String,
    key: String,
}

impl Certificates {
    fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let authority = params.self_signed(&key)?;
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate()?;
        let names = ["127.0.0.1", "localhost"].map(str::to_owned).to_vec();
        let certificate = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
        Ok(Self {
            authority: pem("CERTIFICATE", authority.der()),
            certificate: pem("CERTIFICATE", certificate.der()),
            key: pem("PRIVATE KEY", &key.serialize_der()),
        })
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

/// Writes a file, and returns its path.
fn file(folder: &TempDir, name: &str, content: &str) -> Result<String> {
    let path = folder.path().join(name);
    fs::write(&path, content)?;
    Ok(path.display().to_string())
}

/// What a login needs of an identity provider until the browser leaves for it: its discovery document. The rest is a stand-in's
/// addresses.
struct Provider {
    issuer: String,
    _tasks: JoinSet<()>,
}

impl Provider {
    async fn start(certificates: &Certificates) -> Result<Self> {
        let chain = vec![CertificateDer::from_pem_slice(certificates.certificate.as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(certificates.key.as_bytes())?;
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        let (tls, listener) =
            (TlsAcceptor::from(Arc::new(tls)), TcpListener::bind("127.0.0.1:0").await?);
        let issuer = format!("https://localhost:{}", listener.local_addr()?.port());
        let body = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/keys"),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that does not trust it ends the handshake.
                drop(answer(&tls, stream, &body.to_string()).await);
            }
        });
        Ok(Self { issuer, _tasks: tasks })
    }
}

/// Answers one request with this JSON.
async fn answer(tls: &TlsAcceptor, stream: TcpStream, body: &str) -> Result<()> {
    let mut stream = BufReader::new(tls.accept(stream).await?);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 2 {
        line.clear();
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

/// Begins a login at a server that has this line in its section of the provider.
async fn login(database: &Database, issuer: &str, ca: &str) -> Result<Response> {
    let configuration = format!(
        "{}\nserver: {{auth: {{mode: on, oidc: {{issuer: '{issuer}', clientId: qt, roles: {{a: admin}}{ca}}}}}}}\n",
        database.section()?
    );
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let client = Client::builder().no_proxy().redirect(Policy::none()).build()?;
    let response = client.get(format!("{}/auth/login", server.api)).send().await?;
    server.kill().await?;
    Ok(response)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_provider_is_trusted_by_its_own_authority_alone() -> Result<()> {
    let (database, folder) = (Database::create("oidc_ca").await?, TempDir::new()?);
    let (own, other) = (Certificates::new()?, Certificates::new()?);
    let provider = Provider::start(&own).await?;
    let own = file(&folder, "own.pem", &own.authority)?;
    let other = file(&folder, "other.pem", &other.authority)?;
    let trusted = login(&database, &provider.issuer, &format!(", ca: '{own}'")).await?;
    assert_eq!(trusted.status(), 303);
    let there = trusted.headers()[LOCATION].to_str()?;
    assert!(there.starts_with(&format!("{}/authorize?", provider.issuer)), "{there}");
    for ca in [String::new(), format!(", ca: '{other}'")] {
        let refused = login(&database, &provider.issuer, &ca).await?;
        assert_eq!(refused.status(), 503, "{ca}");
        let body = refused.text().await?;
        assert!(body.contains(NOT_TRUSTED), "{ca}: {body}");
    }
    database.remove().await
}

/// Waits until a server that is not ready gives this reason.
async fn waits_for(server: &Server, reason: &str) -> Result<()> {
    let began = Instant::now();
    loop {
        let status = qualitytrace(Path::new(BINARY), &["status", "--server", &server.api]).await?;
        if status.code == Some(1) && status.out.contains(reason) {
            return Ok(());
        }
        ensure!(began.elapsed() < STATE_MAX, "{}{}", status.out, status.err);
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_trusted_by_its_own_authority_alone() -> Result<()> {
    let (mut cluster, folder) = (Cluster::create().await?, TempDir::new()?);
    let (own, other) = (Certificates::new()?, Certificates::new()?);
    let certificate = cluster.file("server.pem", &own.certificate)?;
    let key = cluster.file("server.key", &own.key)?;
    let certificate = format!("ssl_cert_file={}", certificate.display());
    let key = format!("ssl_key_file={}", key.display());
    cluster.start_with(&["fsync=off", "ssl=on", &certificate, &key]).await?;
    let own = file(&folder, "own.pem", &own.authority)?;
    let other = file(&folder, "other.pem", &other.authority)?;
    let section = |ca: &str| {
        let params = format!(", params: 'sslmode=verify-full{ca}'}}");
        let section = cluster.section();
        section.strip_suffix('}').map(|it| format!("{it}{params}\n")).context("a section")
    };
    let trusted = section(&format!(" sslrootcert={own}"))?;
    let server = Server::start_with(Path::new(BINARY), &trusted, "127.0.0.1:0").await?;
    let encrypted = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid)
         where ssl and application_name = 'qualitytrace'";
    assert!(cluster.count(encrypted).await? > 0, "its connections use TLS");
    server.kill().await?;
    for ca in [String::new(), format!(" sslrootcert={other}")] {
        let server =
            Server::start_listening(Path::new(BINARY), &section(&ca)?, "127.0.0.1:0").await?;
        waits_for(&server, NOT_TRUSTED).await?;
        server.kill().await?;
    }
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_is_trusted_by_its_own_authority_alone() -> Result<()> {
    let (database, folder) = (Database::create("nats_ca").await?, TempDir::new()?);
    let (own, other) = (Certificates::new()?, Certificates::new()?);
    let certificate = file(&folder, "server.pem", &own.certificate)?;
    let key = file(&folder, "server.key", &own.key)?;
    let tls = format!("tls {{ cert_file: \"{certificate}\", key_file: \"{key}\" }}\n");
    let nats = NatsCluster::start_with(1, true, &tls).await?;
    let own = file(&folder, "own.pem", &own.authority)?;
    let other = file(&folder, "other.pem", &other.authority)?;
    let configuration =
        |ca: &str| Ok::<_, anyhow::Error>(format!("{}\n{}", database.section()?, nats.section(ca)));
    let trusted = configuration(&format!(", ca: '{own}'"))?;
    let server = Server::start_with(Path::new(BINARY), &trusted, "127.0.0.1:0").await?;
    assert_eq!(server.terminate().await?, Some(0), "it was ready");
    for ca in [String::new(), format!(", ca: '{other}'")] {
        let configuration = configuration(&ca)?;
        let server =
            Server::start_listening(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
        waits_for(&server, NOT_TRUSTED).await?;
        server.kill().await?;
    }
    database.remove().await
}

#[tokio::test]
async fn a_file_without_authorities_is_refused_by_its_key() -> Result<()> {
    let folder = TempDir::new()?;
    let certificates = Certificates::new()?;
    let key = file(&folder, "key.pem", &certificates.key)?;
    let oidc = |ca: &str| {
        format!(
            "server: {{auth: {{mode: on, oidc: {{issuer: 'https://id', clientId: a, ca: '{ca}'}}}}}}"
        )
    };
    let nats = |ca: &str| format!("nats: {{endpoint: 'tls://n:4222', ca: '{ca}'}}");
    let postgres = |ca: &str| format!("postgres: {{params: 'sslrootcert={ca}'}}");
    for (configuration, named, reason) in [
        (oidc("nowhere.pem"), "server.auth.oidc.ca", "cannot be read"),
        (oidc(&key), "server.auth.oidc.ca", "holds no certificate"),
        (nats("nowhere.pem"), "nats.ca", "cannot be read"),
        (nats(&key), "nats.ca", "holds no certificate"),
        (postgres("nowhere.pem"), "postgres.params", "cannot be read"),
        (postgres(&key), "postgres.params", "holds no certificate"),
    ] {
        let config = file(&folder, "server.yaml", &configuration)?;
        let check = ["config", "check", "--config", &config];
        let refused = qualitytrace(Path::new(BINARY), &check).await?;
        assert_eq!(refused.code, Some(2), "{configuration}: {}{}", refused.out, refused.err);
        let is_named = refused.err.contains(&format!("of `{named}` {reason}"));
        assert!(is_named && refused.err.contains("[certificate-invalid]"), "{}", refused.err);
    }
    Ok(())
}
