//! The keywords of the language and their meaning: properties, filters, functions, aggregates, relations.
//!
//! The parser and the printer use the same tables, so that each keyword is written once.

use std::ops::Range;

use source::did_you_mean;

use super::{
    ast::{
        Comparator, Filter, Function, Inner, Intrinsic, Property, Relation, ResponsePart, Spelling,
        Summary,
    },
    mistake::Mistake,
};

/// The number of spans that the selector of a spec selected.
pub(crate) const COUNT: &str = "tracetest.selected_spans.count";

/// Tracetest has no such property, so an attribute of this name takes precedence.
const TRACETEST_KIND: &str = "tracetest.span.kind";

/// Reserved prefixes: an unknown name under them is an error, not a missing attribute.
const RESERVED: &[&str] = &["tracetest.span.", "tracetest.response.", "tracetest.selected_spans."];

/// The intrinsics that an expression names by a keyword.
pub(crate) const INTRINSICS: &[(&str, Intrinsic)] = &[
    ("name", Intrinsic::Name),
    ("kind", Intrinsic::Kind),
    ("status", Intrinsic::Status),
    ("status_message", Intrinsic::StatusMessage),
    ("duration", Intrinsic::Duration),
    ("start", Intrinsic::Start),
    ("end", Intrinsic::End),
    ("service", Intrinsic::Service),
    ("type", Intrinsic::Type),
    ("id", Intrinsic::Id),
    ("parent_id", Intrinsic::ParentId),
    ("depth", Intrinsic::Depth),
    ("children", Intrinsic::Children),
    ("self_time", Intrinsic::SelfTime),
    ("critical_time", Intrinsic::CriticalTime),
    ("attributes", Intrinsic::Attributes),
];

/// The intrinsics that Tracetest names like an attribute.
const TRACETEST: &[(&str, Intrinsic)] = &[
    ("tracetest.span.name", Intrinsic::Name),
    ("tracetest.span.type", Intrinsic::Type),
    ("tracetest.span.duration", Intrinsic::Duration),
    ("tracetest.span.start_time", Intrinsic::Start),
    ("tracetest.span.end_time", Intrinsic::End),
    ("tracetest.span.status_code", Intrinsic::StatusCode),
    ("tracetest.span.status_description", Intrinsic::StatusMessage),
    ("tracetest.span.parent_id", Intrinsic::ParentId),
    ("span.events", Intrinsic::Events),
];

const TRACETEST_RESPONSE: &[(&str, ResponsePart)] = &[
    ("tracetest.response.status", ResponsePart::Status),
    ("tracetest.response.body", ResponsePart::Body),
    ("tracetest.response.headers", ResponsePart::Headers),
];

/// The parts after `response.`.
pub(crate) const RESPONSE: &[(&str, ResponsePart)] = &[
    ("status", ResponsePart::Status),
    ("body", ResponsePart::Body),
    ("headers", ResponsePart::Headers),
    ("duration", ResponsePart::Duration),
];

/// Builds a property from the name after its scope.
type PropertyFn = fn(String) -> Property;

/// The scopes before a dot, except `response`.
pub(crate) const SCOPES: &[(&str, PropertyFn)] = &[
    ("resource", Property::Resource),
    ("scope", Property::Scope),
    ("event", Property::Event),
    ("link", Property::Link),
];

pub(crate) const RELATIONS: &[(&str, Relation)] = &[
    ("before", Relation::Before),
    ("after", Relation::After),
    ("inside", Relation::Inside),
    ("overlaps", Relation::Overlaps),
    ("calls", Relation::Calls),
];

/// The comparators, and whether each is negated. Each comparator that is a word accepts a `not` or `not-` prefix. If there are
/// several spellings, the printer uses the first.
pub(crate) const COMPARATORS: &[(&str, (Comparator, bool))] = &[
    ("=", (Comparator::Equal, false)),
    ("!=", (Comparator::Equal, true)),
    ("<", (Comparator::Less, false)),
    ("<=", (Comparator::AtMost, false)),
    (">", (Comparator::Greater, false)),
    (">=", (Comparator::AtLeast, false)),
    ("=~", (Comparator::Matches, false)),
    ("!~", (Comparator::Matches, true)),
    ("contains", (Comparator::Contains, false)),
    ("starts-with", (Comparator::StartsWith, false)),
    ("ends-with", (Comparator::EndsWith, false)),
    ("matches", (Comparator::Matches, false)),
    ("in", (Comparator::In, false)),
];

