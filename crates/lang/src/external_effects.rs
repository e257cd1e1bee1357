//! What a run of a test does outside of this process, as its document states it: what it executes, and what it sends where.
//!
//! It is known before anything runs, so that a person can decide. Deliberately absent: whether it is allowed.

use std::collections::BTreeSet;

use crate::{
    document::{Command, Exec, FieldValue, TriggerKind},
    plan::{OpenText, Plan},
    request::{Files, split_scheme},
    syntax::{
        ast::{Expr, ExprKind, Piece, Template, VariableScope},
        parse, print,
    },
    vars::Vars,
};

/// What a run of a test does outside of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalEffects {
    /// The command that it executes, as a person would read it.
    pub command: Option<String>,
    /// Where it sends its request.
    pub destinations: Vec<Destination>,
    /// The environment variables with values that it uses.
    pub environment: BTreeSet<String>,
    /// The other variables that it uses.
    pub variables: BTreeSet<String>,
    /// The files whose content it sends, as written.
    pub sent: BTreeSet<String>,
}

/// An address that a request is sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Scheme, host and port; none if they are only known during the run.
    pub origin: Option<String>,
    /// The address as written, with the variables that are known; secrets and the environment are not filled in.
    pub shown: String,
}

impl Plan {
    /// Returns what a run does with these variables. A file without content is not searched for variables.
    pub fn external_effects(&self, vars: &Vars, files: &Files) -> ExternalEffects {
        let mut effects = ExternalEffects::default();
        let mut scan = Scan { vars, effects: &mut effects };
        self.trigger.map(&mut |text| scan.template(&text.template));
        for file in self.trigger.contents() {
            scan.effects.sent.insert(file.path.clone());
            let text = files.get(file).and_then(|bytes| std::str::from_utf8(bytes).ok());
            if let Some(template) = text.and_then(|text| parse::template(text).tree) {
                scan.template(&template);
            }
        }
        let mut destination = |text: &OpenText| {
            let destination = Destination { origin: origin(text, vars), shown: shown(text, vars) };
            effects.destinations.push(destination);
        };
        match &self.trigger.kind {
            TriggerKind::Http(http) => destination(&http.url),
            TriggerKind::Graphql(graphql) => destination(&graphql.url),
            TriggerKind::Call(call) => {
                let peers = call.fields.iter().filter(|(name, _)| *name == call.protocol.peer);
                for (_, peer) in peers {
                    match peer {
                        FieldValue::Text(text) => destination(text),
                        FieldValue::Texts(texts) => texts.iter().for_each(&mut destination),
                        _ => {}
                    }
                }
            }
            TriggerKind::Exec(exec) => effects.command = Some(command(exec, vars)),
            TriggerKind::TraceId(_) => {}
        }
        effects
    }

    /// Returns the names of the outputs, which later steps of a suite may use as variables.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        self.outputs.iter().map(|output| output.name.as_str())
    }
}

/// Finds the variables in texts.
struct Scan<'a> {
    vars: &'a Vars,
    effects: &'a mut ExternalEffects,
}

impl Scan<'_> {
    fn template(&mut self, template: &Template) {
        for piece in &template.pieces {
            if let Piece::Value(value) = piece {
                self.expr(value);
            }
        }
    }

    /// Visits the parts of an expression. What needs a trace has no value in a trigger: such a request is not sent.
    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Variable { scope: VariableScope::Env, name }
                if !self.vars.variables.contains_key(name) =>
            {
                self.effects.environment.insert(name.clone());
            }
            ExprKind::Variable { name, .. } => drop(self.effects.variables.insert(name.clone())),
            ExprKind::Template(template) => self.template(template),
            ExprKind::List(items)
            | ExprKind::And(items)
            | ExprKind::Or(items)
            | ExprKind::Call { arguments: items, .. } => self.exprs(items),
            ExprKind::Filter { input, arguments, .. } => {
                self.expr(input);
                self.exprs(arguments);
            }
            ExprKind::Minus(of) | ExprKind::Not(of) | ExprKind::Exists { value: of, .. } => {
                self.expr(of);
            }
            ExprKind::Arithmetic { left, right, .. } | ExprKind::Compare { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Between { value, low, high, .. } => {
                [value, low, high].into_iter().for_each(|part| self.expr(part));
            }
            ExprKind::Within { condition: part, .. }
            | ExprKind::Quantified { predicate: part, .. } => {
                part.iter().for_each(|part| self.expr(part));
            }
            ExprKind::Aggregate(aggregate) => {
                aggregate.value.iter().for_each(|value| self.expr(value));
                self.exprs(&aggregate.by);
            }
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number { .. }
            | ExprKind::Duration(_)
            | ExprKind::Text(_)
            | ExprKind::Property(_)
            | ExprKind::Known(_)
            | ExprKind::Response(_)
            | ExprKind::Gap { .. }
            | ExprKind::Relation { .. } => {}
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        exprs.iter().for_each(|expr| self.expr(expr));
    }
}

/// Returns scheme, host and port of an address; none if they are not known before the run.
fn origin(text: &OpenText, vars: &Vars) -> Option<String> {
    let mut filled = String::new();
    for piece in &text.template.pieces {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Value(Expr { kind: ExprKind::Variable { scope, name }, .. }) => {
                filled.push_str(vars.get(*scope, name)?);
            }
            // What is computed may differ at the next time.
            Piece::Value(_) => return None,
        }
        if let Some(origin) = ended_origin(&filled) {
            return Some(origin);
        }
    }
    let (scheme, authority) = split_scheme(filled.trim()).unwrap_or(("http", filled.trim()));
    Some(format!("{scheme}://{authority}"))
}

