//! Access control: a real server on a real Postgres, every route by every role, and by unauthenticated callers.

mod page;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use bench::parts::Database;
use model::{Role, Timestamp, World};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use server::{
    ACCESS, FirstToken, Handle, INGEST_ROLES, Need, StartError, Telemetry,
    config::{self, Config, Environment, Mode},
    create_token,
};
use source::Text;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime,
    task::JoinSet,
    time::timeout,
};

const WORLD: World = World::new(now, random);
/// A rate limit above the number of requests of a test.
const FAST: &str = "requestsPerSecond: 10000, projectRequestsPerSecond: 10000";

fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "a test is a main of its own")]
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

/// A server with authentication on, and a client of it.
struct Stage {
    database: Database,
    config: Config,
    server: Handle,
    base: String,
    client: Client,
    admin: String,
}

fn configuration(database: &Database, more: &str) -> Result<Config> {
    let text = Text::new("config.yaml", format!("{}\n{more}", database.section()?));
    let mut config = config::read(&text, &Environment::default()).config.context("no mistakes")?;
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    config.listen = config::Listen { http: any, otlp_grpc: any, otlp_http: any, probes: None };
    Ok(config)
}

async fn start(config: Config) -> Result<Handle> {
    let telemetry = Arc::new(Telemetry::start(&config, server::host())?);
    Ok(server::start(config, telemetry, WORLD, runtime::Handle::current(), None).await?)
}

fn first(role: Role) -> FirstToken {
    FirstToken { name: format!("first {role}"), role, projects: None, days: 1 }
}

impl Stage {
    async fn set(name: &str, limits: &str) -> Result<Self> {
        Self::set_with(name, &format!("auth: {{mode: on}}, limits: {{{limits}}}")).await
    }

    /// Starts a server with this section `server`.
    async fn set_with(name: &str, section: &str) -> Result<Self> {
        let database = Database::create(name).await?;
        let config = configuration(&database, &format!("server: {{{section}}}"))?;
        let admin = create_token(&config, first(Role::Admin), WORLD).await?.expose().to_owned();
        let server = start(config.clone()).await?;
        let base = format!("http://{}", server.addresses().http);
        let client = Client::builder().no_proxy().build()?;
        Ok(Self { database, config, server, base, client, admin })
    }

    fn ask(&self, method: &str, path: &str, token: &str) -> Result<RequestBuilder> {
        let method = Method::from_bytes(method.as_bytes())?;
        let request = self.client.request(method, format!("{}{path}", self.base));
        Ok(if token.is_empty() { request } else { request.bearer_auth(token) })
    }

    /// Creates a token as the admin.
    async fn token(&self, new: Value) -> Result<(String, String)> {
        let request = self.ask("POST", "/api/v1/tokens", &self.admin)?.body(new.to_string());
        let made = answer(request.send().await?).await?;
        let text = |key: &str| made[key].as_str().map(str::to_owned).context("told");
        Ok((text("id")?, text("token")?))
    }

    async fn end(self) -> Result<()> {
        assert!(self.server.shutdown().await.is_delivered());
        self.database.remove().await
    }
}

async fn answer(response: Response) -> Result<Value> {
    Ok(serde_json::from_slice(&response.bytes().await?)?)
}

