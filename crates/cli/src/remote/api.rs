//! `api`: any request, with the identity and the connection of the other commands.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use http::Method;
use model::ErrorCode;
use serde_json::{Map, Value};
use server::config::Environment;

use super::{
    client::{Server, connect},
    error::ANSWER_BYTES_MAX,
    http::Request,
};
use crate::{args, exit::Exit, terminal::Terminal};

/// Sends a request, and prints the body of the response as it is.
pub(crate) async fn api(
    args: &args::ApiArgs,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let request = request(&server, args, terminal)?;
    let answer = server.whole(request).await.map_err(|error| terminal.refuse(&error))?;
    print(&answer.body, terminal);
    let status = answer.status.as_u16();
    if status >= 400 {
        terminal.error(answer.problem().0, format_args!("the server answered {status}"));
    }
    Ok(match status {
        0..=399 => Exit::Passed,
        400..=499 => Exit::Refused,
        _ => Exit::Inconclusive,
    })
}

fn request(server: &Server, args: &args::ApiArgs, terminal: &Terminal) -> Result<Request, Exit> {
    let mut request = server.request(args.method.clone(), &args.path);
    if args.connection.project.is_some() {
        request = request.query(&[("project", &server.project)]);
    }
    let is_query = matches!(args.method, Method::GET | Method::HEAD | Method::DELETE);
    if is_query {
        for (name, value) in &args.field {
            request = request.query(&[(name, value)]);
        }
    }
    let has_fields = !is_query && !args.field.is_empty();
    let body = match &args.input {
        Some(_) if has_fields => {
            terminal.error(
                ErrorCode::Usage,
                "`--input` and `--field` are both the body: leave one out",
            );
            return Err(Exit::Refused);
        }
        Some(file) => read(file, terminal)?,
        None if has_fields => {
            let fields = args.field.iter().cloned();
            let fields: Map<_, _> =
                fields.map(|(name, value)| (name, Value::String(value))).collect();
            Value::Object(fields).to_string()
        }
        None => return Ok(request),
    };
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&body).is_ok();
    let media = if is_json { "application/json" } else { "application/yaml" };
    Ok(request.header("content-type", media).body(body))
}

fn read(file: &Path, terminal: &Terminal) -> Result<String, Exit> {
    let mut text = String::new();
    let most = ANSWER_BYTES_MAX as u64;
    let read = match file == Path::new("-") {
        true => io::stdin().lock().take(most).read_to_string(&mut text),
        false => File::open(file).and_then(|file| file.take(most).read_to_string(&mut text)),
    };
    match read {
        Ok(read) if read as u64 == most => {
            terminal.error(
                ErrorCode::FileUnreadable,
                format_args!("`{}` has {most} bytes or more", file.display()),
            );
            Err(Exit::Refused)
        }
        Ok(_) => Ok(text),
        Err(error) => {
            terminal.error(
                ErrorCode::FileUnreadable,
                format_args!("cannot read `{}`: {error}", file.display()),
            );
            Err(Exit::Refused)
        }
    }
}

/// Prints a body. A terminal gets no text that could control it, and nothing that is no text.
fn print(body: &[u8], terminal: &Terminal) {
    if !terminal.is_shown() {
        terminal.bytes(body);
        return;
    }
    match std::str::from_utf8(body) {
        Ok("") => {}
        Ok(text) => terminal.result(text.trim_end()),
        Err(_) => terminal
            .line(&format!("the body is no text: {} bytes; send stdout to a file", body.len())),
    }
}
