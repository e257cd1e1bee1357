//! Who may call while there is no access control: programs on this machine, and no web page.
//!
//! A page in a local browser could reach a loopback port, by its own requests or by a name that it makes
//! resolve to 127.0.0.1. Both show in headers that a page cannot forge.

use axum::{
    extract::Request,
    http::{HeaderMap, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use model::Fault;

use super::problem::Problem;
use crate::listen::names_loopback;

pub(super) async fn guard(request: Request, next: Next) -> Response {
    if let Some(reason) = refusal(request.headers()) {
        return Problem::new(Fault::Denied, reason).into_response();
    }
    next.run(request).await
}

fn refusal(headers: &HeaderMap) -> Option<&'static str> {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    if headers.contains_key(header::ORIGIN) || !matches!(site, None | Some(b"none")) {
        return Some("requests of web pages are refused until the server has access control");
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Uri>().ok());
    let is_local = host.as_ref().and_then(Uri::host).is_some_and(names_loopback);
    (!is_local)
        .then_some("the `Host` header must name this machine: `localhost` or a loopback address")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::refusal;

    #[test]
    fn only_programs_on_this_machine_are_served() {
        let cases: [(&[(&'static str, &str)], bool); 9] = [
            (&[("host", "127.0.0.1:11633")], true),
            (&[("host", "localhost:11633")], true),
            (&[("host", "[::1]:11633")], true),
            (&[], false),
            (&[("host", "localhost"), ("sec-fetch-site", "none")], true),
            (&[("host", "localhost"), ("sec-fetch-site", "cross-site")], false),
            (&[("host", "evil.example:11633")], false),
            (&[("host", "")], false),
            (&[("host", "localhost"), ("origin", "http://evil.example")], false),
        ];
        for (given, served) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.insert(*name, value.parse().expect("a header value"));
            }
            assert_eq!(refusal(&headers).is_none(), served, "{given:?}");
        }
    }
}
