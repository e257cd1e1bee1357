//! Fills in texts and builds requests from them.
//!
//! Every text that was computed from a secret is recorded, in each form in which it is sent.

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{
    Body, CallRequest, CallValue, HttpRequest, Identity, Place, Secret, Tls, TraceId, Verify,
};
use source::Text;

use super::{
    Files, ResolveError,
    url::{escaped, split_scheme, with_query, wrong_port},
};
use crate::{
    document::{
        self, Auth, Call, Command, Content, FieldValue, FileRef, Graphql, Header, HttpTrigger,
        JsonTemplate, KeyPlace, REDIRECTS, Trigger, place_at,
    },
    plan::OpenText,
    resolve,
    secrets::Secrets,
    syntax::{
        ast::{Piece, Template},
        parse,
    },
    value::function::Draw,
    vars::Vars,
};

/// The state for filling in texts.
pub(super) struct Filler<'a> {
    pub(super) vars: &'a Vars,
    pub(super) files: &'a Files,
    pub(super) draw: Draw,
    /// Texts that were computed from secrets.
    pub(super) secrets: Secrets,
    /// The number of times that a secret was filled in.
    pub(super) noted: usize,
}

/// The URL, the headers and the authentication header of a request, with all variables filled in.
struct RequestHead {
    url: String,
    headers: Vec<(String, String)>,
    auth: Option<(String, String)>,
}

/// Header names and values.
type Headers = Vec<(String, String)>;

