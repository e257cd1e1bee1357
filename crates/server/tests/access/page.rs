//! The web page on a server with access on: its cookie, its prefix, its policy.

use anyhow::{Context, Result};
use serde_json::json;

use super::{Stage, answer};

/// A person pastes a token into the page: it becomes a cookie, with which pages of this server alone change something.
#[tokio::test(flavor = "multi_thread")]
async fn a_pasted_token_is_a_cookie() -> Result<()> {
    let section = "auth: {mode: on}, pathPrefix: /team/qt";
    let stage = Stage::set_with("access_pasted", section).await?;
    let host = stage.base.replace("http://", "");
    let login = async |token: &str, origin: &str| {
        let body = json!({"token": token}).to_string();
        let request = stage.ask("POST", "/team/qt/auth/session", "")?;
        anyhow::Ok(request.header("origin", origin).body(body).send().await?)
    };
    assert_eq!(login(&stage.admin, "http://evil.example").await?.status(), 403);
    assert_eq!(login("qtt_nonsense", &stage.base).await?.status(), 401);
    let (id, token) = stage.token(json!({"name": "pasted", "role": "editor"})).await?;
    let response = login(&token, &stage.base).await?;
    assert_eq!(response.status(), 204);
    let cookies = response.headers().get_all("set-cookie").iter();
    let cookies = cookies.map(|it| it.to_str().map(str::to_owned));
    let cookies = cookies.collect::<Result<Vec<_>, _>>()?;
    let set =
        cookies.iter().find(|it| it.starts_with("qualitytrace_token=")).context("a cookie")?;
    for word in ["HttpOnly", "SameSite=Lax", "Path=/;", "Max-Age=28800"] {
        assert!(set.contains(word), "{set}");
    }
    let cookie = set.split(';').next().context("a value")?;
    let ask = |method: &str, path: &str| {
        anyhow::Ok(stage.ask(method, path, "")?.header("cookie", cookie).header("host", &host))
    };
    let me = answer(ask("GET", "/team/qt/api/v1/me")?.send().await?).await?;
    assert_eq!(me["name"], "pasted", "{me}");
    let apply = || anyhow::Ok(ask("PUT", "/api/v1/tests")?.body(""));
    assert_eq!(apply()?.send().await?.status(), 403, "another page sent it");
    let own = apply()?.header("origin", &stage.base).send().await?;
    assert_ne!(own.status(), 403, "a page of this server sent it");
    let out = ask("POST", "/auth/logout")?.header("origin", &stage.base).send().await?;
    assert_eq!(out.status(), 204);
    let again = ask("GET", "/api/v1/me")?.send().await?.status();
    assert_eq!(again, 200, "the logout removes the cookie, and the token stays valid");
    let revoke = stage.ask("DELETE", &format!("/api/v1/tokens/{id}"), &stage.admin)?;
    assert_eq!(revoke.send().await?.status(), 204);
    assert_eq!(ask("GET", "/api/v1/me")?.send().await?.status(), 401, "the cookie ends with it");
    stage.end().await
}

/// The page is public and below the prefix, and each response has a nonce of its own.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_served_below_its_prefix() -> Result<()> {
    let section = "auth: {mode: on}, pathPrefix: /team/qt";
    let stage = Stage::set_with("access_page", section).await?;
    let mut nonces = Vec::new();
    for path in ["/team/qt/", "/team/qt", "/team/qt/r/x", "/", "/t/y?project=z"] {
        let response = stage.ask("GET", path, "")?.send().await?;
        assert_eq!(response.status(), 200, "{path}");
        let policy = response.headers()["content-security-policy"].to_str()?.to_owned();
        let (_, nonce) = policy.split_once("'nonce-").context("a nonce")?;
        let nonce = nonce.split('\'').next().context("it ends")?.to_owned();
        assert_eq!(response.headers()["cache-control"], "no-store", "{path}");
        let text = response.text().await?;
        assert!(text.contains(&nonce) && !text.contains("__QUALITYTRACE_"), "{path}: {text}");
        assert!(!nonces.contains(&nonce), "{path}: {nonce} was used before");
        nonces.push(nonce);
    }
    for path in ["/team/qtx/", "/team/qt/nothing/at/all"] {
        assert_eq!(stage.ask("GET", path, "")?.send().await?.status(), 401, "{path}");
    }
    let problem = stage.ask("GET", "/team/qt/api/v1/me", "")?.send().await?;
    let problem: serde_json::Value = serde_json::from_slice(&problem.bytes().await?)?;
    let page = problem["type"].as_str().context("where it is explained")?;
    assert_eq!(page, "/team/qt/errors/unauthenticated");
    let explained = stage.ask("GET", page, "")?.send().await?.text().await?;
    assert!(explained.contains("What to do: "), "{explained}");
    let absent = stage.ask("GET", "/team/qt/assets/../../etc/passwd", "")?.send().await?;
    assert_ne!(absent.status(), 200);
    stage.end().await
}
