//! Compiles a document into a plan: parses every string in it and reports all errors at once.

use std::collections::{BTreeMap, btree_map::Entry};

use model::TestId;
use source::{Diagnostic, Diagnostics, Scalar, Span};

use crate::{
    document::{self, Auth, HttpTrigger, Test, Trigger, TriggerKind, place_at, place_of},
    gates::Gates,
    plan::{Claim, Expect, OpenText, Output, Plan, SourceNode, Spec},
    request::{split_scheme, wrong_port},
    syntax::{
        ast::{Expr, ExprKind, Piece, Selector, Template},
        parse::{self, ParseResult},
        print,
    },
};

/// Compiles a test into a plan. Returns no plan if the test has any error; a plan may come with warnings.
pub fn compile(test: &Test) -> (Option<Plan>, Vec<Diagnostic>) {
    let found = Diagnostics::new(&test.text);
    let plan = Compiler { found: &found }.plan(test);
    let is_right = !test.is_broken && !found.has_errors();
    (plan.filter(|_| is_right), found.into_vec())
}

struct Compiler<'a> {
    found: &'a Diagnostics,
}

impl Compiler<'_> {
    /// Checks all parts before a missing part ends the compilation.
    fn plan(&self, test: &Test) -> Option<Plan> {
        let id = self.id(test);
        let trigger = test.trigger.as_ref().map(|trigger| self.trigger(trigger));
        let specs: Vec<_> = test.specs.iter().map(|spec| self.spec(spec)).collect();
        self.tell_same_selectors(test, &specs);
        let claims: Vec<_> = test.claims.iter().map(|claim| self.claim(claim)).collect();
        let outputs: Vec<_> = test.outputs.iter().map(|output| self.output(output)).collect();
        self.refuse_same_names(&test.outputs);
        let expect: Vec<_> = test.expect.iter().map(|expect| self.expect(expect)).collect();
        Some(Plan {
            id: id?,
            name: test.name.as_ref()?.text.clone(),
            tags: test.tags.iter().map(|tag| tag.text.clone()).collect(),
            trigger: trigger?,
            specs: specs.into_iter().collect::<Option<_>>()?,
            claims: claims.into_iter().collect::<Option<_>>()?,
            outputs: outputs.into_iter().collect::<Option<_>>()?,
            settle: test.settle,
            says_timeout: test.says_timeout,
            expect: expect.into_iter().collect::<Option<_>>()?,
            absent: test.absent.iter().map(|service| service.text.clone()).collect(),
            settle_profile: test.settle_profile.clone(),
            stores: test.stores.clone(),
            queried: Vec::new(),
            skip_trace_collection: test.skip_trace_collection,
            gates: Gates::default(),
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

    fn trigger(&self, trigger: &Trigger<Scalar>) -> Trigger<OpenText> {
        let open = trigger.map(&mut |scalar| self.template(scalar));
        if let (TriggerKind::Http(written), TriggerKind::Http(open)) = (&trigger.kind, &open.kind) {
            self.check_http(written, open);
        }
        open
    }

    fn check_http(&self, written: &HttpTrigger<Scalar>, open: &HttpTrigger<OpenText>) {
        self.check_url(&open.url, written);
        if let (Some(Auth::Bearer { token: written }), Some(Auth::Bearer { token })) =
            (&written.auth, &open.auth)
        {
            let begins = token.head().0.to_ascii_lowercase().starts_with("bearer ");
            self.found.push(if begins {
                let message = "`Bearer` is put in front of a token, and not twice";
                self.found.warning(written.span, message).help("write the token alone")
            } else {
                let message = "the token is sent with `Bearer` in front of it";
                let note = self.found.note(written.span, message);
                note.help("Tracetest sends the token alone; for that, write the header yourself")
            });
        }
    }

    fn check_url(&self, url: &OpenText, http: &HttpTrigger<Scalar>) {
        let (head, is_all) = url.head();
        if head.is_empty() && !is_all {
            return;
        }
        let span = self.found.text().first_line(http.url.span);
        let (scheme, rest) = split_scheme(head).map_or((None, head), |(it, rest)| (Some(it), rest));
        if let Some(port) = wrong_port(rest, is_all) {
            let error = self.found.error(span, format!("`{port}` is no port"));
            self.found.push(error.help("a port is a number up to 65535"));
        }
        let scheme = scheme.map(str::to_ascii_lowercase);
        self.found.push(match scheme.as_deref() {
            Some("http") => return,
            Some("https") if http.ssl_verification.is_some() => return,
            Some("https") => {
                let note = self.found.note(span, "the certificate is verified");
                note.help("Tracetest verifies none by default; write `sslVerification: true`")
            }
            Some(scheme) => {
                let message = format!("only `http` and `https` are supported, not `{scheme}`");
                self.found.error(span, message)
            }
            None if head.is_empty() => self.found.error(span, "the URL is empty"),
            None => {
                let warning = self.found.warning(span, "the URL has no scheme");
                warning.help("`http://` is put in front of it")
            }
        });
    }

    /// Parses the `${…}` of a text. If that fails, reports the errors and returns a text that is completely open.
    fn template(&self, scalar: &Scalar) -> OpenText {
        let template = self.parsed(scalar, parse::template(&scalar.text));
        let open = || Template { pieces: vec![Piece::Value(Expr::new(ExprKind::Null, 0..0))] };
        let template = template.unwrap_or_else(open);
        let text = self.found.text();
        let place = |piece: &Piece| match piece {
            Piece::Text(_) => place_of(scalar, text),
            Piece::Value(value) => place_at(scalar.span_of(value.at.0.clone()), text),
        };
        let pieces = template.pieces.iter().map(place).collect();
        OpenText { template, place: place_of(scalar, text), pieces }
    }

    fn spec(&self, spec: &document::SpecSource) -> Option<Spec> {
        let selector = self.selector(spec.selector.as_ref());
        let assertion = |scalar: &Scalar| self.expression(scalar, parse::assertion(&scalar.text));
        let assertions: Vec<_> = spec.assertions.iter().map(assertion).collect();
        let source = spec.selector.as_ref().map_or(String::new(), |scalar| scalar.text.clone());
        let place = match &spec.selector {
            Some(scalar) => place_of(scalar, self.found.text()),
            None => place_at(spec.span, self.found.text()),
        };
        Some(Spec {
            name: spec.name.as_ref().map(|name| name.text.clone()),
            selector: SourceNode { source, place, meaning: selector? },
            assertions: assertions.into_iter().collect::<Option<_>>()?,
        })
    }

    /// Warns of two specs with the same selector. Both are judged; Tracetest shows only the results of the last one.
    fn tell_same_selectors(&self, test: &Test, specs: &[Option<Spec>]) {
        let mut places: BTreeMap<String, Span> = BTreeMap::new();
        for (written, spec) in test.specs.iter().zip(specs) {
            let (Some(scalar), Some(spec)) = (&written.selector, spec) else { continue };
            let span = self.found.text().first_line(scalar.span_of(0..scalar.text.len()));
            match places.entry(print::selector(&spec.selector.meaning)) {
                Entry::Vacant(free) => drop(free.insert(span)),
                // A YAML alias: the repetition is intended.
                Entry::Occupied(first) if *first.get() == span => {}
                Entry::Occupied(first) => self.found.push(
                    self.found
                        .warning(span, "two specs have the same selector: both are judged")
                        .label("the second")
                        .also(*first.get(), "the first")
                        .help("Tracetest shows the results of the second alone; one spec can hold all"),
                ),
            }
        }
    }

    fn claim(&self, claim: &document::ClaimSource) -> Option<Claim> {
        let name = claim.name.as_ref().map(|name| name.text.clone());
        let scalar = &claim.claim;
        Some(Claim { name, claim: self.expression(scalar, parse::claim(&scalar.text))? })
    }

    fn output(&self, output: &document::OutputSource) -> Option<Output> {
        let selector = self.selector(output.selector.as_ref());
        let value = self.parsed(&output.value, parse::value(&output.value.text));
        let place = place_of(&output.value, self.found.text());
        Some(Output { name: output.name.text.clone(), selector: selector?, value: value?, place })
    }

    /// Rejects two outputs with the same name: the first one would be lost.
    fn refuse_same_names(&self, outputs: &[document::OutputSource]) {
        let mut places: BTreeMap<&str, Span> = BTreeMap::new();
        for output in outputs {
            let (name, span) = (&output.name.text, output.name.span);
            match places.get(name.as_str()) {
                Some(first) => self.found.push(
                    self.found
                        .error(span, format!("two outputs have the name `{name}`"))
                        .label("the second")
                        .also(*first, "the first"),
                ),
                None => drop(places.insert(name, span)),
            }
        }
    }

    /// Parses a service name or a selector: no service name contains a bracket.
    fn expect(&self, scalar: &Scalar) -> Option<Expect> {
        if !scalar.text.contains('[') {
            return Some(Expect::Service(scalar.text.clone()));
        }
        let meaning = self.selector(Some(scalar))?;
        let place = place_of(scalar, self.found.text());
        Some(Expect::Span(SourceNode { source: scalar.text.clone(), place, meaning }))
    }

    fn selector(&self, scalar: Option<&Scalar>) -> Option<Selector> {
        let Some(scalar) = scalar else { return Some(Selector::default()) };
        self.parsed(scalar, parse::selector(&scalar.text))
    }

    fn expression(&self, scalar: &Scalar, parsed: ParseResult<Expr>) -> Option<SourceNode<Expr>> {
        let meaning = self.parsed(scalar, parsed)?;
        let place = place_of(scalar, self.found.text());
        Some(SourceNode { source: scalar.text.clone(), place, meaning })
    }

    /// Returns the syntax tree and reports its errors at their location in the file.
    fn parsed<T>(&self, scalar: &Scalar, parsed: ParseResult<T>) -> Option<T> {
        let text = self.found.text();
        self.found.extend(parsed.mistakes.into_iter().map(|one| one.in_scalar(text, scalar)));
        parsed.tree
    }
}
