//! The evidence for a statement that did not pass, as values for programs.
//!
//! The prose of a statement (`reason`, and `found` of each span) stays what people read. What the judge does not know is
//! absent here. Deliberately absent: a way to compute it, which is in `lang`, and its limits, which the judge applies.

use serde::{Deserialize, Serialize};

use crate::SpanId;

/// The evidence for a statement that did not pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatementEvidence {
    /// The comparisons that decide the statement, the first of them first; at most as many as the judge stores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<ComparisonEvidence>,
    /// The groups, if the statement compares an aggregate with `by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<GroupsEvidence>,
    /// The nearest misses of a selector that matches no span.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<NearMiss>,
    /// The spans that decide the statement or leave it open, at most as many as the judge stores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deciding: Vec<SpanId>,
    /// The number of deciding spans that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_deciding: u64,
}

/// A comparison with both of its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComparisonEvidence {
    /// The span that it was evaluated on; none if it is about several spans, or about the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_id: Option<SpanId>,
    /// The expression whose value was found, as written; a long one is cut and ends with `…`.
    pub subject: String,
    /// The operator in the language of tests, with each `not` applied: `<=`, `not-contains`, `between`, `exists`.
    pub operator: String,
    /// The required value; none if the operator needs none, or if it could not be computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<EvidenceValue>,
    /// The value of the subject, of groups the worst one; none if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<EvidenceValue>,
}

/// A value with its type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EvidenceValue {
    /// There is none: the span lacks the property, or a path or a pattern has no match.
    Absent,
    /// The value null.
    Null,
    /// True or false.
    Boolean(bool),
    /// A number with all its digits, as text: readers of JSON may round numbers.
    Number(String),
    /// A duration in nanoseconds.
    DurationNs(i64),
    /// A text; a long one is cut and ends with `…`.
    Text(String),
    /// A list or an object of a document, as JSON text; a long one is cut and ends with `…`.
    Json(String),
    /// A list.
    List(EvidenceList),
    /// Several values, of which one is enough, such as those of all events of a span.
    AnyOf(EvidenceList),
    /// All values between two bounds, both included: the required range, or all that is known of a value.
    Between(Box<EvidenceRange>),
}

/// The first items of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvidenceList {
    /// The first items.
    pub items: Vec<EvidenceValue>,
    /// The number of items that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// Two bounds, both included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvidenceRange {
    /// The lower bound.
    pub low: EvidenceValue,
    /// The upper bound.
    pub high: EvidenceValue,
}

/// The groups of an aggregate, the worst first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupsEvidence {
    /// The worst groups, at most as many as the judge stores.
    pub worst: Vec<GroupEvidence>,
    /// The number of groups that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// The number of groups in which the comparison does not hold, listed or not.
    pub broken: u64,
}

/// A group of spans with the same key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupEvidence {
    /// One part for each expression after `by`.
    pub key: Vec<GroupKeyPart>,
    /// The value of the aggregate in this group.
    pub value: EvidenceValue,
    /// The number of its spans.
    pub spans: u64,
    /// Whether the comparison holds in this group.
    pub holds: bool,
}

/// A part of the key of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupKeyPart {
    /// The expression after `by`, in the language of tests.
    pub name: String,
    /// Its value on the spans of the group.
    pub value: EvidenceValue,
}

/// A span that all but one condition of a selector match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NearMiss {
    /// The span.
    pub span_id: SpanId,
    /// Its name.
    pub name: String,
    /// The selector that matches no span.
    pub selector: String,
    /// The condition that failed, in the language of tests, or the position that the span lacks, in words.
    pub condition: String,
    /// The value that the span has instead; none if the condition is not about one value, or if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<EvidenceValue>,
}

/// The approximate size of a part without its texts, serialized.
const PART_BYTES: usize = 64;

impl StatementEvidence {
    /// Returns the approximate serialized size in bytes, without the deciding spans.
    pub fn weight(&self) -> usize {
        let value = |value: &Option<EvidenceValue>| value.as_ref().map_or(0, EvidenceValue::weight);
        let comparisons = self.comparisons.iter().map(|it| {
            PART_BYTES
                + it.subject.len()
                + it.operator.len()
                + value(&it.expected)
                + value(&it.found)
        });
        let groups = self.groups.iter().flat_map(|groups| &groups.worst).map(|it| {
            let key = it.key.iter().map(|part| PART_BYTES + part.name.len() + part.value.weight());
            PART_BYTES + it.value.weight() + key.sum::<usize>()
        });
        let nearest = self.nearest.iter().map(|it| {
            let texts = it.name.len() + it.selector.len() + it.condition.len();
            PART_BYTES + texts + value(&it.found)
        });
        PART_BYTES + comparisons.chain(groups).chain(nearest).sum::<usize>()
    }

    /// Whether it states nothing.
    pub fn is_empty(&self) -> bool {
        let Self { comparisons, groups, nearest, deciding, more_deciding } = self;
        comparisons.is_empty()
            && groups.is_none()
            && nearest.is_empty()
            && deciding.is_empty()
            && *more_deciding == 0
    }
}

impl EvidenceValue {
    fn weight(&self) -> usize {
        let items = |list: &EvidenceList| list.items.iter().map(Self::weight).sum::<usize>();
        PART_BYTES / 2
            + match self {
                Self::Absent | Self::Null | Self::Boolean(_) | Self::DurationNs(_) => 0,
                Self::Number(text) | Self::Text(text) | Self::Json(text) => text.len(),
                Self::List(list) | Self::AnyOf(list) => items(list),
                Self::Between(range) => range.low.weight() + range.high.weight(),
            }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