/// The filters, with their number of arguments.
pub(crate) const FILTERS: &[(&str, Filter, usize)] = &[
    ("json_path", Filter::JsonPath, 1),
    ("regex", Filter::Regex, 1),
    ("regex_group", Filter::RegexGroup, 1),
    ("get_index", Filter::GetIndex, 1),
    ("length", Filter::Length, 0),
    ("type", Filter::Type, 0),
    ("keys", Filter::Keys, 0),
];

/// The functions, with their minimum and maximum number of arguments.
pub(crate) const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("uuid", Function::Uuid, 0, 0),
    ("firstName", Function::FirstName, 0, 0),
    ("lastName", Function::LastName, 0, 0),
    ("fullName", Function::FullName, 0, 0),
    ("email", Function::Email, 0, 0),
    ("phone", Function::Phone, 0, 0),
    ("creditCard", Function::CreditCard, 0, 0),
    ("creditCardCvv", Function::CreditCardCvv, 0, 0),
    ("creditCardExpDate", Function::CreditCardExpDate, 0, 0),
    ("date", Function::Date, 0, 1),
    ("dateTime", Function::DateTime, 0, 1),
    ("randomInt", Function::RandomInt, 2, 2),
];

/// The aggregates. Percentiles are not in the table: their keyword contains a number.
pub(crate) const SUMMARIES: &[(&str, Summary)] = &[
    ("count", Summary::Count),
    ("sum", Summary::Sum),
    ("min", Summary::Min),
    ("max", Summary::Max),
    ("avg", Summary::Average),
    ("value", Summary::Value),
    ("values", Summary::Values),
];

/// Words that start no value.
const KEYWORDS: &[&str] = &[
    "and", "or", "not", "has", "of", "by", "every", "some", "no", "self", "span", "between",
    "exists",
];

/// Whether a word is a connective or a comparator, so that it starts no value.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word) || found(COMPARATORS, word).is_some()
}

/// Whether a word is reserved where a name is expected, so that the name needs quotes.
pub(crate) fn is_reserved(word: &str) -> bool {
    let others = ["true", "false", "null", "event", "link"];
    is_keyword(word) || others.contains(&word) || word.strip_prefix("not-").is_some_and(is_keyword)
}

/// Resolves a bare name in `span[…]`; `range` is its range.
pub(crate) fn in_selector(name: &str, range: Range<usize>) -> Result<Property, Mistake> {
    match name {
        "name" => Ok(Property::Intrinsic(Intrinsic::Name, Spelling::Word)),
        "kind" => Ok(Property::Intrinsic(Intrinsic::Kind, Spelling::Word)),
        COUNT => {
            let mistake = Mistake::error(range, "a selector cannot ask for its own count");
            Err(mistake.help(format!("assert it: `attr:{COUNT} = 1`")))
        }
        _ => match ours(name, range)? {
            Some(property) => Ok(property),
            None => Ok(attribute(name, intrinsic(name).or_else(|| scoped(name)))),
        },
    }
}

/// Resolves `attr:NAME` in an expression; `range` is the range of the name.
pub(crate) fn in_expression(name: &str, range: Range<usize>) -> Result<Property, Mistake> {
    match name {
        "name" => Ok(attribute(name, intrinsic(name))),
        COUNT => Ok(Property::Count),
        _ => Ok(ours(name, range)?.unwrap_or_else(|| attribute(name, None))),
    }
}

/// Resolves a bare name in `event[…]` or `link[…]`.
pub(crate) fn of_inner(inner: Inner, name: &str) -> Property {
    match inner {
        Inner::Event => Property::Event(name.to_owned()),
        Inner::Link => Property::Link(name.to_owned()),
    }
}

/// Returns the property for a bare word in an expression.
pub(crate) fn intrinsic(word: &str) -> Option<Property> {
    found(INTRINSICS, word).map(|found| Property::Intrinsic(found, Spelling::Word))
}

/// Returns the property for a name with a scope in an expression: `resource.NAME`.
pub(crate) fn scoped(name: &str) -> Option<Property> {
    let (scope, name) = name.split_once('.')?;
    found(SCOPES, scope).map(|property| property(name.to_owned()))
}