/// Returns a path of a route, with ids that do not exist.
fn path(route: &str) -> String {
    let id = "01a1dcee-cd00-7101-8101-010101010101";
    let part = |part: &str| match part {
        "{run}" => id.to_owned(),
        "{id}" if route.contains("/tokens/") || route.contains("/sessions/") => id.to_owned(),
        part if part.starts_with('{') => "absent".to_owned(),
        part => part.to_owned(),
    };
    route.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// The access table has every operation of the OpenAPI document, and no other.
#[test]
fn every_operation_has_its_place_in_the_table() -> Result<()> {
    let document: Value = serde_json::from_str(server::openapi())?;
    let mut documented = Vec::new();
    for (path, operations) in document["paths"].as_object().context("paths")? {
        for method in operations.as_object().context("operations")?.keys() {
            documented.push((method.to_ascii_uppercase(), path.clone()));
        }
    }
    let undocumented = ["/api/v1/openapi.json"];
    let listed = ACCESS
        .iter()
        .filter(|(_, route, _)| !undocumented.contains(route) && route.starts_with("/api/"));
    let mut listed: Vec<_> =
        listed.map(|(method, route, _)| ((*method).to_owned(), (*route).to_owned())).collect();
    documented.sort();
    listed.sort();
    assert_eq!(listed, documented);
    Ok(())
}

/// Each route: without a token, with an invalid token, with each role, and with each role in a project of its own.
#[tokio::test(flavor = "multi_thread")]
async fn every_route_by_every_role() -> Result<()> {
    let stage = Stage::set("access_table", FAST).await?;
    let mut callers = vec![
        ("nobody", String::new(), None, false),
        ("a liar", stage.admin.replace("qtt_", "qtt_x"), None, false),
    ];
    for role in Role::ALL {
        for is_scoped in [false, true] {
            let projects = if is_scoped { json!(["a"]) } else { Value::Null };
            let name = format!("{role} {is_scoped}");
            let new = json!({"name": name, "role": role.as_str(), "projects": projects});
            let (_, token) = stage.token(new).await?;
            callers.push((role.as_str(), token, Some(role), is_scoped));
        }
    }
    for (method, route, need) in ACCESS {
        for (who, token, role, is_scoped) in &callers {
            for project in ["", "?project=a", "?project=b", "?project=a&project=b"] {
                if !matches!(need, Need::Project(_)) && !project.is_empty() {
                    continue;
                }
                let path = format!("{}{project}", path(route));
                let response = stage.ask(method, &path, token)?.send().await?;
                let expected = match (need, role) {
                    // No page of the server sent it.
                    (Need::Open, _) if *route == "/auth/session" => Some(StatusCode::FORBIDDEN),
                    (Need::Open, _) => None,
                    (_, None) => Some(StatusCode::UNAUTHORIZED),
                    (Need::Known | Need::Own, Some(_)) => None,
                    (Need::Project(least), Some(role)) => {
                        let is_foreign = *is_scoped && project != "?project=a";
                        (role < least || is_foreign).then_some(StatusCode::FORBIDDEN)
                    }
                    (Need::Server(least), Some(role)) => {
                        (role < least || *is_scoped).then_some(StatusCode::FORBIDDEN)
                    }
                };
                let status = response.status();
                let case = format!("{method} {path} by {who}, scoped {is_scoped}: {status}");
                match expected {
                    Some(expected) => assert_eq!(status, expected, "{case}"),
                    None => assert!(![401, 403, 405, 429].contains(&status.as_u16()), "{case}"),
                }
                if status == StatusCode::UNAUTHORIZED {
                    assert_eq!(
                        response.headers()["www-authenticate"],
                        "Bearer realm=\"qualitytrace\""
                    );
                }
                for (name, value) in
                    [("x-content-type-options", "nosniff"), ("x-frame-options", "DENY")]
                {
                    assert_eq!(response.headers()[name], value, "{case}");
                }
                assert!(!response.headers().contains_key("access-control-allow-origin"), "{case}");
            }
        }
    }
    // The sessions of everyone are for an admin of the server.
    for (who, token, role, is_scoped) in &callers {
        let expected = match role {
            None => 401,
            Some(Role::Admin) if !is_scoped => 200,
            Some(_) => 403,
        };
        let all = stage.ask("GET", "/api/v1/sessions?all=true", token)?.send().await?;
        assert_eq!(all.status(), expected, "{who}, scoped {is_scoped}");
    }
    // Only an authenticated caller learns that a route does not exist.
    for (token, status) in [("", 401), (&*stage.admin, 404)] {
        assert_eq!(stage.ask("GET", "/api/v1/nothing", token)?.send().await?.status(), status);
    }
    assert_eq!(stage.ask("PATCH", "/api/v1/tokens", &stage.admin)?.send().await?.status(), 405);
    stage.end().await
}

/// A token is shown once, and is valid until it expires or is revoked; the audit log has who did what.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_lives_and_ends() -> Result<()> {
    let stage = Stage::set("access_life", "").await?;
    let (id, token) =
        stage.token(json!({"name": "ci", "role": "viewer", "projects": ["a", "b"]})).await?;
    let me = || stage.ask("GET", "/api/v1/me", &token);
    let told = answer(me()?.send().await?).await?;
    assert_eq!(told, json!({"name": "ci", "role": "viewer", "projects": ["a", "b"]}));
    let list = || async {
        answer(stage.ask("GET", "/api/v1/tokens?limit=1", &stage.admin)?.send().await?).await
    };
    let page = list().await?;
    assert_eq!(page["items"][0]["name"], "ci", "{page}");
    assert_eq!(page["items"][0]["madeBy"], "first admin", "{page}");
    assert!(!page.to_string().contains(&token["qtt_".len()..]), "{page}");
    let next = page["next"].as_str().context("there is another")?;
    let path = format!("/api/v1/tokens?limit=10&cursor={next}");
    let rest = answer(stage.ask("GET", &path, &stage.admin)?.send().await?).await?;
    assert_eq!(rest["items"][0]["name"], "first admin", "{rest}");
    assert_eq!(rest["next"], Value::Null, "{rest}");
    let revoke = stage.ask("DELETE", &format!("/api/v1/tokens/{id}"), &stage.admin)?;
    assert_eq!(revoke.send().await?.status(), 204);
    assert_eq!(me()?.send().await?.status(), 401, "taken back");
    let expired = create_token(&stage.config, FirstToken { days: 0, ..first(Role::Admin) }, WORLD);
    let expired = expired.await?;
    assert_eq!(stage.ask("GET", "/api/v1/me", expired.expose())?.send().await?.status(), 401);
    for (new, words) in [
        (json!({"name": "", "role": "viewer"}), "`name` is not one"),
        (json!({"name": "x", "role": "king"}), "unknown variant `king`"),
        (json!({"name": "x", "role": "viewer", "expiresInDays": 0}), "expected 1 to 3660"),
        (json!({"name": "x", "role": "viewer", "projects": []}), "`projects` has none"),
        (json!({"name": "x", "role": "viewer", "more": 1}), "unknown field `more`"),
    ] {
        let refused =
            stage.ask("POST", "/api/v1/tokens", &stage.admin)?.body(new.to_string()).send().await?;
        assert_eq!(refused.status(), 400, "{new}");
        let problem = answer(refused).await?;
        assert!(problem["detail"].as_str().unwrap_or_default().contains(words), "{problem}");
    }
    let audit =
        answer(stage.ask("GET", "/api/v1/audit?limit=500", &stage.admin)?.send().await?).await?;
    let entries = audit["items"].as_array().context("entries")?;
    let told: Vec<_> = entries
        .iter()
        .rev()
        .map(|it| (it["method"].as_str().unwrap_or_default(), it["status"].as_i64()))
        .collect();
    let refusals = [("POST", Some(400)); 5];
    assert_eq!(told[..2], [("POST", Some(201)), ("DELETE", Some(204))], "{audit}");
    assert_eq!(told[2..], refusals, "{audit}");
    for entry in entries {
        assert_eq!(
            (&entry["who"], &entry["address"]),
            (&json!("first admin"), &json!("127.0.0.1"))
        );
        assert!(entry["token"].is_string() && entry["subject"].is_null(), "{entry}");
    }
    stage.end().await
}

