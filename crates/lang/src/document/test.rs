//! Tests: the trigger, the specs and claims on its trace, and the outputs.

use source::{Diagnostics, Fields, Item, Scalar, Span, Text};

use super::{Reference, Settle, Trigger, alone, read_wait, take_read_only, texts};

/// A test as written; [`compile`](crate::compile) makes a plan from it.
#[derive(Clone, Debug)]
pub struct Test {
    pub(crate) text: Text,
    /// The first line of the document, for diagnostics about missing keys.
    pub(crate) span: Span,
    /// The complete document.
    pub(crate) whole: Span,
    /// Whether the parser reported an error, so that no plan can be made.
    pub(crate) is_broken: bool,
    pub(crate) id: Option<Scalar>,
    pub(crate) name: Option<Scalar>,
    pub(crate) tags: Vec<Scalar>,
    pub(crate) trigger: Option<Trigger<Scalar>>,
    pub(crate) specs: Vec<SpecSource>,
    pub(crate) claims: Vec<ClaimSource>,
    pub(crate) outputs: Vec<OutputSource>,
    pub(crate) skip_trace_collection: bool,
    pub(crate) settle: Settle,
    /// Whether `settle.timeout` is written.
    pub(crate) says_timeout: bool,
    /// Services or selectors.
    pub(crate) expect: Vec<Scalar>,
    pub(crate) absent: Vec<Scalar>,
    pub(crate) settle_profile: Option<Reference>,
    /// The trace stores that it names.
    pub(crate) stores: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct SpecSource {
    /// The span of the spec, for diagnostics about a missing selector.
    pub(crate) span: Span,
    pub(crate) name: Option<Scalar>,
    pub(crate) selector: Option<Scalar>,
    pub(crate) assertions: Vec<Scalar>,
}

#[derive(Clone, Debug)]
pub(crate) struct ClaimSource {
    pub(crate) name: Option<Scalar>,
    pub(crate) claim: Scalar,
}

#[derive(Clone, Debug)]
pub(crate) struct OutputSource {
    pub(crate) name: Scalar,
    pub(crate) selector: Option<Scalar>,
    pub(crate) value: Scalar,
}

/// The keys that an export adds.
const READ_ONLY: &[&str] = &["version", "createdAt", "summary"];

impl Test {
    /// Returns the name of the test as written, for messages about a test that may not compile.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(|name| name.text.as_str())
    }

    /// Returns the document without the other documents of its file, padded so that it keeps its line and column.
    pub fn document(&self) -> String {
        alone(&self.text, self.whole)
    }

    /// Returns the span of the id, or of the name that the id is derived from.
    pub(crate) fn id_span(&self) -> Span {
        self.id.as_ref().or(self.name.as_ref()).map_or(self.span, |scalar| scalar.span)
    }

