//! A request as a run records it: for people, without credentials, and bounded.
//!
//! Deliberately absent: sending it once more, which needs what is not recorded here, and the search for secrets, whose
//! owner masks all texts before [`RecordedRequest::cut`].

use serde::{Deserialize, Serialize};

use crate::{Body, CallRequest, CallValue, Command, ExecRequest, HttpRequest, Request};

/// The upper bound for a recorded body, in bytes.
const BODY_BYTES_MAX: usize = 16 << 10;
/// The upper bound for any other recorded text, in bytes.
const TEXT_BYTES_MAX: usize = 2 << 10;
/// The upper bound for recorded fields.
const FIELDS_MAX: usize = 64;

/// The value of a credential.
const MASK: &str = "***";

/// Headers whose value is a credential, wherever it comes from.
const CREDENTIALS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// The request of a trigger, as it was fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedRequest {
    /// `http`, `exec`, or the protocol, which is the type of the trigger.
    pub protocol: String,
    /// The method; empty if there is none.
    pub method: String,
    /// The URL, the address of the peer, or the command.
    pub target: String,
    /// Headers, variables of the environment, and fields of a protocol, in the order written. A name may occur twice.
    pub fields: Vec<(String, String)>,
    /// The number of fields that are not recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_fields: u64,
    /// The body, up to its upper bound.
    pub body: Body,
    /// The number of bytes of the body that are not recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_body_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl RecordedRequest {
    /// Returns the record of a request without its credentials; none if nothing is fired.
    pub fn of(request: &Request) -> Option<Self> {
        match request {
            Request::Http(http) => Some(of_http(http)),
            Request::Exec(exec) => Some(of_exec(exec)),
            Request::Call(call) => Some(of_call(call)),
            Request::TraceId(_) => None,
        }
    }

    /// Cuts all texts at their upper bounds. A secret must be masked before, since a part of it is not found.
    pub fn cut(&mut self) {
        let Self { protocol, method, target, fields, more_fields, body, more_body_bytes } = self;
        *more_fields += fields.len().saturating_sub(FIELDS_MAX) as u64;
        fields.truncate(FIELDS_MAX);
        let pairs = fields.iter_mut().flat_map(|(name, value)| [name, value]);
        for text in [protocol, method, target].into_iter().chain(pairs) {
            if text.len() > TEXT_BYTES_MAX {
                text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX - '…'.len_utf8()));
                text.push('…');
            }
        }
        let bytes = body.len();
        if bytes > BODY_BYTES_MAX {
            *body = match body {
                Body::Text(text) => {
                    Body::Text(text[..text.floor_char_boundary(BODY_BYTES_MAX)].into())
                }
                Body::Bytes(bytes) => Body::Bytes(bytes[..BODY_BYTES_MAX].into()),
            };
            *more_body_bytes += (bytes - body.len()) as u64;
        }
    }
}

fn of_http(http: &HttpRequest) -> RecordedRequest {
    let is_secret =
        |name: &str| http.secret_headers.iter().any(|secret| secret.eq_ignore_ascii_case(name));
    let headers = http.headers.iter().map(|(name, value)| match is_secret(name) {
        true => (name.clone(), MASK.to_owned()),
        false => header(name, value),
    });
    let auth = http.auth.iter().map(|(name, _)| (name.clone(), MASK.to_owned()));
    RecordedRequest {
        protocol: "http".to_owned(),
        method: http.method.clone(),
        target: without_user(&http.url),
        fields: headers.chain(auth).collect(),
        more_fields: 0,
        body: http.body.clone(),
        more_body_bytes: 0,
    }
}

/// The values of variables are not recorded: many are credentials that no document declares.
fn of_exec(exec: &ExecRequest) -> RecordedRequest {
    let folder = exec.workdir.iter().map(|folder| ("working directory".to_owned(), folder.clone()));
    let env = exec.env.iter().map(|(name, _)| (name.clone(), MASK.to_owned()));
    let target = match &exec.command {
        Command::Line(line) => line.clone(),
        Command::Words { program, arguments } => {
            let words = [program].into_iter().chain(arguments);
            words.map(String::as_str).collect::<Vec<_>>().join(" ")
        }
    };
    RecordedRequest {
        protocol: "exec".to_owned(),
        method: String::new(),
        target,
        fields: folder.chain(env).collect(),
        more_fields: 0,
        body: Body::default(),
        more_body_bytes: 0,
    }
}

fn of_call(call: &CallRequest) -> RecordedRequest {
    let mut fields = Vec::new();
    let mut message = Body::default();
    for (name, value) in &call.fields {
        if *name == call.peer || call.method == Some(*name) {
            continue;
        }
        match value {
            CallValue::Text(text) => fields.push(((*name).to_owned(), text.clone())),
            CallValue::Texts(texts) => fields.push(((*name).to_owned(), texts.join(", "))),
            CallValue::Pairs(_) if name.starts_with("auth") => {
                fields.push(((*name).to_owned(), MASK.to_owned()));
            }
            CallValue::Pairs(pairs) => {
                fields.extend(pairs.iter().map(|(name, value)| header(name, value)));
            }
            // The last one is the message; a file before it describes its form.
            CallValue::Body(body) => message = body.clone(),
        }
    }
    RecordedRequest {
        protocol: call.protocol.to_owned(),
        method: call.method.and_then(|method| call.text(method)).unwrap_or_default().to_owned(),
        target: without_user(call.text(call.peer).unwrap_or_default()),
        fields,
        more_fields: 0,
        body: message,
        more_body_bytes: 0,
    }
}

fn header(name: &str, value: &str) -> (String, String) {
    let is_credential = CREDENTIALS.iter().any(|known| name.eq_ignore_ascii_case(known));
    (name.to_owned(), if is_credential { MASK } else { value }.to_owned())
}

/// Returns a URL without the user and the password in it.
fn without_user(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}{MASK}{}", &rest[at..]),
        None => url.to_owned(),
    }
}