/// A caller that exceeds the rate limit has to wait, and so has one that guesses tokens.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_too_often_waits() -> Result<()> {
    let stage = Stage::set("access_pace", "requestsPerSecond: 5, bodyBytes: 1KiB").await?;
    let (_, other) = stage.token(json!({"name": "other", "role": "editor"})).await?;
    let many = async |token: &str| {
        let mut asking = JoinSet::new();
        for _ in 0..60 {
            asking.spawn(stage.ask("GET", "/api/v1/me", token)?.send());
        }
        let mut statuses = Vec::new();
        while let Some(response) = asking.join_next().await {
            let response = response??;
            if response.status() == 429 {
                assert_eq!(response.headers()["retry-after"], "1");
            }
            statuses.push(response.status().as_u16());
        }
        anyhow::Ok(statuses)
    };
    let statuses = many(&stage.admin).await?;
    assert!(statuses.contains(&429) && statuses.contains(&200), "{statuses:?}");
    let large = stage.ask("PUT", "/api/v1/tests", &other)?.body("#".repeat(1025)).send().await?;
    assert_eq!(
        large.status(),
        413,
        "what is too large is refused, and another has a count of its own"
    );
    let expired = create_token(&stage.config, FirstToken { days: 0, ..first(Role::Admin) }, WORLD);
    let never_was_one = format!("qtt_{}", "x".repeat(43));
    for guess in [expired.await?.expose(), &never_was_one] {
        let guesses = many(guess).await?;
        assert!(guesses.contains(&429) && !guesses.contains(&200), "{guesses:?}");
    }
    stage.end().await
}

