//! Renders trees as the text of a test, in the two dialects of the grammar.

use super::{
    document::{
        Aggregate, Arithmetic, Combinator, Comparison, Operand, Operator, Part, Position, Property,
        Pseudo, Quantifier, Question, RefereeStatement, Relation, Scope, Selection, SelectorStep,
        SelectorSubject, Summary, ValueFilter,
    },
    value::RefereeValue,
};

/// The context of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Selector,
    Expression,
}
use Dialect::{Expression, Selector};

/// Renders a test with these questions.
pub(super) fn document(questions: &[Question]) -> String {
    let mut text = String::from(
        "type: Test\nspec:\n  id: referee\n  name: referee\n  trigger: {type: http, httpRequest: {method: GET, url: \"http://127.0.0.1:1/\"}}\n",
    );
    let mut specs = String::new();
    let mut claims = String::new();
    for question in questions {
        match question {
            Question::Claim(claim) => {
                claims.push_str(&format!("    - {}\n", scalar(&statement(claim, Expression))));
            }
            Question::Assertion(selected, asserted) => specs.push_str(&format!(
                "    - selector: {}\n      assertions:\n        - {}\n",
                scalar(&selection(selected)),
                scalar(&statement(asserted, Expression)),
            )),
        }
    }
    for (key, lines) in [("specs", specs), ("trace", claims)] {
        if !lines.is_empty() {
            text.push_str(&format!("  {key}:\n{lines}"));
        }
    }
    text
}

fn scalar(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn statement(it: &RefereeStatement, dialect: Dialect) -> String {
    let inner = |it: &RefereeStatement| format!("({})", statement(it, dialect));
    match it {
        RefereeStatement::And(left, right) => format!("{} and {}", inner(left), inner(right)),
        RefereeStatement::Or(left, right) => format!("{} or {}", inner(left), inner(right)),
        RefereeStatement::Not(negated) => format!("not {}", inner(negated)),
        RefereeStatement::Compare(compared) => comparison(compared, dialect, ""),
        RefereeStatement::Between(left, low, high) => between(left, [low, high], dialect, ""),
        RefereeStatement::Exists(left) => format!("{} exists", on_left(left, dialect)),
        RefereeStatement::Without(negated) => match &**negated {
            RefereeStatement::Compare(compared) => comparison(compared, dialect, "not "),
            RefereeStatement::Between(left, low, high) => {
                between(left, [low, high], dialect, "not ")
            }
            RefereeStatement::Exists(left) => format!("{} not exists", on_left(left, dialect)),
            other => format!("not {}", inner(other)),
        },
        RefereeStatement::Event(condition) => format!("event[{}]", inside(condition.as_deref())),
        RefereeStatement::Link(condition) => format!("link[{}]", inside(condition.as_deref())),
        // The operand of `has` reaches to the end, so it needs no parentheses.
        RefereeStatement::Has(of, predicate) => {
            format!("{} has {}", subject(of), statement(predicate, dialect))
        }
        RefereeStatement::Relation(left, relation, right) => {
            let word = match relation {
                Relation::Before => "before",
                Relation::After => "after",
                Relation::Inside => "inside",
                Relation::Overlaps => "overlaps",
                Relation::Calls => "calls",
            };
            format!("{} {word} {}", subject(left), subject(right))
        }
        RefereeStatement::Any(selected) => format!("some {}", grouped(selected)),
        RefereeStatement::None(selected) => format!("no {}", grouped(selected)),
    }
}

fn inside(condition: Option<&RefereeStatement>) -> String {
    condition.map_or_else(String::new, |it| statement(it, Selector))
}

fn comparison(it: &Comparison, dialect: Dialect, not: &str) -> String {
    let operator = match it.operator {
        Operator::Equal => "=",
        Operator::Unequal => "!=",
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
        Operator::Contains => "contains",
        Operator::StartsWith => "starts-with",
        Operator::EndsWith => "ends-with",
        Operator::Matches => "matches",
        Operator::In => "in",
    };
    format!("{} {not}{operator} {}", on_left(&it.left, dialect), operand(&it.right, dialect))
}

fn between(left: &Operand, [low, high]: [&RefereeValue; 2], dialect: Dialect, not: &str) -> String {
    let (low, high) = (literal(low, dialect), literal(high, dialect));
    format!("{} {not}between {low} and {high}", on_left(left, dialect))
}

/// Renders the left side of a comparison: in a selector an attribute is a bare name there.
fn on_left(it: &Operand, dialect: Dialect) -> String {
    match (it, dialect) {
        (Operand::Attribute(name), Selector) => name.clone(),
        _ => operand(it, dialect),
    }
}

fn operand(it: &Operand, dialect: Dialect) -> String {
    match it {
        Operand::Literal(value) => literal(value, dialect),
        Operand::Attribute(name) => format!("attr:{name}"),
        Operand::Property(property) => word_of(*property).to_owned(),
        Operand::Scoped(scope, name) => {
            let scope = match scope {
                Scope::Resource => "resource",
                Scope::Library => "scope",
                Scope::Event => "event",
                Scope::Link => "link",
            };
            format!("{scope}.{name}")
        }
        Operand::Filter(of, filter) => {
            let filter = match filter {
                ValueFilter::JsonPath(path) => format!("json_path {}", quoted(path, dialect)),
                ValueFilter::Regex(pattern) => format!("regex {}", quoted(pattern, dialect)),
                ValueFilter::GetIndex(index) => format!("get_index {index}"),
                ValueFilter::Length => "length".to_owned(),
            };
            format!("{} | {filter}", operand(of, dialect))
        }
        Operand::Arithmetic(left, operator, right) => {
            let operator = match operator {
                Arithmetic::Plus => "+",
                Arithmetic::Minus => "-",
                Arithmetic::Times => "*",
                Arithmetic::Divided => "/",
            };
            format!("({} {operator} {})", operand(left, dialect), operand(right, dialect))
        }
        Operand::Aggregate(aggregated) => aggregate(aggregated),
        Operand::Gap(from, to) => format!("gap({}, {})", part(from), part(to)),
        Operand::SelectedCount => "attr:tracetest.selected_spans.count".to_owned(),
        Operand::ResponseStatus => "response.status".to_owned(),
    }
}

fn word_of(property: Property) -> &'static str {
    match property {
        Property::Name => "name",
        Property::Kind => "kind",
        Property::Status => "status",
        Property::Duration => "duration",
        Property::Service => "service",
        Property::Depth => "depth",
        Property::Children => "children",
        Property::SelfTime => "self_time",
    }
}

