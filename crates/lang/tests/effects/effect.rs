//! Renders the effect of a document on a run as text: the request, the wait times, the judgement.

use std::{fmt::Write, time::Duration};

use lang::{
    Analyzer, CURRENT, Document, Evidence, Files, Gates, NoticeContext, Plan, QualityGate,
    Reference, Secrets, Seed, SettleProfile, StoreInputs, Test, TestSuite, TraceStore, VariableSet,
    Vars, analysis, compile, judge, outputs, read, request, resolve, storable_documents,
};
use model::{
    Answer, Body, Request, Response, Settlement, SpanId, Timestamp, Trace, TraceId,
    trace::{Kind, ResourceData, ScopeData, SpanData, Value},
};
use source::{Colour, Diagnostic, Text, draw};

/// The address of the OTLP receiver.
const RECEIVER: &str = "127.0.0.1:4317";
const CONTEXT: NoticeContext<'static> = NoticeContext { receiver: RECEIVER, is_server: false };

/// A test that names a profile, uses a variable, and has to pass gates.
const TEST: &str = "type: Test
spec:
  name: fixed
  trigger: {type: http, httpRequest: {url: 'http://shop.test/${var:USER}'}}
  pollingProfile: slow
  trace: ['some span[name=\"charge\"]']
";

/// Renders the effect on a run. The document, and the others of its text, have to be valid.
pub(crate) fn effect(text: &str) -> String {
    let text = Text::new("it.yaml", text);
    let (documents, found) = read(&text);
    let drawn = draw(&found, Colour::Never);
    assert!(!found.iter().any(Diagnostic::is_error), "{}\n{drawn}", text.content());
    let (stored, _) = storable_documents(&text, RECEIVER);
    let mut out = String::new();
    for one in stored {
        writeln!(out, "stored as {} {}", one.kind, one.id).expect("a text");
    }
    let (mut analyzer, mut runner) = (None, None);
    for document in &documents {
        match document {
            Document::Test(test) => out.push_str(&of_test(test)),
            Document::TestSuite(suite) => out.push_str(&of_suite(suite)),
            Document::VariableSet(set) => out.push_str(&of_variables(set)),
            Document::SettleProfile(profile) => out.push_str(&of_profile(profile)),
            Document::Analyzer(it) => analyzer = Some(it).filter(|it| holds(it.id.as_deref())),
            Document::QualityGate(it) => runner = Some(it).filter(|it| holds(it.id.as_deref())),
            Document::TraceStore(store) => {
                out.push_str(&draw(document.notice(&text, CONTEXT).as_slice(), Colour::Never));
                out.push_str(&of_store(store));
            }
            Document::Ignored(_) => {}
        }
    }
    out + &of_gates(analyzer, runner)
}

/// Renders all diagnostics of the commands that check or store a document.
pub(crate) fn told(text: &str) -> String {
    let text = Text::new("it.yaml", text);
    draw(&storable_documents(&text, RECEIVER).1, Colour::Never)
}

/// An environment in which every variable and every file has its name as its content.
struct NamedInputs(Vars);

impl StoreInputs for NamedInputs {
    fn variable(&self, name: &str) -> Option<&str> {
        self.0.variable(name)
    }

    fn environment(&self, name: &str) -> Option<&str> {
        self.0.environment(name)
    }

    fn file(&self, path: &str) -> Result<String, String> {
        Ok(path.to_owned())
    }
}

/// Renders how a store is queried, and whether it is the default.
fn of_store(store: &TraceStore) -> String {
    let config = store.config(&NamedInputs(Vars::default()));
    let secrets = config.as_ref().map_or_else(
        |_| Vec::new(),
        |config| {
            let headers = config.headers.iter().map(|(_, value)| value.expose());
            let key = config.tls.identity.as_ref().map(|identity| identity.key.expose());
            headers.chain(key).map(str::to_owned).collect()
        },
    );
    format!("{} {config:?} {secrets:?}\n", store.is_default)
}

fn holds(id: Option<&str>) -> bool {
    id.is_none_or(|id| id == CURRENT)
}

fn of_test(test: &Test) -> String {
    let (plan, found) = compile(test);
    let plan = plan.unwrap_or_else(|| panic!("{}", draw(&found, Colour::Never)));
    let mut files = Files::default();
    for file in plan.files() {
        files.insert(file, format!("-----BEGIN {}-----", file.path).into_bytes());
    }
    let fired = request(&plan, &Vars::default(), &seed(), &files).expect("it can be fired").request;
    let key = match &fired {
        Request::Http(http) => http.tls.identity.as_ref().map(|identity| identity.key.expose()),
        Request::Call(call) => call.tls.identity.as_ref().map(|identity| identity.key.expose()),
        Request::Exec(_) | Request::TraceId(_) => None,
    };
    let named = plan.settle_profile().map(|profile| match profile {
        Reference::Id(id) => id.clone(),
        Reference::File(file) => file.path.clone(),
    });
    format!(
        "{} {:?} {:?}\nfired: {fired:#?} {key:?}\n{:?} {:?} {:?} {} {named:?}\n{}",
        plan.name,
        plan.tags,
        plan.stores(),
        plan.settle(Duration::ZERO),
        plan.expected(),
        plan.absent(),
        plan.skip_trace_collection(),
        judged(&plan)
    )
}

