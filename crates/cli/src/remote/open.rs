//! `open`: the address of the web page, and a browser that shows it.

use std::process::{Command, Stdio};

use model::RunId;
use server::config::Environment;
use url::form_urlencoded;

use crate::{args, contexts, exit::Exit, terminal::Terminal};

/// The program that opens an address in the browser of the user.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else if cfg!(windows) {
    "explorer"
} else {
    "xdg-open"
};
/// The project that the page shows without a parameter.
const DEFAULT_PROJECT: &str = "default";

/// Prints the address of a screen, and opens it if a person sees it.
pub(crate) fn open(
    args: &args::OpenArgs,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let access = contexts::resolve(&args.connection, environment);
    let access = access.map_err(|error| terminal.refuse(&error))?;
    let path = match &args.what {
        None => "/".to_owned(),
        Some(id) if id.as_str().parse::<RunId>().is_ok() => format!("/r/{id}"),
        Some(id) => format!("/t/{id}"),
    };
    let mut url = format!("{}{path}", access.url.trim_end_matches('/'));
    if access.project != DEFAULT_PROJECT {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("project", &access.project)
            .finish();
        url = format!("{url}?{query}");
    }
    terminal.result(&url);
    // Only an address of the web: another one could start any program.
    let is_web = url.starts_with("http://") || url.starts_with("https://");
    if terminal.is_shown() && is_web {
        let mut opener = Command::new(OPENER);
        opener.arg(&url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Err(error) = opener.spawn() {
            terminal.line(&format!("`{OPENER}` cannot be started: {error}"));
        }
    }
    Ok(Exit::Passed)
}
