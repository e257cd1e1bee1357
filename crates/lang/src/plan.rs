//! From a document to a plan: every string of it understood, every mistake in them at once.

use std::time::Duration;

use model::{Place, TestId};
use source::{Diagnostic, Diagnostics, Scalar, Span, Text, did_you_mean};

use crate::{
    document::{self, Test},
    expr::{self, Assertion, Term},
    mistake::Mistake,
    resolve::split_scheme,
    selector::{self, Selector},
    template::Template,
};

/// A compiled test.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Under which it is kept; made from the name where the document gives none.
    pub id: TestId,
    /// For people.
    pub name: String,
    pub(crate) trigger: Trigger,
    pub(crate) specs: Vec<Spec>,
    pub(crate) outputs: Vec<Output>,
    settle: Settle,
    skip_trace_collection: bool,
}

/// How long to wait for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settle {
    /// From the trigger's answer to the moment when the trace is judged as it is.
    pub timeout: Duration,
    /// How long a process has to be quiet before it is taken to have sent everything.
    pub flush: Duration,
}

/// An HTTP trigger with its variables still open.
#[derive(Clone, Debug)]
pub(crate) struct Trigger {
    pub(crate) method: String,
    pub(crate) url: Template,
    pub(crate) url_place: Place,
    pub(crate) headers: Vec<Header>,
    pub(crate) body: Template,
    pub(crate) timeout: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) key: Template,
    pub(crate) value: Template,
    pub(crate) place: Place,
}

#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: Option<String>,
    pub(crate) selector: Written<Selector>,
    pub(crate) assertions: Vec<Written<Assertion>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) selector: Selector,
    pub(crate) value: Term,
}

/// Something with the text it was read from and the place of that.
#[derive(Clone, Debug)]
pub(crate) struct Written<T> {
    pub(crate) source: String,
    pub(crate) place: Place,
    pub(crate) meaning: T,
}

/// The methods that Tracetest knows.
const METHODS: &[&str] = &[
    "GET", "PUT", "POST", "PATCH", "DELETE", "COPY", "HEAD", "OPTIONS", "LINK", "UNLINK", "PURGE",
    "LOCK", "UNLOCK", "PROPFIND", "VIEW",
];

/// Makes a plan of a test. There is none if anything in the test is wrong; warnings may come with one.
pub fn compile(test: &Test) -> (Option<Plan>, Vec<Diagnostic>) {
    let found = Diagnostics::new(&test.text);
    let compiler = Compiler { text: &test.text, found: &found };
    let plan = compiler.plan(test);
    let is_right = !test.is_broken && !found.has_errors();
    (plan.filter(|_| is_right), found.into_vec())
}

impl Plan {
    /// Whether the test asks for no trace, so that it is judged by the trigger's answer alone.
    pub fn skip_trace_collection(&self) -> bool {
        self.skip_trace_collection
    }

    /// How long to wait for the trace.
    pub fn settle(&self) -> Settle {
        self.settle
    }
}

impl Default for Settle {
    fn default() -> Self {
        // Longer than the five seconds for which SDKs keep their spans by default.
        Self { timeout: Duration::from_secs(30), flush: Duration::from_secs(6) }
    }
}

struct Compiler<'a> {
    text: &'a Text,
    found: &'a Diagnostics,
}