/// Renders the verdicts with their reasons, and the outputs.
fn judged(plan: &Plan) -> String {
    let resolved = resolve(plan, &Vars::default(), &seed()).expect("nothing is open");
    let (trace, answer) = (trace(), answer());
    let settlement = Settlement { spans: 2, ..Settlement::default() };
    let is_traced = !plan.skip_trace_collection();
    let evidence = Evidence {
        trace: is_traced.then_some(&trace),
        trigger: None,
        answer: Some(&answer),
        settlement: is_traced.then_some(&settlement),
    };
    let judgement = judge(&resolved, &evidence);
    let mut out = format!("{:?}\n", judgement.verdict);
    for assertion in judgement.specs.iter().flat_map(|spec| &spec.assertions) {
        let spans: Vec<_> = assertion.spans.iter().map(|span| (&span.name, &span.found)).collect();
        writeln!(out, "{:?} {:?} {spans:?}", assertion.verdict, assertion.reason).expect("a text");
    }
    for claim in &judgement.claims {
        let spans: Vec<_> = claim.spans.iter().map(|span| (&span.name, &span.found)).collect();
        writeln!(out, "{:?} {:?} {spans:?}", claim.verdict, claim.reason).expect("a text");
    }
    let analysis = analysis(&resolved, &evidence);
    out + &format!("{:?}\n{analysis:#?}\n", outputs(&resolved, &evidence))
}

fn of_suite(suite: &TestSuite) -> String {
    let steps = suite.steps.iter().map(|step| {
        let test = match &step.test {
            Reference::Id(id) => format!("id {id}"),
            Reference::File(file) => format!("file {}", file.path),
        };
        format!("{} {test} {:?}\n", step.name, step.needs)
    });
    steps.collect()
}

fn of_variables(set: &VariableSet) -> String {
    let mut vars = Vars::default();
    for variable in &set.variables {
        vars.variables.insert(variable.key.clone(), variable.value.clone());
        if variable.is_secret {
            vars.secrets.insert(variable.key.clone());
        }
    }
    let fired = request(&fixed(), &vars, &seed(), &Files::default());
    let fired = fired.map(|asked| asked.request).map_err(|error| error.to_string());
    let fired = format!("{fired:?}");
    Secrets::of(&vars).hide(&fired).into_owned()
}

/// A profile applies to the test that names it, and to one that names none if it is the default.
fn of_profile(profile: &SettleProfile) -> String {
    let mut plan = fixed();
    if profile.key().as_deref() == Some("slow") || profile.is_default {
        plan.wait_as(profile);
    }
    format!("{:?}\n", plan.settle(Duration::ZERO))
}

fn of_gates(analyzer: Option<&Analyzer>, runner: Option<&QualityGate>) -> String {
    if analyzer.is_none() && runner.is_none() {
        return String::new();
    }
    let mut plan = fixed();
    plan.require(Gates::new(analyzer, runner));
    judged(&plan)
}

fn fixed() -> Plan {
    let (documents, _) = read(&Text::new("fixed.yaml", TEST));
    let [Document::Test(test)] = documents.as_slice() else { panic!("a test") };
    compile(test).0.expect("a plan")
}

fn seed() -> Seed {
    Seed { now: Timestamp::from_nanos(0), random: [7; 32] }
}

fn answer() -> Answer {
    let body = Body::Text("{}".into());
    Answer::Response(Response { status: 200, headers: Vec::new(), body, duration_ns: 1_000_000 })
}

/// Returns a trace of two client spans. One has an IP address and an empty attribute, which breaks rules of two plugins.
fn trace() -> Trace {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
    let service = vec![("service.name".to_owned(), Value::Str("shop".to_owned()))];
    let resource = ResourceData { attributes: service, ..ResourceData::default() };
    let resource = trace.resource(resource).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    for (number, name) in [(1, "charge"), (2, "ship")] {
        let id = SpanId::from_bytes([number; 8]).expect("not zero");
        let mut span = SpanData::new(id, None, name);
        span.kind = Kind::Client;
        let text = |key: &str, value: &str| (key.to_owned(), Value::Str(value.to_owned()));
        span.attributes = vec![
            ("shop.amount".to_owned(), Value::Int(42 * i64::from(number))),
            text("shop.order", if number == 1 { "o-1" } else { "o-2" }),
            text("shop.note", if number == 1 { "" } else { "gift" }),
            text("server.address", if number == 1 { "10.0.0.7" } else { "carrier" }),
        ];
        span.end = Timestamp::from_nanos(1_000_000);
        trace.push(resource, scope, span).expect("room");
    }
    trace
}
