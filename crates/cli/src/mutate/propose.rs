//! Proposes a claim that would kill a survivor. It proposes only a claim that it has tried: the claim holds for the recorded
//! trace, and fails for the mutant.

use std::time::Duration;

use lang::{ResolvedPlan, Seed, Vars};
use model::{
    Timestamp, Trace, Verdict,
    trace::{Span, StatusCode, ValueRef},
};
use shape::{Mutant, Operator};
use source::Text;

use super::judge;

/// The factor by which a span may be slower than observed, and the lower bound of that limit.
const SLOWER: u32 = 3;
const DURATION_MIN: Duration = Duration::from_millis(500);

/// Returns a claim that kills the mutant, if there is a simple one.
pub(super) fn propose(mutant: &Mutant, trace: &Trace, mutated: &Trace) -> Option<String> {
    let span = trace.span(mutant.span);
    let claim = match &mutant.operator {
        Operator::Drop | Operator::Duplicate => count(&selector(span, ""), trace)?,
        Operator::Reparent(_) => {
            let parent = trace.find(span.parent()?)?;
            count(&format!("{} > {}", selector(parent, ""), selector(span, "")), trace)?
        }
        Operator::Status(StatusCode::Error) => {
            format!("no {}", selector(span, " status=\"error\""))
        }
        Operator::Status(_) => count(&selector(span, " status=\"error\""), trace)?,
        Operator::Attribute(key) if is_word(key) => {
            count(&selector(span, &format!(" {key} exists")), trace)?
        }
        Operator::Attribute(_) => return None,
        Operator::Slow => {
            let selector = selector(span, "");
            let alike = lang::select(&selector, trace).ok()?;
            let slowest = alike.iter().map(|it| trace.span(*it).duration()).max()?;
            let bound = (slowest * SLOWER).max(DURATION_MIN).as_millis();
            format!("every {selector} has duration < {bound}ms")
        }
    };
    let resolved = resolved(&claim)?;
    let is_right = judge(&resolved, trace) == Verdict::Passed;
    (is_right && judge(&resolved, mutated) == Verdict::Failed).then_some(claim)
}

fn count(selector: &str, trace: &Trace) -> Option<String> {
    let count = lang::select(selector, trace).ok()?.len();
    Some(format!("count({selector}) = {count}"))
}

fn selector(span: Span<'_>, more: &str) -> String {
    let service = match span.resource().attributes().get("service.name") {
        Some(ValueRef::Str(name)) => format!("service={} ", quoted(name)),
        _ => String::new(),
    };
    format!("span[{service}name={}{more}]", quoted(span.name()))
}

/// Quotes a string for a selector.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn is_word(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

/// Returns a resolved test that contains only this claim.
fn resolved(claim: &str) -> Option<ResolvedPlan> {
    // YAML accepts JSON strings.
    let claim = serde_json::Value::from(claim);
    let document = format!(
        "type: Test\nspec:\n  name: proposed\n  trigger: {{type: http, httpRequest: {{url: \"http://localhost\"}}}}\n  trace: [{claim}]\n"
    );
    let planned = lang::plans(&Text::new("proposed", document)).0.pop()?;
    let seed = Seed { now: Timestamp::default(), random: [0; 32] };
    lang::resolve(&planned.plan, &Vars::default(), &seed).ok()
}