impl Filler<'_> {
    pub(super) fn http(
        &mut self,
        http: &HttpTrigger<OpenText>,
        trigger: &Trigger<OpenText>,
    ) -> Result<HttpRequest, ResolveError> {
        let url = self.url(&http.url)?;
        let (headers, secret_headers) = self.headers(&http.headers)?;
        let before = self.noted;
        let body = match &http.body {
            Some(body) => self.content(body)?,
            None => Body::default(),
        };
        let is_body_secret = self.noted > before;
        let RequestHead { url, headers, auth } = self.asking(url, headers, http.auth.as_ref())?;
        Ok(HttpRequest {
            method: http.method.clone(),
            url,
            headers,
            auth,
            body,
            secret_headers,
            is_body_secret,
            timeout: trigger.timeout,
            propagation: trigger.propagation.clone(),
            tls: self.tls(trigger.tls.as_ref(), http.ssl_verification)?,
            redirects_max: http.redirects.unwrap_or(REDIRECTS),
        })
    }

    /// Builds the HTTP request of a GraphQL query: a POST with a JSON body.
    pub(super) fn graphql(
        &mut self,
        graphql: &Graphql<OpenText>,
        trigger: &Trigger<OpenText>,
    ) -> Result<HttpRequest, ResolveError> {
        let url = self.url(&graphql.url)?;
        let (mut headers, secret_headers) = self.headers(&graphql.headers)?;
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        let before = self.noted;
        let query = match self.content(&graphql.query)? {
            Body::Text(query) => query.to_string(),
            Body::Bytes(_) => return Err(not_text(&graphql.query)),
        };
        let mut members = vec![format!("\"query\":{}", quoted(&query))];
        if let Some(variables) = &graphql.variables {
            members.push(format!("\"variables\":{}", self.json(variables)?));
        }
        let operation = self.optional(graphql.operation_name.as_ref())?;
        if let Some(operation) = operation.filter(|operation| !operation.is_empty()) {
            members.push(format!("\"operationName\":{}", quoted(&operation)));
        }
        let is_body_secret = self.noted > before;
        let RequestHead { url, headers, auth } =
            self.asking(url, headers, graphql.auth.as_ref())?;
        Ok(HttpRequest {
            method: "POST".to_owned(),
            url,
            headers,
            auth,
            body: Body::Text(format!("{{{}}}", members.join(",")).into()),
            secret_headers,
            is_body_secret,
            timeout: trigger.timeout,
            propagation: trigger.propagation.clone(),
            tls: self.tls(trigger.tls.as_ref(), graphql.ssl_verification)?,
            redirects_max: REDIRECTS,
        })
    }

    /// Builds the request of a further protocol.
    pub(super) fn call(
        &mut self,
        call: &Call<OpenText>,
        trigger: &Trigger<OpenText>,
    ) -> Result<CallRequest, ResolveError> {
        let mut verification = None;
        let mut fields = Vec::with_capacity(call.fields.len());
        for (name, value) in &call.fields {
            let value = match value {
                FieldValue::Text(text) => CallValue::Text(self.text(text)?),
                FieldValue::Texts(texts) => {
                    let texts = texts.iter().map(|text| self.text(text));
                    CallValue::Texts(texts.collect::<Result<_, _>>()?)
                }
                FieldValue::Headers(headers) => CallValue::Pairs(self.headers(headers)?.0),
                FieldValue::Content(content) => CallValue::Body(self.content(content)?),
                FieldValue::Auth(Auth::ApiKey { key, place: KeyPlace::Query, .. }) => {
                    let reason =
                        "an API key goes into the query of a URL, which this trigger has not";
                    return Err(ResolveError::Header { place: key.place.clone(), reason });
                }
                FieldValue::Auth(auth) => {
                    let head = self.asking(String::new(), Vec::new(), Some(auth))?;
                    CallValue::Pairs(head.auth.into_iter().collect())
                }
                FieldValue::Plain(user, password) => {
                    CallValue::Pairs(vec![(self.text(user)?, self.text(password)?)])
                }
                FieldValue::Verification(is_on) => {
                    verification = Some(*is_on);
                    continue;
                }
            };
            fields.push((*name, value));
        }
        Ok(CallRequest {
            protocol: call.protocol.name,
            peer: call.protocol.peer,
            method: call.protocol.method,
            fields,
            timeout: trigger.timeout,
            propagation: trigger.propagation.clone(),
            tls: self.tls(trigger.tls.as_ref(), verification)?,
        })
    }

    pub(super) fn trace_id(&mut self, id: &OpenText) -> Result<TraceId, ResolveError> {
        let written = self.text(id)?.trim().to_ascii_lowercase();
        written.parse().map_err(|_| ResolveError::TraceId { place: id.place.clone() })
    }

    pub(super) fn command(
        &mut self,
        command: &Command<OpenText>,
    ) -> Result<model::Command, ResolveError> {
        Ok(match command {
            Command::Line(line) => model::Command::Line(self.text(line)?),
            Command::Words(words) => {
                let words = words.iter().map(|word| self.text(word)).collect::<Result<Vec<_>, _>>();
                let mut words = words?.into_iter();
                let program = words.next().unwrap_or_default();
                model::Command::Words { program, arguments: words.collect() }
            }
        })
    }

    pub(super) fn env(
        &mut self,
        env: &[(String, OpenText)],
    ) -> Result<Vec<(String, String)>, ResolveError> {
        env.iter().map(|(name, value)| Ok((name.clone(), self.text(value)?))).collect()
    }

    pub(super) fn optional(
        &mut self,
        text: Option<&OpenText>,
    ) -> Result<Option<String>, ResolveError> {
        text.map(|text| self.text(text)).transpose()
    }

    /// Puts the authentication into a header or into the URL.
    fn asking(
        &mut self,
        url: String,
        headers: Vec<(String, String)>,
        auth: Option<&Auth<OpenText>>,
    ) -> Result<RequestHead, ResolveError> {
        let authorization = |value: String, place: &Place| {
            checked("Authorization".to_owned(), value, place).map(Some)
        };
        let auth = match auth {
            None => None,
            Some(Auth::ApiKey { key, value, place: KeyPlace::Query }) => {
                let (key, (value, is_secret)) = (self.text(key)?, self.fill(value)?);
                self.note(is_secret, &escaped(&value));
                let url = with_query(&url, &key, &value);
                return Ok(RequestHead { url, headers, auth: None });
            }
            Some(Auth::ApiKey { key, value, place: KeyPlace::Header }) => {
                Some(checked(self.text(key)?, self.text(value)?, &key.place)?)
            }
            Some(Auth::Basic { username, password }) => {
                let (user, password_told) = (self.fill(username)?, self.fill(password)?);
                let pair = STANDARD.encode(format!("{}:{}", user.0, password_told.0));
                self.note(user.1 || password_told.1, &pair);
                authorization(format!("Basic {pair}"), &username.place)?
            }
            Some(Auth::Bearer { token }) => {
                let written = self.text(token)?;
                let has_scheme = written.to_ascii_lowercase().starts_with("bearer ");
                let value = if has_scheme { written } else { format!("Bearer {written}") };
                authorization(value, &token.place)?
            }
        };
        Ok(RequestHead { url, headers, auth })
    }

    fn tls(
        &mut self,
        tls: Option<&document::TriggerTls<OpenText>>,
        verification: Option<bool>,
    ) -> Result<Tls, ResolveError> {
        let is_verified = verification != Some(false);
        let verify = if is_verified { Verify::System } else { Verify::Nothing };
        let Some(tls) = tls else { return Ok(Tls { verify, ..Tls::default() }) };
        let ca = tls.ca_file.as_ref().map(|file| self.pem(file)).transpose()?;
        let identity = match &tls.cert_file {
            None => None,
            Some(file) => {
                let key = tls.key_file.as_ref().unwrap_or(file);
                Some(Identity { certificates: self.pem(file)?, key: Secret::new(self.pem(key)?) })
            }
        };
        Ok(Tls {
            verify: ca.filter(|_| is_verified).map_or(verify, Verify::Ca),
            identity,
            server_name: self.optional(tls.server_name.as_ref())?,
        })
    }

    /// Fills in the URL and prepends `http://` if it has no scheme.
    fn url(&mut self, url: &OpenText) -> Result<String, ResolveError> {
        let filled = self.text(url)?;
        let written = filled.trim();
        let (scheme, rest) = split_scheme(written).unwrap_or(("http", written));
        let scheme = scheme.to_ascii_lowercase();
        let is_web = scheme == "http" || scheme == "https";
        if !is_web || rest.is_empty() || rest.starts_with(['/', '?', '#']) {
            return Err(ResolveError::Url { place: url.place.clone() });
        }
        if wrong_port(rest, true).is_some() {
            return Err(ResolveError::Port { place: url.place.clone() });
        }
        Ok(format!("{scheme}://{rest}"))
    }

    /// Fills in the headers. Also returns the names of those that contain a secret.
    fn headers(
        &mut self,
        headers: &[Header<OpenText>],
    ) -> Result<(Headers, Vec<String>), ResolveError> {
        let (mut filled, mut secret) = (Vec::with_capacity(headers.len()), Vec::new());
        for header in headers {
            let before = self.noted;
            let key = self.text(&header.key)?;
            let value = self.optional(header.value.as_ref())?.unwrap_or_default();
            if self.noted > before {
                secret.push(key.clone());
            }
            filled.push(checked(key, value, &header.key.place)?);
        }
        Ok((filled, secret))
    }

    /// Fills in a text or loads a file: a UTF-8 file with its `${…}` filled in, any other file as bytes.
    fn content(&mut self, content: &Content<OpenText>) -> Result<Body, ResolveError> {
        let file = match content {
            Content::Text(text) => return self.text(text).map(|text| Body::Text(text.into())),
            Content::File(file) => file,
        };
        let bytes = self.read(file)?;
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Ok(Body::Bytes(bytes.into()));
        };
        let text = Text::new(&file.path, text);
        let parsed = parse::template(text.content());
        let Some(template) = parsed.tree else {
            let mistakes: Vec<_> =
                parsed.mistakes.into_iter().map(|mistake| mistake.in_text(&text)).collect();
            let picture = source::draw(&mistakes, source::Colour::Never);
            return Err(wrong(file, format!("cannot be filled in:\n{picture}")));
        };
        let place = |piece: &Piece| match piece {
            Piece::Text(_) => place_at((0..0).into(), &text),
            Piece::Value(value) => place_at(value.at.0.clone().into(), &text),
        };
        let places: Vec<_> = template.pieces.iter().map(place).collect();
        Ok(Body::Text(self.pieces(&template, &places)?.0.into()))
    }

    fn pem(&self, file: &FileRef) -> Result<String, ResolveError> {
        let text = String::from_utf8(self.read(file)?.to_vec()).ok();
        let text = text.filter(|text| text.contains("-----BEGIN "));
        text.ok_or_else(|| wrong(file, "is not PEM: expected `-----BEGIN …-----`".to_owned()))
    }

    fn read(&self, file: &FileRef) -> Result<&[u8], ResolveError> {
        let FileRef { path, place } = file;
        let unread = || ResolveError::Unread { path: path.clone(), place: place.clone() };
        self.files.get(file).ok_or_else(unread)
    }

    /// Encodes a value as JSON. Its depth is bounded by the depth limit of the document.
    fn json(&mut self, json: &JsonTemplate<OpenText>) -> Result<String, ResolveError> {
        Ok(match json {
            JsonTemplate::Bare(bare) => bare_json(bare),
            JsonTemplate::Text(text) => quoted(&self.text(text)?),
            JsonTemplate::List(items) => {
                let items = items.iter().map(|item| self.json(item)).collect::<Result<Vec<_>, _>>();
                format!("[{}]", items?.join(","))
            }
            JsonTemplate::Table(entries) => {
                let entry = |(key, value): &(String, JsonTemplate<OpenText>)| {
                    Ok(format!("{}:{}", quoted(key), self.json(value)?))
                };
                let entries = entries.iter().map(entry).collect::<Result<Vec<_>, _>>();
                format!("{{{}}}", entries?.join(","))
            }
        })
    }

    fn text(&mut self, open: &OpenText) -> Result<String, ResolveError> {
        Ok(self.fill(open)?.0)
    }

    /// Fills in a text. Also returns whether it contains a secret.
    fn fill(&mut self, open: &OpenText) -> Result<(String, bool), ResolveError> {
        self.pieces(&open.template, &open.pieces)
    }

    fn pieces(
        &mut self,
        template: &Template,
        places: &[Place],
    ) -> Result<(String, bool), ResolveError> {
        let (mut filled, mut has_secret) = (String::new(), false);
        for (piece, place) in template.pieces.iter().zip(places) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Value(value) => {
                    let known = resolve::value(value, self.vars, &mut self.draw);
                    let known = known.map_err(|unfilled| unfilled.at(place))?;
                    filled.push_str(&known.text);
                    has_secret |= known.is_secret;
                    self.note(known.is_secret, &known.text);
                }
            }
        }
        Ok((filled, has_secret))
    }

    fn note(&mut self, is_secret: bool, text: &str) {
        if is_secret {
            self.noted += 1;
            self.secrets.add(text);
        }
    }
}

