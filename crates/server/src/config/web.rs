//! The web page: whether it is served, the path before all URLs, and whether it offers the demo shop.

use source::{Fields, Item};

/// The web page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebConfig {
    /// Whether the page is served.
    pub is_on: bool,
    /// The path before all URLs of the API and of the page: empty, or such as `/team/quality`.
    pub path_prefix: String,
    /// Whether the demo shop may be started; `None` if that depends on who can reach the server.
    pub demo: Option<bool>,
}

impl Default for WebConfig {
    fn default() -> Self {
        Self { is_on: true, path_prefix: String::new(), demo: None }
    }
}

pub(super) fn read(server: &mut Fields<'_>) -> WebConfig {
    const WORDS: &[(&str, bool)] = &[("on", true), ("off", false)];
    let default = WebConfig::default();
    let prefix = server.take("pathPrefix").and_then(|item| path_prefix(&item));
    WebConfig {
        is_on: server.choice("web", WORDS).unwrap_or(default.is_on),
        path_prefix: prefix.unwrap_or(default.path_prefix),
        demo: server.boolean("demo"),
    }
}

fn path_prefix(item: &Item<'_>) -> Option<String> {
    let text = item.string()?;
    let path = text.strip_suffix('/').unwrap_or(text);
    if path.is_empty() || is_prefix(path) {
        return Some(path.to_owned());
    }
    item.misfit("a path of letters, digits and `-._~`, such as `/team/quality`");
    None
}

/// Whether a path can stand in front of others as it is, in a URL, in a cookie and in HTML.
fn is_prefix(path: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._~".contains(it);
    let is_segment =
        |it: &str| !it.is_empty() && it.chars().all(is_plain) && !matches!(it, "." | "..");
    path.len() <= 256 && path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_segment))
}

#[cfg(test)]
mod tests {
    use super::is_prefix;

    #[test]
    fn a_prefix_is_a_plain_path() {
        for path in ["/qt", "/team/quality", "/a.b~c-d_e/1"] {
            assert!(is_prefix(path), "{path}");
        }
        let long = format!("/{}", "a".repeat(256));
        for path in [
            "qt", "/", "//", "/a//b", "/a/", "/../a", "/./a", "/a b", "/a\"b", "/<a>", "/%2e",
            "/ä", &long,
        ] {
            assert!(!is_prefix(path), "{path}");
        }
    }
}