impl Compiler<'_> {
    /// All parts are looked at before one that is missing ends it.
    fn plan(&self, test: &Test) -> Option<Plan> {
        let id = self.id(test);
        let trigger = test.trigger.as_ref().map(|trigger| self.trigger(trigger));
        let specs: Vec<_> = test.specs.iter().map(|spec| self.spec(spec)).collect();
        let outputs: Vec<_> = test.outputs.iter().map(|output| self.output(output)).collect();
        Some(Plan {
            id: id?,
            name: test.name.as_ref()?.text.clone(),
            trigger: trigger??,
            specs: specs.into_iter().collect::<Option<_>>()?,
            outputs: outputs.into_iter().collect::<Option<_>>()?,
            settle: test.settle,
            skip_trace_collection: test.skip_trace_collection,
        })
    }

    fn id(&self, test: &Test) -> Option<TestId> {
        if let Some(id) = &test.id {
            let parsed = id.text.parse::<TestId>();
            return parsed
                .map_err(|error| self.found.push(self.found.error(id.span, error.to_string())))
                .ok();
        }
        let name = test.name.as_ref()?;
        let made = TestId::from_name(&name.text);
        if made.is_err() {
            let mistake = self.found.error(test.span, "no id can be made from the test's name");
            self.found
                .push(mistake.help("give the test an `id` of letters, digits, `.`, `_` or `-`"));
        }
        made.ok()
    }

    fn trigger(&self, trigger: &document::Trigger) -> Option<Trigger> {
        let method = self.method(trigger.method.as_ref());
        let url = self.template(&trigger.url);
        if let Some(url) = &url {
            self.check_url(url, &trigger.url);
        }
        let header = |(key, value): &(Scalar, Option<Scalar>)| {
            let value =
                value.as_ref().map_or_else(|| Some(Template::default()), |v| self.template(v));
            let key_template = self.template(key);
            Some(Header { key: key_template?, value: value?, place: self.place(key) })
        };
        let headers: Vec<_> = trigger.headers.iter().map(header).collect();
        let body =
            trigger.body.as_ref().map_or_else(|| Some(Template::default()), |b| self.body(b));
        Some(Trigger {
            method: method?,
            url: url?,
            url_place: self.place(&trigger.url),
            headers: headers.into_iter().collect::<Option<_>>()?,
            body: body?,
            timeout: trigger.timeout,
        })
    }

    fn method(&self, method: Option<&Scalar>) -> Option<String> {
        let Some(method) = method else { return Some("GET".to_owned()) };
        let capitals = method.text.to_ascii_uppercase();
        if METHODS.contains(&capitals.as_str()) {
            return Some(capitals);
        }
        let mistake = self.found.error(method.span, format!("unknown method `{}`", method.text));
        self.found.push(mistake.suggest(did_you_mean(&capitals, METHODS.iter().copied())));
        None
    }

    fn check_url(&self, url: &Template, scalar: &Scalar) {
        let (head, is_all) = url.head();
        if head.is_empty() && !is_all {
            return;
        }
        self.found.push(match split_scheme(head) {
            Some((scheme, _)) if ["http", "https"].contains(&&*scheme.to_ascii_lowercase()) => {
                return;
            }
            Some((scheme, _)) => {
                let message = format!("only `http` and `https` are supported, not `{scheme}`");
                self.found.error(scalar.span, message)
            }
            None if head.is_empty() => self.found.error(scalar.span, "the URL is empty"),
            None => {
                let warning = self.found.warning(scalar.span, "the URL has no scheme");
                warning.help("`http://` is put in front of it")
            }
        });
    }

    fn body(&self, body: &Scalar) -> Option<Template> {
        // Tracetest's CLI replaces such a body by the content of the file. Sending the name instead would be worse
        // than refusing it.
        let is_file = (body.text.starts_with("./") || body.text.starts_with("../"))
            && !body.text.contains(char::is_whitespace);
        if is_file {
            let mistake = self.found.error(body.span, "a file as body is not supported yet");
            self.found.push(mistake.help("write its content here, with `body: |`"));
            return None;
        }
        self.template(body)
    }

    fn template(&self, scalar: &Scalar) -> Option<Template> {
        let place = |range| self.place_at(scalar.span_of(range));
        Template::parse(scalar, place).map_err(|mistakes| self.push_all(mistakes, scalar)).ok()
    }

    fn spec(&self, spec: &document::Spec) -> Option<Spec> {
        let selector = self.selector(spec.selector.as_ref());
        let assertions: Vec<_> =
            spec.assertions.iter().map(|scalar| self.assertion(scalar)).collect();
        let source = spec.selector.as_ref().map_or(String::new(), |scalar| scalar.text.clone());
        let place =
            spec.selector.as_ref().map_or_else(|| self.place_at(spec.span), |s| self.place(s));
        Some(Spec {
            name: spec.name.as_ref().map(|name| name.text.clone()),
            selector: Written { source, place, meaning: selector? },
            assertions: assertions.into_iter().collect::<Option<_>>()?,
        })
    }

    fn selector(&self, scalar: Option<&Scalar>) -> Option<Selector> {
        let Some(scalar) = scalar else { return Some(Selector::default()) };
        match selector::parse(&scalar.text) {
            Ok((selector, warnings)) => {
                self.push_all(warnings, scalar);
                Some(selector)
            }
            Err(mistake) => {
                self.push_all(vec![mistake], scalar);
                None
            }
        }
    }

    fn assertion(&self, scalar: &Scalar) -> Option<Written<Assertion>> {
        let assertion = expr::parse_assertion(&scalar.text);
        let meaning = assertion.map_err(|mistake| self.push_all(vec![mistake], scalar)).ok()?;
        Some(Written { source: scalar.text.clone(), place: self.place(scalar), meaning })
    }

    fn output(&self, output: &document::Output) -> Option<Output> {
        let selector = self.selector(output.selector.as_ref());
        let value = expr::parse_value(&output.value.text);
        let value = value.map_err(|mistake| self.push_all(vec![mistake], &output.value)).ok();
        Some(Output { name: output.name.text.clone(), selector: selector?, value: value? })
    }

    fn push_all(&self, mistakes: Vec<Mistake>, scalar: &Scalar) {
        self.found.extend(mistakes.into_iter().map(|mistake| mistake.in_scalar(self.text, scalar)));
    }

    /// Where the content of a scalar begins, behind its quote if it has one.
    fn place(&self, scalar: &Scalar) -> Place {
        self.place_at(scalar.span_of(0..1.min(scalar.text.len())))
    }

    fn place_at(&self, span: Span) -> Place {
        let place = self.text.place(span.start);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let file = self.text.name().to_owned();
        Place { file, line: number(place.line), column: number(place.column) }
    }
}
