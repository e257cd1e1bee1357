//! Logins of people: a minimal browser, with cookies, redirects and one form, between the server and a real Keycloak.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use anyhow::{Context, Result};
use bench::parts::{Database, setting};
use model::{Timestamp, World};
use reqwest::{Client, Method, Response, StatusCode, Url, header, redirect::Policy};
use serde_json::Value;
use server::{
    Handle, Telemetry,
    config::{self, Environment},
};
use source::Text;
use tokio::runtime;

const WORLD: World = World::new(now, random);

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

async fn start(database: &Database, issuer: &str, more: &str) -> Result<Handle> {
    let text = format!(
        "{}
server:
  auth:
    mode: on
    oidc:
      issuer: {issuer}
      clientId: qualitytrace
      clientSecret: client-s3cr3t
      roles: {{qt-admin: admin, qt-viewer: viewer}}
{more}",
        database.section()?
    );
    let read = config::read(&Text::new("config.yaml", text), &Environment::default());
    let mut config = read.config.context("no mistakes")?;
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    config.listen = config::Listen { http: any, otlp_grpc: any, otlp_http: any, probes: None };
    let telemetry = Arc::new(Telemetry::start(&config, server::host())?);
    Ok(server::start(config, telemetry, WORLD, runtime::Handle::current(), None).await?)
}

/// A minimal browser: it has cookies for each origin, and nothing else.
struct Browser {
    client: Client,
    cookies: BTreeMap<(String, String), String>,
}

impl Browser {
    fn new() -> Result<Self> {
        let client = Client::builder().no_proxy().redirect(Policy::none()).build()?;
        Ok(Self { client, cookies: BTreeMap::new() })
    }

    async fn ask(
        &mut self,
        method: Method,
        url: &Url,
        body: Option<String>,
        own: bool,
    ) -> Result<Response> {
        let origin = url.origin().ascii_serialization();
        let mine =
            self.cookies.iter().filter(|((of, _), value)| *of == origin && !value.is_empty());
        let mine: Vec<_> = mine.map(|((_, name), value)| format!("{name}={value}")).collect();
        let mut request =
            self.client.request(method, url.clone()).header(header::COOKIE, mine.join("; "));
        if let Some(body) = body {
            request = request
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(body);
        }
        if own {
            request = request.header(header::ORIGIN, &origin);
        }
        let response = request.send().await?;
        for cookie in response.headers().get_all(header::SET_COOKIE) {
            let (name, rest) = cookie.to_str()?.split_once('=').context("a cookie")?;
            let value = rest.split(';').next().unwrap_or_default();
            self.cookies.insert((origin.clone(), name.to_owned()), value.to_owned());
        }
        Ok(response)
    }

    async fn get(&mut self, url: &Url) -> Result<Response> {
        self.ask(Method::GET, url, None, false).await
    }

    /// Logs in at the provider, follows its redirect, and returns the response and the URL.
    async fn log_in(&mut self, base: &Url, name: &str) -> Result<(Response, Url)> {
        let back = self.sent_back(base, name).await?;
        Ok((self.get(&back).await?, back))
    }

    /// Logs in at the provider, and returns the URL to which it redirects the browser.
    async fn sent_back(&mut self, base: &Url, name: &str) -> Result<Url> {
        let began = self.get(&base.join("/auth/login")?).await?;
        assert_eq!(began.status(), StatusCode::SEE_OTHER);
        let kept = began.headers()[header::SET_COOKIE].to_str()?.to_owned();
        for words in ["HttpOnly", "SameSite=Lax", "Path=/auth/callback", "Max-Age=600"] {
            assert!(kept.contains(words), "{kept}");
        }
        let there: Url = began.headers()[header::LOCATION].to_str()?.parse()?;
        assert!(
            there.query().unwrap_or_default().contains("code_challenge_method=S256"),
            "{there}"
        );
        let page = self.get(&there).await?.text().await?;
        let form = page.split("action=\"").nth(1).and_then(|rest| rest.split('"').next());
        let form: Url = form.with_context(|| page.clone())?.replace("&amp;", "&").parse()?;
        let typed = format!("username={name}&password={name}-password&credentialId=");
        let answered = self.ask(Method::POST, &form, Some(typed), false).await?;
        let back = answered.headers().get(header::LOCATION).context("Keycloak sends back")?;
        let back: Url = back.to_str()?.parse()?;
        assert_eq!(back.path(), "/auth/callback", "{back}");
        Ok(back)
    }
}