    pub(super) fn read(item: &Item<'_>, found: &Diagnostics) -> Option<Self> {
        let mut fields = item.fields()?;
        let id = fields.take("id").and_then(|id| id.text());
        let name = fields.require("name").and_then(|name| name.text());
        fields.take("description").and_then(|description| description.text());
        let tags = texts(&mut fields, "tags");
        let trigger = fields.require("trigger").and_then(|trigger| Trigger::read(&trigger, found));
        let mut list =
            |key| fields.take(key).map_or_else(Vec::new, |item: Item<'_>| items(&item, found));
        let specs = list("specs");
        let claims = list("trace");
        let outputs = list("outputs");
        let skip_trace_collection = fields.boolean("skipTraceCollection").unwrap_or(false);
        let (mut expect, mut absent) = (Vec::new(), Vec::new());
        let settle = fields.table("settle").map(|mut settle| {
            (expect, absent) = (texts(&mut settle, "expect"), texts(&mut settle, "absent"));
            read_settle(settle, found)
        });
        let (settle, says_timeout) = settle.unwrap_or_default();
        if let Some(first) = expect.first().filter(|_| skip_trace_collection) {
            let message = "what `settle.expect` names is waited for in the trace, and `skipTraceCollection` takes none";
            found.push(found.error(first.span, message).help("take one of the two out"));
        }
        let stores = read_stores(&mut fields);
        if let Some(first) = stores.first().filter(|_| skip_trace_collection) {
            let message = "`store` is queried for the trace, and `skipTraceCollection` takes none";
            found.push(found.error(first.span, message).help("take one of the two out"));
        }
        let settle_profile = read_settle_profile(&mut fields, found);
        take_read_only(&mut fields, READ_ONLY);
        fields.finish();
        Some(Self {
            text: found.text().clone(),
            span: found.text().first_line(item.node.span),
            whole: item.node.span,
            is_broken: false,
            id: id.cloned(),
            name: name.cloned(),
            tags,
            trigger,
            specs: specs.iter().filter_map(|spec| read_spec(spec, found)).collect(),
            claims: claims.iter().filter_map(|claim| read_claim(claim, found)).collect(),
            outputs: outputs.iter().filter_map(read_output).collect(),
            skip_trace_collection,
            settle,
            says_timeout,
            expect,
            absent,
            settle_profile,
            stores: stores.into_iter().map(|store| store.text).collect(),
        })
    }
}

/// Parses the trace stores that a test names: one, or a list.
fn read_stores(fields: &mut Fields<'_>) -> Vec<Scalar> {
    let Some(item) = fields.take("store") else { return Vec::new() };
    if item.node.as_sequence().is_none() {
        return item.text().cloned().into_iter().collect();
    }
    let list = item.list().unwrap_or_default();
    list.iter().filter_map(|item| item.text().cloned()).collect()
}

/// Returns the items of a list. A value that is not a list lacks its dash.
fn items<'a>(item: &Item<'a>, found: &Diagnostics) -> Vec<Item<'a>> {
    if item.node.as_sequence().is_none() {
        let span = found.text().first_line(item.node.span);
        let mistake = found.error(span, format!("`{}` must be a list", item.path));
        let mistake = mistake.label(format!("found {}", item.node.kind()));
        found.push(mistake.help("begin each of its items with `- `"));
        return Vec::new();
    }
    item.list().unwrap_or_default()
}

fn read_spec(item: &Item<'_>, found: &Diagnostics) -> Option<SpecSource> {
    let mut fields = item.fields()?;
    let name = fields.take("name").and_then(|name| name.text()).cloned();
    let selector = fields.take("selector").and_then(|selector| read_selector(&selector));
    let assertions = fields.require("assertions");
    fields.finish();
    let list = assertions.as_ref().map_or_else(Vec::new, |item| items(item, found));
    if let Some(assertions) = assertions.filter(|_| list.is_empty())
        && assertions.node.as_sequence().is_some()
    {
        let span = found.text().first_line(assertions.node.span);
        found.push(
            found
                .error(span, "a spec needs at least one assertion")
                .help("to ask for a match alone, write `attr:tracetest.selected_spans.count >= 1`"),
        );
    }
    let assertion = |item: &Item<'_>| read_statement(item, "an assertion", found);
    let assertions = list.iter().filter_map(assertion).collect();
    let span = found.text().first_line(item.node.span);
    Some(SpecSource { span, name, selector, assertions })
}

fn read_claim(item: &Item<'_>, found: &Diagnostics) -> Option<ClaimSource> {
    let is_named = ["name", "claim"].iter().any(|key| item.node.get(key).is_some());
    if !is_named {
        return read_statement(item, "a claim", found)
            .map(|claim| ClaimSource { name: None, claim });
    }
    let mut fields = item.fields()?;
    let name = fields.take("name").and_then(|name| name.text()).cloned();
    let claim = fields.require("claim");
    fields.finish();
    let claim = read_statement(&claim?, "a claim", found)?;
    Some(ClaimSource { name, claim })
}

