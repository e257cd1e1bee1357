//! A trace in the form that the predecessor had, and the evaluation of a case on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result, bail};
use lang::{Evidence, Seed, Vars};
use model::{
    Answer, Body, Judgement, Response, Settlement, SpanId, Timestamp, Trace, Verdict,
    trace::{Kind, ResourceData, ScopeData, SpanData, Value},
};
use serde::Deserialize;
use source::{Diagnostic, Severity, Text};

use super::case::VerdictCase;

/// The name of the trigger's span in the cases, and the id that it has here.
const TRIGGER: (&str, [u8; 8]) = ("trigger", *b"trigger!");

/// A trace with the trigger's span in it.
pub(super) struct TraceStage {
    trace: Trace,
    trigger: Option<SpanId>,
    answer: Option<Answer>,
    ids: Vec<String>,
}

/// The result of a case.
#[derive(Debug, Default)]
pub(super) struct CaseAnswer {
    /// The error that rejected the selector or the expression.
    pub(super) refusal: Option<String>,
    pub(super) matched: BTreeSet<String>,
    pub(super) count: u64,
    pub(super) passed: bool,
    /// The reason why it did not pass.
    pub(super) reason: String,
    pub(super) span_passed: BTreeMap<String, bool>,
    /// The left side of the assertion, or the expression, on the first span.
    pub(super) observed: Option<String>,
}

/// One entry of `triggers.json`.
#[derive(Deserialize)]
struct Trigger {
    span: Option<TriggerSpan>,
    response: Option<TriggerResponse>,
}

#[derive(Deserialize)]
struct TriggerSpan {
    attributes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct TriggerResponse {
    status: u16,
    body: String,
}

#[derive(Deserialize)]
struct Header {
    key: String,
    value: String,
}

impl TraceStage {
    /// Loads all traces of the folder, by file name.
    pub(super) fn load_all(folder: &Path) -> Result<BTreeMap<String, Self>> {
        let path = folder.join("triggers.json");
        let triggers = fs::read_to_string(&path)
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        let triggers: BTreeMap<String, Trigger> = serde_json::from_str(&triggers)?;
        let stages = triggers.into_iter().map(|(name, trigger)| {
            let path = folder.join("traces").join(&name);
            let stage = Self::load(&path, &trigger)
                .with_context(|| format!("cannot stage `{}`", path.display()))?;
            Ok((name, stage))
        });
        stages.collect()
    }

    fn load(path: &Path, trigger: &Trigger) -> Result<Self> {
        let sent = otlp::read(&fs::read(path)?)?.pop().context("a file holds one trace")?;
        let Some(span) = &trigger.span else {
            let ids = sent.spans().map(|span| span.id().to_string()).collect();
            return Ok(Self { trace: sent, trigger: None, answer: None, ids });
        };
        let trigger_id = SpanId::from_bytes(TRIGGER.1).context("an id")?;
        let roots = sent.spans().filter(|span| span.parent().is_none()).count();
        let mut trace = Trace::new(sent.id());
        let resource = trace.resource(ResourceData::default())?;
        let scope = trace.scope(ScopeData::default())?;
        let mut top = SpanData::new(trigger_id, None, "Tracetest trigger");
        // The predecessor's trigger span has no kind, so it gets one that no selector matches.
        top.kind = Kind::Other(i32::MAX);
        // Its other attributes are those of every span, and the response.
        let service = span.attributes.get("service.name").cloned().unwrap_or_default();
        top.attributes = vec![("service.name".to_owned(), Value::Str(service))];
        trace.push(resource, scope, top)?;
        for span in sent.spans() {
            let resource = trace.resource(span.resource().to_data())?;
            let scope = trace.scope(span.scope().to_data())?;
            let mut data = span.to_data();
            // With several roots the parent ids stay as they were sent.
            if roots == 1 && data.parent.is_none() {
                data.parent = Some(trigger_id);
            }
            trace.push(resource, scope, data)?;
        }
        let answer =
            trigger.response.as_ref().map(|response| answer(response, span)).transpose()?;
        let ids = trace.spans().map(|span| span.id().to_string()).collect();
        Ok(Self { trace, trigger: Some(trigger_id), answer, ids })
    }