/// Returns the header, or an error if it cannot be sent.
fn checked(key: String, value: String, place: &Place) -> Result<(String, String), ResolveError> {
    let refused = |reason| Err(ResolveError::Header { place: place.clone(), reason });
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if key.is_empty() || !key.bytes().all(is_token) {
        return refused("its name may hold letters, digits and `-` only");
    }
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return refused("its value holds a line break or another control character");
    }
    Ok((key, value))
}

/// Converts an unquoted YAML scalar to JSON. A value that JSON does not have, such as `.inf`, becomes a string.
fn bare_json(bare: &str) -> String {
    let small = bare.to_ascii_lowercase();
    if serde_json::from_str::<serde_json::Value>(&small).is_ok() {
        return small;
    }
    let number = bare.parse::<f64>().ok().filter(|number| number.is_finite());
    number.map_or_else(|| quoted(bare), |number| number.to_string())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn not_text(content: &Content<OpenText>) -> ResolveError {
    let (path, place) = match content {
        Content::File(file) => (file.path.clone(), file.place.clone()),
        Content::Text(text) => (String::new(), text.place.clone()),
    };
    ResolveError::File { path, place, reason: "is not text".to_owned() }
}

fn wrong(file: &FileRef, reason: String) -> ResolveError {
    ResolveError::File { path: file.path.clone(), place: file.place.clone(), reason }
}