/// Parses a statement of the language. YAML may have read it as a table, or as a tag with a value.
fn read_statement(item: &Item<'_>, what: &str, found: &Diagnostics) -> Option<Scalar> {
    let (text, span) = (found.text(), found.text().first_line(item.node.span));
    let written = text.slice(span);
    if let Some(table) = item.node.as_table() {
        let mistake = found.error(span, format!("`{}` must be a single value", item.path));
        let mistake = mistake.label("YAML reads a table");
        let key = table.first().map_or("", |entry| entry.key.text.as_str());
        let scope = ["attr", "var", "env"].into_iter().find(|scope| is_last_word(key, scope));
        found.push(mistake.help(match scope {
            Some(scope) => {
                let rest = written.get(key.len() + 1..).unwrap_or_default().trim_start();
                format!("no space may follow `{scope}:`; write `{key}:{rest}`")
            }
            None => format!("put {what} that holds `: ` in quotes, or behind `>-`"),
        }));
        return None;
    }
    let before = text.content().get(..span.start).unwrap_or_default().trim_end_matches([' ', '\t']);
    let word = before.rsplit([' ', '\t', '\n', '[', ',']).next();
    let tag = word.and_then(|word| word.strip_prefix('!'));
    if let Some(negated) = tag.filter(|tag| !tag.starts_with(['!', '<'])) {
        let whole = Span { start: before.len() - negated.len() - 1, ..span };
        let mistake = found.error(whole, format!("{what} cannot begin with `!`"));
        let negated = format!("{negated} {written}");
        found.push(mistake.help(format!("write `not {}`", negated.trim())));
        return None;
    }
    item.text().cloned()
}

fn is_last_word(text: &str, word: &str) -> bool {
    let before = text.strip_suffix(word);
    before.is_some_and(|before| before.is_empty() || before.ends_with([' ', '(', '[', ',']))
}

/// Parses a selector: a string, or a table with the string under `query`, as older versions of Tracetest write it.
fn read_selector(item: &Item<'_>) -> Option<Scalar> {
    if item.node.as_table().is_none() {
        return item.text().cloned();
    }
    let mut fields = item.fields()?;
    let query = fields.require("query").and_then(|query| query.text()).cloned();
    fields.take("parsedSelector");
    fields.finish();
    query
}

fn read_output(item: &Item<'_>) -> Option<OutputSource> {
    let mut fields = item.fields()?;
    let name = fields.require("name").and_then(|name| name.text());
    let selector = fields.take("selector").and_then(|selector| read_selector(&selector));
    let value = fields.require("value").and_then(|value| value.text());
    fields.finish();
    Some(OutputSource { name: name?.clone(), selector, value: value?.clone() })
}

/// Parses the settle profile that a test names, by our key or by Tracetest's.
fn read_settle_profile(fields: &mut Fields<'_>, found: &Diagnostics) -> Option<Reference> {
    let own = fields.take("settleProfile");
    let theirs = fields.take("pollingProfile");
    if let Some(theirs) = &theirs {
        if own.is_some() {
            let message =
                "`pollingProfile` is Tracetest's name of `settleProfile`, which is there too";
            found.push(found.error(theirs.head(), message).help("remove one of the two"));
            return None;
        }
        let message = "nothing is polled here: `pollingProfile` only sets how long to wait";
        let note = found.note(theirs.head(), message);
        found.push(
            note.help("its `periodic.timeout` counts as `settle.timeout`; write `settleProfile`"),
        );
    }
    Some(Reference::new(own.or(theirs)?.text()?, found.text()))
}

/// Parses how long to wait. Also returns whether the test declares its own timeout.
fn read_settle(mut fields: Fields<'_>, found: &Diagnostics) -> (Settle, bool) {
    let default = Settle::default();
    let (timeout, flush) = (fields.take("timeout"), fields.take("flush"));
    fields.finish();
    let wait = |item: &Option<Item<'_>>| item.as_ref().map(|item| read_wait(item, found));
    // An invalid duration is reported, and the test gets no plan.
    let settle = Settle {
        timeout: wait(&timeout).flatten().unwrap_or(default.timeout),
        flush: wait(&flush).flatten(),
    };
    if let Some(item) = &flush
        && settle.flush.is_some_and(|flush| flush >= settle.timeout)
    {
        let span = found.text().first_line(item.node.span);
        let message = "`flush` must be less than `timeout`, or no trace is ever complete";
        let left_out = match &timeout {
            None => format!("; `timeout` is {:?} if it is left out", settle.timeout),
            Some(_) => String::new(),
        };
        let help = format!("write a longer `timeout` or a shorter `flush`{left_out}");
        found.push(found.error(span, message).help(help));
    }
    (settle, timeout.is_some())
}