    fn judge(&self, document: &serde_json::Value) -> Result<Judgement, String> {
        let plan = compile(document)?;
        let resolved = lang::resolve(&plan, &vars(), &SEED).map_err(|error| error.to_string())?;
        let settlement = Settlement { unsettled: Vec::new(), spans: 0, ..Settlement::default() };
        Ok(lang::judge(
            &resolved,
            &Evidence {
                trace: Some(&self.trace),
                trigger: self.trigger,
                answer: self.answer.as_ref(),
                settlement: Some(&settlement),
            },
        ))
    }
}

/// The time and the random seed of every case.
const SEED: Seed = Seed { now: Timestamp::from_nanos(1_760_000_000_000_000_000), random: [42; 32] };

/// Evaluates a case on its trace.
pub(super) fn ask(
    case: &VerdictCase,
    stages: &mut BTreeMap<String, TraceStage>,
) -> Result<CaseAnswer> {
    let (Some(trace), Some(selector)) = (&case.trace, &case.selector) else {
        return Ok(without_a_run(case));
    };
    let stage = stages.get(trace).with_context(|| format!("there is no trace `{trace}`"))?;
    let mut answered = CaseAnswer::default();
    // An assertion that fails on one span only shows whether that span is selected.
    let probes: Vec<_> = stage.ids.iter().map(|id| format!("id != \"{id}\"")).collect();
    let judgement = match stage.judge(&document(selector, &probes, None)) {
        Ok(judgement) => judgement,
        Err(refusal) => {
            answered.reason.clone_from(&refusal);
            answered.refusal = Some(refusal);
            return Ok(answered);
        }
    };
    let [spec] = judgement.specs.as_slice() else { bail!("one spec was asked for") };
    answered.count = spec.matched;
    for (assertion, id) in spec.assertions.iter().zip(&stage.ids) {
        let is_it = |span: SpanId| span.to_string() == *id;
        let on_it = assertion.spans.iter().find(|span| span.span_id.is_some_and(is_it));
        if on_it.is_some_and(|on_it| on_it.verdict == Verdict::Failed) {
            answered.matched.insert(name_of(id));
        }
    }
    if let Some(assertion) = &case.assertion {
        ask_assertion(stage, selector, assertion, &mut answered);
    }
    if let Some(expression) = &case.expression {
        answered.observed = value(stage, selector, expression);
    }
    Ok(answered)
}

fn ask_assertion(stage: &TraceStage, selector: &str, assertion: &str, answered: &mut CaseAnswer) {
    let judgement = match stage.judge(&document(selector, &[assertion.to_owned()], None)) {
        Ok(judgement) => judgement,
        Err(refusal) => {
            answered.reason = refusal;
            return;
        }
    };
    for judged in judgement.specs.iter().flat_map(|spec| &spec.assertions) {
        answered.passed = judged.verdict == Verdict::Passed;
        answered.reason = judged.reason.clone().unwrap_or_default();
        for span in &judged.spans {
            let Some(id) = span.span_id else { continue };
            if span.verdict != Verdict::Passed && answered.reason.is_empty() {
                answered.reason.clone_from(&span.found);
            }
            let is_passed = span.verdict == Verdict::Passed;
            answered.span_passed.insert(name_of(&id.to_string()), is_passed);
        }
    }
    if let Some(left) = left_side(assertion) {
        answered.observed = value(stage, selector, left);
    }
}

/// Returns the value of an expression on the first selected span.
fn value(stage: &TraceStage, selector: &str, expression: &str) -> Option<String> {
    let judgement = stage.judge(&document(selector, &[], Some(expression))).ok()?;
    judgement.outputs.into_iter().next().and_then(|output| output.value)
}

/// Resolves an expression without a trace, as in the text of a trigger.
fn without_a_run(case: &VerdictCase) -> CaseAnswer {
    let expression = case.expression.as_deref().unwrap_or_default();
    let mut document = document("span[]", &[], None);
    document["spec"]["trigger"]["httpRequest"]["body"] = format!("${{{expression}}}").into();
    let request = compile(&document).and_then(|plan| {
        let files = lang::Files::default();
        let asked = lang::request(&plan, &Vars::default(), &SEED, &files);
        asked.map(|asked| asked.request).map_err(|error| error.to_string())
    });
    match request {
        Ok(model::Request::Http(request)) => {
            let body = String::from_utf8_lossy(request.body.as_bytes()).into_owned();
            CaseAnswer { observed: Some(body), ..CaseAnswer::default() }
        }
        Ok(_) => CaseAnswer::default(),
        Err(refusal) => CaseAnswer { refusal: Some(refusal), ..CaseAnswer::default() },
    }
}

fn document(selector: &str, assertions: &[String], output: Option<&str>) -> serde_json::Value {
    let specs = match assertions {
        [] => serde_json::json!([]),
        _ => serde_json::json!([{ "selector": selector, "assertions": assertions }]),
    };
    let outputs: Vec<_> = output
        .iter()
        .map(|value| serde_json::json!({ "name": "VALUE", "selector": selector, "value": value }))
        .collect();
    serde_json::json!({
        "type": "Test",
        "spec": {
            "id": "case",
            "name": "case",
            "trigger": {
                "type": "http",
                "httpRequest": { "method": "GET", "url": "http://localhost/" },
            },
            "specs": specs,
            "outputs": outputs,
        },
    })
}

/// Compiles a document, written as JSON, which is valid YAML too; or returns its first diagnostic.
fn compile(document: &serde_json::Value) -> Result<lang::Plan, String> {
    let (plans, diagnostics) = lang::plans(&Text::new("case.yaml", document.to_string()));
    let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
    if let Some(mistake) = diagnostics.iter().find(is_error) {
        return Err(mistake.message.clone());
    }
    plans.into_iter().next().map(|planned| planned.plan).ok_or("there is no test".to_owned())
}

fn vars() -> Vars {
    let variables = [("X", "xv"), ("NUM", "5"), ("EMPTY", ""), ("dotted.key", "dk")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    Vars { variables, ..Vars::default() }
}

/// Returns the text before the comparator, if there is one outside of quotes.
fn left_side(assertion: &str) -> Option<&str> {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in assertion.char_indices() {
        let rest = &assertion[at..];
        match quote {
            Some(end) if c == end && before != '\\' => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if rest.starts_with(['=', '<', '>']) || rest.starts_with("!=") => {
                return Some(&assertion[..at]);
            }
            None if before == ' '
                && (rest.starts_with("contains ") || rest.starts_with("not-contains ")) =>
            {
                return Some(&assertion[..at]);
            }
            None => {}
        }
        before = c;
    }
    None
}

fn answer(response: &TriggerResponse, span: &TriggerSpan) -> Result<Answer> {
    let headers = span.attributes.get("tracetest.response.headers").map_or("[]", String::as_str);
    let headers: Vec<Header> = serde_json::from_str(headers)?;
    Ok(Answer::Response(Response {
        status: response.status,
        headers: headers.into_iter().map(|header| (header.key, header.value)).collect(),
        body: Body::Text(response.body.as_str().into()),
        duration_ns: 1_000_000,
    }))
}

/// Returns a span's id in the notation of the cases.
fn name_of(id: &str) -> String {
    let is_trigger = SpanId::from_bytes(TRIGGER.1).is_some_and(|trigger| trigger.to_string() == id);
    if is_trigger { TRIGGER.0.to_owned() } else { id.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::left_side;

    #[test]
    fn the_left_side_ends_at_the_comparator() {
        for (assertion, expected) in [
            ("attr:x = 1", Some("attr:x ")),
            ("attr:contains=\"a\"", Some("attr:contains")),
            ("'a = b' contains \"=\"", Some("'a = b' ")),
            ("\"a\\\" = b\" != 1", Some("\"a\\\" = b\" ")),
            ("attr:x | length not-contains 1", Some("attr:x | length ")),
            ("attr:x", None),
        ] {
            assert_eq!(left_side(assertion), expected, "{assertion}");
        }
    }
}