fn aggregate(it: &Aggregate) -> String {
    let name = match it.summary {
        Summary::Count => "count".to_owned(),
        Summary::Sum => "sum".to_owned(),
        Summary::Min => "min".to_owned(),
        Summary::Max => "max".to_owned(),
        Summary::Avg => "avg".to_owned(),
        Summary::Value => "value".to_owned(),
        Summary::Values => "values".to_owned(),
        Summary::Percentile(number) => format!("p{number}"),
    };
    let of = it
        .operand
        .as_ref()
        .map_or_else(String::new, |of| format!("{} of ", operand(of, Expression)));
    let keys: Vec<_> = it.keys.iter().map(|key| operand(key, Expression)).collect();
    let by = if keys.is_empty() { String::new() } else { format!(" by {}", keys.join(", ")) };
    format!("{name}({of}{}{by})", selection(&it.selection))
}

fn subject(it: &SelectorSubject) -> String {
    let quantifier = match it.quantifier {
        Quantifier::The => "",
        Quantifier::Every => "every ",
        Quantifier::Some => "some ",
        Quantifier::No => "no ",
    };
    format!("{quantifier}{}", grouped(&it.selection))
}

fn grouped(it: &Selection) -> String {
    if it.0.len() == 1 { selection(it) } else { format!("({})", selection(it)) }
}

/// Renders a selector.
pub(super) fn selection(it: &Selection) -> String {
    let parts: Vec<_> = it.0.iter().map(part).collect();
    parts.join(", ")
}

fn part(it: &Part) -> String {
    let mut text = if it.from_self { "self".to_owned() } else { String::new() };
    for (combinator, step_of) in &it.steps {
        if !text.is_empty() {
            text.push_str(symbol(*combinator));
        }
        text.push_str(&step(step_of));
    }
    text
}

fn symbol(combinator: Combinator) -> &'static str {
    match combinator {
        Combinator::Below => " ",
        Combinator::Child => " > ",
        Combinator::Next => " + ",
        Combinator::Later => " ~ ",
        Combinator::Parent => " < ",
        Combinator::Above => " << ",
        Combinator::Linked => " => ",
    }
}

fn step(it: &SelectorStep) -> String {
    // Juxtaposed conditions bind weaker than `or`, so each of several is in parentheses where it needs them.
    let conditions: Vec<_> = it
        .conditions
        .iter()
        .map(|one| match one {
            RefereeStatement::Compare(_) | RefereeStatement::Exists(_) => statement(one, Selector),
            _ => format!("({})", statement(one, Selector)),
        })
        .collect();
    let mut text = format!("span[{}]", conditions.join(" "));
    for pseudo in &it.pseudos {
        text.push_str(&match pseudo {
            Pseudo::Root => ":root".to_owned(),
            Pseudo::Leaf => ":leaf".to_owned(),
            Pseudo::Orphan => ":orphan".to_owned(),
            Pseudo::Has(relative) => {
                let first = relative.steps.first().map_or(" ", |(first, _)| symbol(*first));
                format!(":has({}{})", first.trim_start(), part(relative))
            }
            Pseudo::Not(excluded) => format!(":not({})", part(excluded)),
        });
    }
    match it.position {
        None => {}
        Some(Position::First) => text.push_str(":first"),
        Some(Position::Last) => text.push_str(":last"),
        Some(Position::Nth(number)) => text.push_str(&format!(":nth_child({number})")),
    }
    text
}

fn literal(it: &RefereeValue, dialect: Dialect) -> String {
    match it {
        RefereeValue::Null => "null".to_owned(),
        RefereeValue::Bool(bool) => bool.to_string(),
        RefereeValue::Int(int) => int.to_string(),
        RefereeValue::Double(double) => format!("{double:?}"),
        RefereeValue::Text(text) => quoted(text, dialect),
        RefereeValue::Duration(nanos) => duration(*nanos),
        RefereeValue::List(items) => {
            let items: Vec<_> = items.iter().map(|item| literal(item, dialect)).collect();
            format!("[{}]", items.join(", "))
        }
        RefereeValue::Map(_) => "null".to_owned(),
    }
}

fn duration(nanos: i128) -> String {
    for (unit, size) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if nanos % size == 0 {
            return format!("{}{unit}", nanos / size);
        }
    }
    format!("{nanos}ns")
}

fn quoted(text: &str, dialect: Dialect) -> String {
    match dialect {
        Selector => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        Expression if text.contains('"') => format!("'{text}'"),
        Expression => format!("\"{text}\""),
    }
}