/// However many tokens a project has, its callers share one rate limit, and another project is not affected.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_a_project_share_a_rate() -> Result<()> {
    let stage = Stage::set("access_shared_pace", "projectRequestsPerSecond: 5").await?;
    let ask = async |token: &str, project: &str| {
        let path = format!("/api/v1/tests?project={project}");
        anyhow::Ok(stage.ask("GET", &path, token)?.send().await?.status().as_u16())
    };
    let mut statuses = Vec::new();
    for n in 0..8 {
        let new = json!({"name": format!("a{n}"), "role": "viewer", "projects": ["alpha"]});
        let (_, token) = stage.token(new).await?;
        // A refused request does not count for the project.
        assert_eq!(ask(&token, "beta").await?, 403);
        statuses.push((ask(&token, "alpha").await?, token));
    }
    let mut asking = JoinSet::new();
    for (status, token) in &statuses {
        assert!(matches!(status, 200 | 429), "{status}");
        for _ in 0..8 {
            asking.spawn(stage.ask("GET", "/api/v1/tests?project=alpha", token)?.send());
        }
    }
    let mut refused = Vec::new();
    while let Some(response) = asking.join_next().await {
        let response = response??;
        if response.status() == 429 {
            assert_eq!(response.headers()["retry-after"], "1");
            refused.push(response.text().await?);
        }
    }
    assert!(refused.len() > 32, "{} of 64", refused.len());
    assert!(refused[0].contains("`server.limits.projectRequestsPerSecond`"), "{}", refused[0]);
    let (_, beta) =
        stage.token(json!({"name": "b", "role": "viewer", "projects": ["beta"]})).await?;
    assert_eq!(ask(&beta, "beta").await?, 200);
    stage.end().await
}

/// Callers behind a trusted proxy each have their own rate limit, and the audit log has their addresses. The headers of any
/// other peer are ignored.
#[tokio::test(flavor = "multi_thread")]
async fn callers_behind_a_trusted_proxy_are_told_apart() -> Result<()> {
    for (name, section, is_trusted) in [
        ("access_proxy", "trustedProxies: [127.0.0.1, 10.0.0.0/8]", true),
        ("access_no_proxy", "trustedProxies: [10.0.0.0/8]", false),
    ] {
        let stage = Stage::set_with(name, &format!("auth: {{mode: on}}, {section}")).await?;
        // Cached before the guesses: a token that was valid before is no guess.
        assert_eq!(stage.ask("GET", "/api/v1/me", &stage.admin)?.send().await?.status(), 200);
        let refused = async |method: Method, url: &str, chain: fn(u8) -> String| {
            let guess = format!("qtt_{}", "x".repeat(43));
            let mut asking = JoinSet::new();
            for n in 0..60 {
                let request = stage.client.request(method.clone(), url).bearer_auth(&guess);
                let request = request.header("content-type", "application/x-protobuf");
                asking.spawn(request.header("x-forwarded-for", chain(n)).send());
            }
            let mut refused = 0;
            while let Some(response) = asking.join_next().await {
                refused += u32::from(response??.status() != 401);
            }
            anyhow::Ok(refused)
        };
        let me = format!("{}/api/v1/me", stage.base);
        let otlp = format!("http://{}/v1/traces", stage.server.addresses().otlp_http);
        for (method, url) in [(Method::GET, &me), (Method::POST, &otlp)] {
            let by_others = refused(method, url, |n| format!("203.0.113.{n}")).await?;
            assert_eq!(by_others == 0, is_trusted, "{name}: many callers, {url}: {by_others}");
        }
        let chain = |n| format!("198.51.100.{n}, 192.0.2.7, 10.0.0.2");
        let by_one = refused(Method::GET, &me, chain).await?;
        assert!(by_one > 0, "{name}: one caller who forges the begin of the chain");
        let new = r#"{"name": "x", "role": "viewer"}"#;
        let request = stage.ask("POST", "/api/v1/tokens", &stage.admin)?.body(new);
        let made = request.header("forwarded", "for=\"[2001:db8::7]:4711\"").send().await?;
        assert_eq!(made.status(), 201, "{name}");
        let audit = answer(stage.ask("GET", "/api/v1/audit", &stage.admin)?.send().await?).await?;
        let expected = if is_trusted { "2001:db8::7" } else { "127.0.0.1" };
        assert_eq!(audit["items"][0]["address"], expected, "{name}: {audit}");
        stage.end().await?;
    }
    Ok(())
}