/// Returns the name of an intrinsic in this spelling.
pub(crate) fn intrinsic_name(intrinsic: Intrinsic, spelling: Spelling) -> &'static str {
    let table = match spelling {
        Spelling::Word => INTRINSICS,
        Spelling::Name => TRACETEST,
    };
    word_of(table, &intrinsic).unwrap_or_default()
}

/// Returns the attribute name for this part of the trigger's response.
pub(crate) fn response_name(part: &ResponsePart) -> Option<&'static str> {
    word_of(TRACETEST_RESPONSE, part)
}

/// Looks up the value for a word in a table.
pub(crate) fn found<T: Clone>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == word).map(|(_, what)| what.clone())
}

/// Looks up the word for a value in a table.
pub(crate) fn word_of<T: PartialEq>(table: &[(&'static str, T)], what: &T) -> Option<&'static str> {
    table.iter().find(|(_, known)| known == what).map(|(word, _)| *word)
}

/// Resolves a reserved name; `None` for an ordinary attribute.
fn ours(name: &str, range: Range<usize>) -> Result<Option<Property>, Mistake> {
    if name == TRACETEST_KIND {
        return Ok(Some(attribute(name, intrinsic("kind"))));
    }
    if let Some(intrinsic) = found(TRACETEST, name) {
        return Ok(Some(Property::Intrinsic(intrinsic, Spelling::Name)));
    }
    if let Some(part) = found(TRACETEST_RESPONSE, name) {
        return Ok(Some(Property::Response(part)));
    }
    if !RESERVED.iter().any(|reserved| name.starts_with(reserved)) {
        return Ok(None);
    }
    let known = TRACETEST
        .iter()
        .map(|(known, _)| *known)
        .chain(TRACETEST_RESPONSE.iter().map(|(known, _)| *known))
        .chain([COUNT, TRACETEST_KIND]);
    let mistake = Mistake::error(range, format!("unknown property `{name}`"));
    Err(mistake.suggest(did_you_mean(name, known)))
}

fn attribute(name: &str, otherwise: Option<Property>) -> Property {
    Property::Attribute { name: name.to_owned(), otherwise: otherwise.map(Box::new) }
}

#[cfg(test)]
mod tests {
    use super::{in_expression, in_selector};

    #[test]
    fn names_stand_for_properties() {
        for (name, selector, expression) in [
            ("name", "Intrinsic(Name, Word)", "name else Intrinsic(Name, Word)"),
            ("kind", "Intrinsic(Kind, Word)", "kind"),
            ("http.method", "http.method", "http.method"),
            ("status", "status else Intrinsic(Status, Word)", "status"),
            ("self_time", "self_time else Intrinsic(SelfTime, Word)", "self_time"),
            ("resource.a.b", "resource.a.b else Resource(\"a.b\")", "resource.a.b"),
            ("event.name", "event.name else Event(\"name\")", "event.name"),
            ("span.events", "Intrinsic(Events, Name)", "Intrinsic(Events, Name)"),
            ("tracetest.span.name", "Intrinsic(Name, Name)", "Intrinsic(Name, Name)"),
            (
                "tracetest.span.status_code",
                "Intrinsic(StatusCode, Name)",
                "Intrinsic(StatusCode, Name)",
            ),
            (
                "tracetest.span.kind",
                "tracetest.span.kind else Intrinsic(Kind, Word)",
                "tracetest.span.kind else Intrinsic(Kind, Word)",
            ),
            ("tracetest.response.body", "Response(Body)", "Response(Body)"),
            ("tracetest.selected_spans.count", "refused", "Count"),
            ("tracetest.span.durations", "refused", "refused"),
            ("tracetest.other", "tracetest.other", "tracetest.other"),
        ] {
            let shown = |property| match property {
                Err(_) => "refused".to_owned(),
                Ok(super::Property::Attribute { name, otherwise: None }) => name,
                Ok(super::Property::Attribute { name, otherwise: Some(otherwise) }) => {
                    format!("{name} else {otherwise:?}")
                }
                Ok(other) => format!("{other:?}"),
            };
            assert_eq!(shown(in_selector(name, 0..1)), selector, "{name} in a selector");
            assert_eq!(shown(in_expression(name, 0..1)), expression, "{name} in an expression");
        }
    }
}
