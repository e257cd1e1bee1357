//! The web page: its index for every screen, and the files that it loads.
//!
//! The page is public, its data is not: it calls the API as the person who looks at it. The index has a nonce of its own in every
//! response, so that no other style and no inline script has an effect. Deliberately absent: templates, and anything about a
//! screen; `web/` has the screens.

mod encoding;

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, any, get},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use model::Fault;

use crate::{
    http::{accept, app::App, problem::Problem, router::no_such_path},
    ui::encoding::Encoding,
};

/// The paths of all screens. The page itself reports a path below them that is none.
const SCREENS: &[&str] = &[
    "/",
    "/login",
    "/runs",
    "/r/{run}",
    "/r/{run}/trace",
    "/start",
    "/suites",
    "/t/{test}",
    "/trace",
];

/// The path of the files.
const FILES: &str = "/assets/{file}";

/// The name of a file has a hash of its content, so a browser may keep it for good.
const FOREVER: &str = "public, max-age=31536000, immutable";

/// Returns the routes of the page.
pub(crate) fn routes() -> Router<App> {
    let router = Router::new().route(FILES, get(file));
    SCREENS.iter().fold(router, |router, path| router.route(path, get(index)))
}

/// Returns the handler of paths that no route has. A person who opens one in a browser gets the page, which states that and leads on;
/// programs get the problem.
pub(crate) fn unknown() -> MethodRouter<App> {
    any(async |State(app): State<App>, method: Method, uri: Uri, headers: HeaderMap| {
        if !(method == Method::GET
            && accept::names(&headers, accept::HTML)
            && !uri.path().starts_with("/api/"))
        {
            return no_such_path(uri).await.into_response();
        }
        let missing = |page: Response| (StatusCode::NOT_FOUND, page).into_response();
        index(State(app)).await.map_or_else(IntoResponse::into_response, missing)
    })
}

/// Returns the index, with the path prefix and a nonce in it.
async fn index(State(app): State<App>) -> Result<Response, Problem> {
    let nonce = URL_SAFE_NO_PAD.encode(app.world.random::<16>());
    let text = web::index().replace(web::PREFIX, &app.web.path_prefix).replace(web::NONCE, &nonce);
    let policy = HeaderValue::from_str(&policy(&nonce))
        .map_err(|_| Problem::new(Fault::Internal, "the policy of the page cannot be written"))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, policy),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ),
        // Addresses of screens name tests and runs: other sites do not get them.
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    ];
    Ok((StatusCode::OK, headers, text).into_response())
}

/// The policy of the page, a directive on each line: its own files, its own API, styles with the nonce, and no text that becomes
/// code. Tests of the page read it too.
const POLICY: &str = include_str!("policy.txt");

fn policy(nonce: &str) -> String {
    POLICY.trim_end().replace('\n', "; ").replace("{nonce}", nonce)
}

async fn file(Path(name): Path<String>, headers: HeaderMap, uri: Uri) -> Response {
    let Some(file) = web::file(&name) else { return no_such_path(uri).await.into_response() };
    let (encoding, content) = Encoding::choose(file, &headers);
    let mut response = (
        StatusCode::OK,
        [
            (header::CONTENT_TYPE, media_type(&name)),
            (header::CACHE_CONTROL, if name == web::LICENCES { "no-cache" } else { FOREVER }),
            (header::VARY, "accept-encoding"),
        ],
        content,
    )
        .into_response();
    if let Some(encoding) = encoding {
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.as_str()));
    }
    response
}

/// Returns the media type by the ending of a name.
fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::{SCREENS, media_type, policy};
    use crate::access::table::{Need, TABLE};

    #[test]
    fn every_screen_is_public_and_in_the_access_table() {
        for screen in SCREENS.iter().chain([&super::FILES]) {
            assert!(TABLE.contains(&("GET", screen, Need::Open)), "{screen}");
        }
    }

    #[test]
    fn the_policy_has_the_nonce_and_no_way_around_it() {
        let policy = policy("abc");
        assert!(policy.contains("style-src 'self' 'nonce-abc';"), "{policy}");
        for word in ["unsafe", "*", "http:", "blob:"] {
            assert!(!policy.contains(word), "{word}: {policy}");
        }
    }

    #[test]
    fn every_file_of_the_page_has_a_media_type() {
        for file in web::files() {
            assert_ne!(media_type(file.name), "application/octet-stream", "{}", file.name);
        }
        assert_eq!(media_type("a.b-c.css"), "text/css; charset=utf-8");
        assert_eq!(media_type("plain"), "application/octet-stream");
    }
}