/// A slow client loses its connection, and no other client waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_slow_is_cut_off() -> Result<()> {
    let stage = Stage::set("access_slow", "").await?;
    let address = stage.server.addresses().http;
    let head = format!(
        "PUT /api/v1/tests HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-length: 9\r\n\r\n12",
        stage.admin
    );
    let slow = |sent: &'static str, sent_too: String| async move {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(sent.as_bytes()).await?;
        stream.write_all(sent_too.as_bytes()).await?;
        let mut said = Vec::new();
        timeout(Duration::from_secs(25), stream.read_to_end(&mut said)).await??;
        anyhow::Ok(String::from_utf8_lossy(&said).into_owned())
    };
    let (no_head, no_body) =
        tokio::join!(slow("GET /livez HTTP/1.1\r\nx:", String::new()), slow("", head));
    assert!(no_head?.is_empty(), "the connection is closed");
    let no_body = no_body?;
    assert!(no_body.starts_with("HTTP/1.1 408 "), "{no_body}");
    assert_eq!(stage.ask("GET", "/livez", "")?.send().await?.status(), 200);
    stage.end().await
}

/// A sender of spans must authenticate too, with a role that may send them.
#[tokio::test(flavor = "multi_thread")]
async fn senders_of_spans_are_known() -> Result<()> {
    let stage = Stage::set("access_ingest", "").await?;
    let (id, token) = stage.token(json!({"name": "shop", "role": "editor"})).await?;
    let url = format!("http://{}/v1/traces", stage.server.addresses().otlp_http);
    let send = async |token: &str| {
        let request = stage.client.post(&url).header("content-type", "application/x-protobuf");
        let request = if token.is_empty() { request } else { request.bearer_auth(token) };
        anyhow::Ok(request.send().await?.status().as_u16())
    };
    assert_eq!(send("").await?, 401);
    assert_eq!(send(&format!("qtt_{}", "x".repeat(43))).await?, 401);
    for role in Role::ALL {
        for projects in [Value::Null, json!(["a"])] {
            let new = json!({"name": "sender", "role": role.as_str(), "projects": projects});
            let (_, token) = stage.token(new).await?;
            let expected = if INGEST_ROLES.contains(&role) { 200 } else { 403 };
            assert_eq!(send(&token).await?, expected, "{role} in {projects}");
        }
    }
    assert_eq!(INGEST_ROLES, [Role::Ingest, Role::Editor, Role::Admin]);
    assert_eq!(send(&token).await?, 200);
    let revoke = stage.ask("DELETE", &format!("/api/v1/tokens/{id}"), &stage.admin)?;
    assert_eq!(revoke.send().await?.status(), 204);
    assert_eq!(send(&token).await?, 401, "taken back");
    stage.end().await
}

/// Without authentication the server listens only on loopback addresses.
#[tokio::test(flavor = "multi_thread")]
async fn off_is_for_loopback() -> Result<()> {
    let database = Database::create("access_off").await?;
    let beyond: SocketAddr = "0.0.0.0:0".parse()?;
    for mode in [Mode::Off, Mode::On] {
        let mut config = configuration(&database, "")?;
        config.access.mode = mode;
        config.listen.otlp_http = beyond;
        let telemetry = Arc::new(Telemetry::start(&config, server::host())?);
        let work = runtime::Handle::current();
        match (mode, server::start(config, telemetry, WORLD, work, None).await) {
            (Mode::Off, Err(error @ StartError::NotLoopback(_))) => {
                assert!(error.to_string().contains("`server.auth.mode: on`"), "{error}");
            }
            (Mode::On, Ok(server)) => drop(server.shutdown().await),
            (mode, started) => anyhow::bail!("{mode:?}: {started:?}"),
        }
    }
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_hear_nothing_of_what_a_server_waits_for() -> Result<()> {
    let database = Database::create("unready").await?;
    let mut config = configuration(&database, "server: {auth: {mode: on}}")?;
    // No server listens on this port.
    config.postgres.port = 1;
    let server = start(config).await?;
    let base = format!("http://{}", server.addresses().http);
    let client = Client::builder().no_proxy().build()?;
    for path in ["/readyz", "/api/v1/me", "/api/v1/runs"] {
        let answer = client.get(format!("{base}{path}")).send().await?;
        assert_eq!(answer.status(), 503, "{path}");
        let words = answer.text().await?;
        assert!(words.contains("not ready: the server's log states"), "{path}: {words}");
        assert!(!words.contains("postgres") && !words.contains("127.0.0.1"), "{path}: {words}");
    }
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}