/// A server with Keycloak as its provider.
struct Stage {
    database: Database,
    server: Handle,
    base: Url,
    issuer: String,
}

impl Stage {
    async fn set(name: &str) -> Result<Self> {
        Self::set_with(name, "").await
    }

    /// Starts a server with further lines in the section `server`.
    async fn set_with(name: &str, more: &str) -> Result<Self> {
        let issuer = setting("QUALITYTRACE_TEST_KEYCLOAK")?;
        let database = Database::create(name).await?;
        let server = start(&database, &issuer, more).await?;
        let base = format!("http://{}", server.addresses().http).parse()?;
        Ok(Self { database, server, base, issuer })
    }

    fn url(&self, path: &str) -> Result<Url> {
        Ok(self.base.join(path)?)
    }

    async fn end(self) -> Result<()> {
        assert!(self.server.shutdown().await.is_delivered());
        self.database.remove().await
    }
}

async fn json(response: Response) -> Result<Value> {
    Ok(serde_json::from_slice(&response.bytes().await?)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_and_out() -> Result<()> {
    let stage = Stage::set("oidc").await?;
    let base = stage.base.clone();
    for (name, role) in [("ann", "admin"), ("vic", "viewer")] {
        let mut browser = Browser::new()?;
        let (response, back) = browser.log_in(&base, name).await?;
        assert_eq!(response.status(), StatusCode::SEE_OTHER, "{name}");
        assert_eq!(response.headers()[header::LOCATION], "/", "the page");
        let session = response.headers()[header::SET_COOKIE].to_str()?.to_owned();
        for words in ["qualitytrace_session=qtt_", "HttpOnly", "SameSite=Lax", "Path=/;"] {
            assert!(session.contains(words), "{session}");
        }
        let me = json(browser.get(&base.join("/api/v1/me")?).await?).await?;
        assert_eq!((&me["name"], &me["role"]), (&name.into(), &role.into()), "{me}");
        let tokens = browser.get(&base.join("/api/v1/tokens")?).await?.status();
        assert_eq!(tokens, if role == "admin" { 200 } else { 403 }, "{name}");
        // A request of another page changes nothing, though the browser sends the cookie with it.
        let wanted = r#"{"name": "x", "role": "viewer"}"#.to_owned();
        let url = base.join("/api/v1/tokens")?;
        let foreign = browser.ask(Method::POST, &url, Some(wanted.clone()), false).await?;
        assert_eq!(foreign.status(), 403, "{name}");
        let own = browser.ask(Method::POST, &url, Some(wanted), true).await?.status();
        assert_eq!(own, if role == "admin" { 201 } else { 403 }, "{name}");
        // A code is valid once, and a session is no token.
        assert_ne!(browser.get(&back).await?.status(), StatusCode::SEE_OTHER, "{name}");
        let session = session.split(['=', ';']).nth(1).unwrap_or_default().to_owned();
        let shown =
            browser.client.get(base.join("/api/v1/me")?).bearer_auth(&session).send().await?;
        assert_eq!(shown.status(), 401, "{name}");
        let out = base.join("/auth/logout")?;
        browser
            .cookies
            .insert((base.origin().ascii_serialization(), "qualitytrace_session".into()), session);
        assert_eq!(browser.ask(Method::POST, &out, None, true).await?.status(), 204, "{name}");
        assert_eq!(browser.get(&base.join("/api/v1/me")?).await?.status(), 401, "{name}");
    }
    // A person without a role is refused by name; so is a login that began elsewhere.
    let mut browser = Browser::new()?;
    let (refused, back) = browser.log_in(&base, "nob").await?;
    assert_eq!(refused.status(), 403);
    let problem = json(refused).await?;
    assert!(
        problem["detail"].as_str().unwrap_or_default().contains("`nob` has no role here"),
        "{problem}"
    );
    let stranger = Browser::new()?.get(&back).await?;
    assert_eq!(stranger.status(), 400);
    assert!(json(stranger).await?["detail"].as_str().unwrap_or_default().contains("begin again"));
    let held = stage.database.count("select count(*) from tokens where kind = 'session'").await?;
    assert_eq!(held, 2, "a session for each who may");
    stage.end().await
}

/// The audit log has who logged in, who failed to and why, and who logged out; guesses do not fill the log.
#[tokio::test(flavor = "multi_thread")]
async fn logins_are_in_the_audit_log() -> Result<()> {
    let stage = Stage::set("oidc_audit").await?;
    let (mut ann, mut vic, mut nob) = (Browser::new()?, Browser::new()?, Browser::new()?);
    assert_eq!(ann.log_in(&stage.base, "ann").await?.0.status(), StatusCode::SEE_OTHER);
    assert_eq!(vic.log_in(&stage.base, "vic").await?.0.status(), StatusCode::SEE_OTHER);
    assert_eq!(nob.log_in(&stage.base, "nob").await?.0.status(), 403);
    let out = stage.url("/auth/logout")?;
    assert_eq!(vic.ask(Method::POST, &out, None, true).await?.status(), 204);
    let audit = json(ann.get(&stage.url("/api/v1/audit")?).await?).await?;
    let entries = audit["items"].as_array().context("entries")?;
    let entry = |it: &Value| {
        let text = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
        let told = [text("who"), text("method"), text("path"), text("reason")].join(" ");
        format!("{} {told}", it["status"])
    };
    let told: Vec<_> = entries.iter().rev().map(entry).collect();
    let expected = [
        "303 ann GET /auth/callback -",
        "303 vic GET /auth/callback -",
        "403 nob GET /auth/callback `nob` has no role here: no value of the claim `roles` is listed in `server.auth.oidc.roles`",
        "204 vic POST /auth/logout -",
    ];
    assert_eq!(told, expected, "{audit:#}");
    for entry in entries {
        assert_eq!(
            (&entry["issuer"], &entry["address"]),
            (&stage.issuer.as_str().into(), &"127.0.0.1".into())
        );
        assert!(entry["subject"].as_str().is_some_and(|it| it.len() == 36), "{entry}");
        assert_eq!(entry["token"].is_string(), entry["who"] != "nob", "{entry}");
    }
    let [began, ended] = [&entries[2], &entries[0]];
    assert_eq!((&began["token"], &began["subject"]), (&ended["token"], &ended["subject"]));
    for _ in 0..40 {
        let guess = Browser::new()?.get(&stage.url("/auth/callback?state=x&code=y")?).await?;
        assert_eq!(guess.status(), 400);
    }
    let rows = stage.database.count("select count(*) from audit where who = 'unknown'").await?;
    assert!((1..=5).contains(&rows), "{rows} rows of one address within a minute");
    stage.end().await
}

/// A person lists and ends their own sessions, an admin those of everyone.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_and_ended() -> Result<()> {
    let stage = Stage::set("oidc_sessions").await?;
    let (mut ann, mut ann_too, mut vic) = (Browser::new()?, Browser::new()?, Browser::new()?);
    for (browser, name) in [(&mut ann, "ann"), (&mut ann_too, "ann"), (&mut vic, "vic")] {
        browser.log_in(&stage.base, name).await?;
        assert_eq!(browser.get(&stage.url("/api/v1/me")?).await?.status(), 200, "{name}");
    }
    let (own, all) = (stage.url("/api/v1/sessions")?, stage.url("/api/v1/sessions?all=true")?);
    let of_vic = json(vic.get(&own).await?).await?;
    let of_ann = json(ann.get(&own).await?).await?;
    let everyone = json(ann.get(&all).await?).await?;
    let names = |page: &Value| -> Vec<(String, bool)> {
        let items = page["items"].as_array().into_iter().flatten();
        items.map(|it| (it["name"].to_string(), it["isCurrent"] == true)).collect()
    };
    let (ann_s, vic_s) = (|| r#""ann""#.to_owned(), || r#""vic""#.to_owned());
    assert_eq!(names(&of_vic), [(vic_s(), true)]);
    assert_eq!(names(&of_ann), [(ann_s(), false), (ann_s(), true)]);
    assert_eq!(names(&everyone), [(vic_s(), false), (ann_s(), false), (ann_s(), true)]);
    let session = &of_vic["items"][0];
    assert_eq!(session["address"], "127.0.0.1", "{session}");
    assert_eq!(
        (&session["issuer"], &session["role"]),
        (&stage.issuer.as_str().into(), &"viewer".into())
    );
    for time in ["beganAt", "expiresAt", "seenAt"] {
        assert!(session[time].as_str().is_some_and(|it| it.ends_with('Z')), "{session}");
    }
    let secrets: Vec<_> = vic.cookies.values().chain(ann.cookies.values()).collect();
    let told = [&of_vic, &of_ann, &everyone].map(Value::to_string).concat();
    assert!(secrets.iter().all(|it| !it.starts_with("qtt_") || !told.contains(*it)), "{told}");
    assert_eq!(vic.get(&all).await?.status(), 403);
    let end = |page: &Value, at: usize| {
        let id = page["items"][at]["id"].as_str().unwrap_or_default();
        stage.url(&format!("/api/v1/sessions/{id}"))
    };
    let (vics, anns) = (end(&of_vic, 0)?, end(&of_ann, 0)?);
    // Not the session of another person, and not for a page of another origin.
    assert_eq!(vic.ask(Method::DELETE, &anns, None, true).await?.status(), 404);
    assert_eq!(ann.ask(Method::DELETE, &anns, None, false).await?.status(), 403);
    assert_eq!(ann_too.get(&stage.url("/api/v1/me")?).await?.status(), 200);
    assert_eq!(ann.ask(Method::DELETE, &anns, None, true).await?.status(), 204);
    assert_eq!(ann_too.get(&stage.url("/api/v1/me")?).await?.status(), 401, "ended by its owner");
    assert_eq!(ann.ask(Method::DELETE, &vics, None, true).await?.status(), 204);
    assert_eq!(vic.get(&stage.url("/api/v1/me")?).await?.status(), 401, "ended by an admin");
    assert_eq!(names(&json(ann.get(&all).await?).await?), [(ann_s(), true)]);
    let ended = "select count(*) from audit where route = '/api/v1/sessions/{id}' and subject is not null and status = 204";
    assert_eq!(stage.database.count(ended).await?, 2, "who ended what is noted");
    stage.end().await
}

/// A login continues only with the cookie that this server signed.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_cookie_that_was_altered_is_refused() -> Result<()> {
    let stage = Stage::set("oidc_cookie").await?;
    let mut browser = Browser::new()?;
    let began = browser.get(&stage.url("/auth/login")?).await?;
    let there: Url = began.headers()[header::LOCATION].to_str()?.parse()?;
    let state = there.query_pairs().find(|(name, _)| name == "state").context("a state")?.1;
    let back = stage.url(&format!("/auth/callback?code=none&state={state}"))?;
    let name = (stage.base.origin().ascii_serialization(), "qualitytrace_login".to_owned());
    let good = browser.cookies[&name].clone();
    let (signed, signature) = good.rsplit_once('.').context("signed")?;
    let (kept, until) = signed.split_once('.').context("a time")?;
    let forged = [
        kept.to_owned(),
        signed.to_owned(),
        format!("{kept}.{until}9.{signature}"),
        format!("{}.{until}.{signature}", kept.to_ascii_lowercase()),
        format!("{signed}.{}", signature.chars().rev().collect::<String>()),
        String::from("x"),
    ];
    for value in forged {
        browser.cookies.insert(name.clone(), value.clone());
        let refused = browser.get(&back).await?;
        assert_eq!(refused.status(), 400, "{value}");
        let problem = json(refused).await?;
        assert!(
            problem["detail"].as_str().unwrap_or_default().contains("begin again"),
            "{problem}"
        );
    }
    browser.cookies.insert(name, good);
    let asked = browser.get(&back).await?;
    assert_eq!(asked.status(), 503, "the provider is asked, and has no such code");
    stage.end().await
}

/// Keycloak's client requires PKCE with S256: our logins succeed, and those without PKCE do not. So a code that an attacker
/// took from a browser is of no use without the verifier, which never left the cookie.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_demands_pkce_gets_it() -> Result<()> {
    let stage = Stage::set("oidc_pkce").await?;
    let mut browser = Browser::new()?;
    let began = browser.get(&stage.url("/auth/login")?).await?;
    let there: Url = began.headers()[header::LOCATION].to_str()?.parse()?;
    let without = |names: &[&str]| {
        let mut url = there.clone();
        let kept = there.query_pairs().filter(|(name, _)| !names.contains(&&**name));
        url.query_pairs_mut().clear().extend_pairs(kept);
        url
    };
    // Without a challenge, and with a weaker one, Keycloak does not show its form.
    let plain = {
        let mut url = without(&["code_challenge_method"]);
        url.query_pairs_mut().append_pair("code_challenge_method", "plain");
        url
    };
    for (wrong, words) in [
        (
            without(&["code_challenge", "code_challenge_method"]),
            "Missing parameter: code_challenge_method",
        ),
        (plain, "code challenge method is not matching the configured one"),
    ] {
        let refused = browser.get(&wrong).await?;
        let back: Url = refused.headers()[header::LOCATION].to_str()?.parse()?;
        let said: BTreeMap<_, _> = back.query_pairs().into_owned().collect();
        assert_eq!(said["error"], "invalid_request", "{back}");
        assert!(said["error_description"].contains(words), "{back}");
        // The response shows the reason to the person, and the audit log has it too.
        let told = browser.get(&back).await?;
        assert_eq!(told.status(), 403, "{back}");
        assert!(json(told).await?["detail"].as_str().unwrap_or_default().contains(words));
    }
    // A code is exchanged only with its verifier.
    let endpoint: Url = format!("{}/protocol/openid-connect/token", stage.issuer).parse()?;
    let back_uri = stage.url("/auth/callback")?;
    for (verifier, words) in [
        (None, "PKCE code verifier not specified"),
        (Some("w".repeat(43)), "PKCE verification failed"),
    ] {
        let code = code(&stage, "ann").await?;
        let mut form = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code),
            ("redirect_uri", back_uri.to_string()),
        ];
        form.extend(verifier.map(|verifier| ("code_verifier", verifier)));
        let mut body = Url::parse("http://x")?;
        body.query_pairs_mut().extend_pairs(form);
        let request = browser.client.post(endpoint.clone());
        let request = request.basic_auth("qualitytrace", Some("client-s3cr3t"));
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let refused = request.body(body.query().unwrap_or_default().to_owned()).send().await?;
        assert_eq!(refused.status(), 400, "{words}");
        let said = json(refused).await?;
        assert_eq!(said["error"], "invalid_grant", "{said}");
        let told = said["error_description"].as_str().unwrap_or_default();
        assert!(told.contains(words), "{said}");
    }
    let (done, _) = Browser::new()?.log_in(&stage.base, "ann").await?;
    assert_eq!(done.status(), StatusCode::SEE_OTHER, "with its verifier a login ends");
    stage.end().await
}

