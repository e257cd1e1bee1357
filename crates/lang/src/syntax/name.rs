//! The words of the language and what they stand for: properties, filters, functions, summaries, relations.
//!
//! Each table is read in both directions, by the parser and by the printer, so that a word is written down once.

use std::ops::Range;

use source::did_you_mean;

use super::{
    ast::{
        Comparator, Filter, Function, Inner, Intrinsic, Property, Relation, ResponsePart, Spelling,
        Summary,
    },
    mistake::Mistake,
};

/// How many spans the selector of a spec matched.
pub(crate) const COUNT: &str = "tracetest.selected_spans.count";

/// Tracetest has no such property, so an attribute of this name comes first.
const TRACETEST_KIND: &str = "tracetest.span.kind";

/// Names under these are ours: one that is not known is a mistake, not an absent attribute.
const RESERVED: &[&str] = &["tracetest.span.", "tracetest.response.", "tracetest.selected_spans."];

/// What an expression calls by a bare word.
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

/// What Tracetest calls by the name of an attribute.
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

/// Behind `response.`.
pub(crate) const RESPONSE: &[(&str, ResponsePart)] = &[
    ("status", ResponsePart::Status),
    ("body", ResponsePart::Body),
    ("headers", ResponsePart::Headers),
    ("duration", ResponsePart::Duration),
];

/// Makes a property of the name behind its scope.
type PropertyFn = fn(String) -> Property;

/// What may stand in front of a point, besides `response`.
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

/// Comparators, and whether each is negated. Any word among them may have `not` or `not-` in front; of several
/// spellings the printer takes the first.
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

/// With the number of arguments.
pub(crate) const FILTERS: &[(&str, Filter, usize)] = &[
    ("json_path", Filter::JsonPath, 1),
    ("regex", Filter::Regex, 1),
    ("regex_group", Filter::RegexGroup, 1),
    ("get_index", Filter::GetIndex, 1),
    ("length", Filter::Length, 0),
    ("type", Filter::Type, 0),
    ("keys", Filter::Keys, 0),
];

/// With the least and the greatest number of arguments.
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

/// Percentiles are not among them: their word holds a number.
pub(crate) const SUMMARIES: &[(&str, Summary)] = &[
    ("count", Summary::Count),
    ("sum", Summary::Sum),
    ("min", Summary::Min),
    ("max", Summary::Max),
    ("avg", Summary::Average),
    ("value", Summary::Value),
    ("values", Summary::Values),
];

/// Words that no value begins with.
const KEYWORDS: &[&str] = &[
    "and", "or", "not", "has", "of", "by", "every", "some", "no", "self", "span", "between",
    "exists",
];

/// Whether a word joins or compares, and so begins no value.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word) || found(COMPARATORS, word).is_some()
}

/// Whether a word means something where a name may stand, so that the name needs quotes.
pub(crate) fn is_reserved(word: &str) -> bool {
    let others = ["true", "false", "null", "event", "link"];
    is_keyword(word) || others.contains(&word) || word.strip_prefix("not-").is_some_and(is_keyword)
}

/// What a bare name means in `span[…]`; `range` is where it stands.
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

/// What `attr:NAME` means in an expression; `range` is where the name stands.
pub(crate) fn in_expression(name: &str, range: Range<usize>) -> Result<Property, Mistake> {
    match name {
        "name" => Ok(attribute(name, intrinsic(name))),
        COUNT => Ok(Property::Count),
        _ => Ok(ours(name, range)?.unwrap_or_else(|| attribute(name, None))),
    }
}

/// What a bare name means in `event[…]` or `link[…]`.
pub(crate) fn of_inner(inner: Inner, name: &str) -> Property {
    match inner {
        Inner::Event => Property::Event(name.to_owned()),
        Inner::Link => Property::Link(name.to_owned()),
    }
}

/// The property that a bare word is in an expression.
pub(crate) fn intrinsic(word: &str) -> Option<Property> {
    found(INTRINSICS, word).map(|found| Property::Intrinsic(found, Spelling::Word))
}

/// The property that a name with a scope in front is in an expression: `resource.NAME`.
pub(crate) fn scoped(name: &str) -> Option<Property> {
    let (scope, name) = name.split_once('.')?;
    found(SCOPES, scope).map(|property| property(name.to_owned()))
}

/// What an intrinsic is called in this spelling.
pub(crate) fn intrinsic_name(intrinsic: Intrinsic, spelling: Spelling) -> &'static str {
    let table = match spelling {
        Spelling::Word => INTRINSICS,
        Spelling::Name => TRACETEST,
    };
    word_of(table, &intrinsic).unwrap_or_default()
}

/// The name of an attribute that means this part of the trigger's answer.
pub(crate) fn response_name(part: &ResponsePart) -> Option<&'static str> {
    word_of(TRACETEST_RESPONSE, part)
}

/// What a word stands for in a table.
pub(crate) fn found<T: Clone>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == word).map(|(_, what)| what.clone())
}

/// The word for something in a table.
pub(crate) fn word_of<T: PartialEq>(table: &[(&'static str, T)], what: &T) -> Option<&'static str> {
    table.iter().find(|(_, known)| known == what).map(|(word, _)| *word)
}

/// The properties that carry a name of ours; nothing for an ordinary attribute.
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