/// Returns scheme, host and port of a text in which they have ended, whatever follows.
fn ended_origin(text: &str) -> Option<String> {
    let text = text.trim_start();
    let (scheme, rest) = split_scheme(text).unwrap_or(("http", text));
    let end = rest.find(['/', '?', '#'])?;
    Some(format!("{scheme}://{}", &rest[..end]))
}

/// Returns a text as written, with the variables that are known.
fn shown(text: &OpenText, vars: &Vars) -> String {
    let pieces = text.template.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Value(value) => {
            let known = match &value.kind {
                ExprKind::Variable { name, .. } if !vars.secrets.contains(name) => {
                    vars.variables.get(name).cloned()
                }
                _ => None,
            };
            known.unwrap_or_else(|| format!("${{{}}}", print::expression(value)))
        }
    });
    pieces.collect()
}

fn command(exec: &Exec<OpenText>, vars: &Vars) -> String {
    let shown = |text: &OpenText| shown(text, vars);
    let env = exec.env.iter().map(|(name, value)| format!("{name}={:?} ", shown(value)));
    let env: String = env.collect();
    let command = match &exec.command {
        Command::Line(line) => format!("sh -c {:?}", shown(line)),
        Command::Words(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("{:?}", shown(word))).collect();
            words.join(" ")
        }
    };
    let folder = exec.workdir.as_ref().map(|folder| format!(" in {:?}", shown(folder)));
    format!("{env}{command}{}", folder.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use source::Text;

    use super::{ExternalEffects, Vars};
    use crate::Files;

    fn effects(trigger: &str, vars: &Vars) -> ExternalEffects {
        let text =
            format!("type: Test\nspec:\n  name: a\n  trigger: {trigger}\n  trace: ['no span[]']\n");
        let (plans, diagnostics) = crate::plans(&Text::new("a.yaml", text));
        assert!(!plans.is_empty(), "{diagnostics:?}");
        plans[0].plan.external_effects(vars, &Files::default())
    }

    #[test]
    fn the_origin_is_known_only_if_nothing_can_change_it() {
        let mut vars = Vars::default();
        vars.variables.insert("HOST".to_owned(), "127.0.0.1".to_owned());
        vars.variables.insert("AT".to_owned(), "@example.com/".to_owned());
        vars.environment.insert("PORT".to_owned(), "80".to_owned());
        for (url, origin) in [
            ("http://localhost", Some("http://localhost")),
            ("localhost:80/a", Some("http://localhost:80")),
            ("http://localhost?a=${uuid()}", Some("http://localhost")),
            ("http://${var:HOST}:${env:PORT}/${var:MISSING}", Some("http://127.0.0.1:80")),
            ("http://localhost${var:AT}", Some("http://localhost@example.com")),
            ("http://localhost${var:MISSING}", None),
            ("http://localhost${uuid()}", None),
            ("http://localhost${env:PORT | length}", None),
            ("${var:MISSING}", None),
        ] {
            let found = effects(&format!("{{type: http, httpRequest: {{url: '{url}'}}}}"), &vars);
            let found: Vec<_> = found.destinations.iter().map(|it| it.origin.as_deref()).collect();
            assert_eq!(found, [origin], "{url}");
        }
    }

    #[test]
    fn every_place_of_a_request_is_searched_for_variables() {
        let vars = Vars::default();
        for request in [
            "httpRequest: {url: 'http://a/${env:X}'}",
            "httpRequest: {url: 'http://a', headers: [{key: k, value: 'a ${env:X}'}]}",
            "httpRequest: {url: 'http://a', headers: [{key: 'k${env:X}', value: a}]}",
            "httpRequest: {url: 'http://a', body: '${env:X | regex \".*\"}'}",
            "httpRequest: {url: 'http://a', body: '${\"a ${env:X}\"}'}",
            "httpRequest: {url: 'http://a', auth: {type: basic, basic: {username: a, password: '${env:X}'}}}",
            "httpRequest: {url: 'http://a', auth: {type: apiKey, apiKey: {key: a, value: '${env:X}', in: query}}}",
            "tls: {serverName: '${env:X}'}, httpRequest: {url: 'http://a'}",
        ] {
            let found = effects(&format!("{{type: http, {request}}}"), &vars);
            assert_eq!(found.environment.iter().collect::<Vec<_>>(), ["X"], "{request}");
        }
        let trigger = "{type: graphql, graphql: {url: 'http://a', body: {query: '{a}', variables: {a: ['${env:X}']}}}}";
        assert_eq!(effects(trigger, &vars).environment.len(), 1);
    }

    #[test]
    fn a_command_is_shown_with_what_is_known() {
        let mut vars = Vars::default();
        vars.variables.insert("A".to_owned(), "known".to_owned());
        vars.variables.insert("S".to_owned(), "secret".to_owned());
        vars.secrets.insert("S".to_owned());
        let trigger = "{type: exec, exec: {command: [run, '${var:A} b', '${var:S}', '${env:X}'], env: {N: '${var:A}'}, workdir: ./c}}";
        let found = effects(trigger, &vars);
        let expected = "N=\"known\" \"run\" \"known b\" \"${var:S}\" \"${env:X}\" in \"./c\"";
        assert_eq!(found.command.as_deref(), Some(expected));
    }
}