/// Returns a code that Keycloak issued for a login, as an attacker who sees the redirect of the browser would read it.
async fn code(stage: &Stage, name: &str) -> Result<String> {
    let mut browser = Browser::new()?;
    let back = browser.sent_back(&stage.base, name).await?;
    let code = back.query_pairs().find(|(name, _)| name == "code").context("a code")?.1;
    Ok(code.into_owned())
}

/// The operator's configuration decides the redirect URL of a login, whatever the `Host` of a request is.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_host_changes_nothing_of_a_login() -> Result<()> {
    let public = "  publicUrl: https://quality.example.com\n";
    for (name, more, back) in [
        ("oidc_host", "", "http://evil.example/auth/callback"),
        ("oidc_public", public, "https://quality.example.com/auth/callback"),
    ] {
        let stage = Stage::set_with(name, more).await?;
        let browser = Browser::new()?;
        let asked = browser.client.get(stage.url("/auth/login")?).header("host", "evil.example");
        let asked = asked.header("x-forwarded-host", "evil.example").send().await?;
        let there: Url = asked.headers()[header::LOCATION].to_str()?.parse()?;
        let redirect = there.query_pairs().find(|(name, _)| name == "redirect_uri");
        assert_eq!(redirect.context("it is named")?.1, back);
        stage.end().await?;
    }
    Ok(())
}
