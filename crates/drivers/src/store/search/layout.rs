//! Which fields the indices have: where the id of a trace is, and by what the documents are sorted.

use std::{collections::BTreeMap, time::Duration};

use model::TraceId;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::{PAGE_HITS_MAX, api::KEEP_ALIVE};

/// The fields of the known writers: the id of the trace, the start, and the id of the span.
pub(super) const FAMILIES: [[&str; 3]; 3] = [
    ["traceID", "startTime", "spanID"],
    ["traceId", "startTime", "spanId"],
    ["trace_id", "@timestamp", "span_id"],
];

/// What an index is.
#[derive(Debug, Deserialize)]
pub(super) struct IndexInfo {
    #[serde(default)]
    mappings: IndexMapping,
    settings: BTreeMap<String, Json>,
}

#[derive(Debug, Default, Deserialize)]
struct IndexMapping {
    #[serde(default)]
    properties: BTreeMap<String, FieldMapping>,
}

#[derive(Debug, Deserialize)]
struct FieldMapping {
    r#type: Option<String>,
    #[serde(default)]
    fields: BTreeMap<String, FieldMapping>,
}

/// The fields by which the documents of some indices are found and sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldGroup {
    trace: &'static str,
    /// Each with its type: a time of another type has other sort values.
    sort: Vec<(String, String)>,
}

/// What a query has to read, and what it cannot read.
#[derive(Debug, Default)]
pub(super) struct IndexLayout {
    pub(super) groups: BTreeMap<FieldGroup, Vec<String>>,
    /// Why the indices may have spans that no query shows.
    pub(super) gaps: Vec<String>,
    /// The longest interval in which one of them is refreshed, of those that set one.
    pub(super) refresh: Option<Duration>,
    /// Whether one of them sets none.
    pub(super) has_default_refresh: bool,
}

/// When the documents of an index become visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refresh {
    Every(Duration),
    /// Only when a user requests it.
    Never,
}

impl IndexLayout {
    pub(super) fn of(indices: &BTreeMap<String, IndexInfo>) -> Self {
        let mut layout = Self::default();
        for (name, index) in indices {
            if index.setting("index.verified_before_close") == Some("true") {
                layout.gaps.push(format!("the index `{name}` is closed"));
                continue;
            }
            let groups = index.groups();
            // Its documents may be spans, but none of them is found.
            if groups.is_empty() {
                layout.gaps.push(format!(
                    "the index `{name}` has none of the fields `traceId`, `traceID` and `trace_id`"
                ));
            }
            layout.add_refresh(name, index);
            for group in groups {
                layout.groups.entry(group).or_default().push(name.clone());
            }
        }
        layout
    }

    fn add_refresh(&mut self, name: &str, index: &IndexInfo) {
        let Some(text) = index.setting("index.refresh_interval") else {
            self.has_default_refresh = true;
            return;
        };
        match interval(text) {
            Some(Refresh::Every(every)) => self.refresh = self.refresh.max(Some(every)),
            Some(Refresh::Never) => self.gaps.push(format!(
                "the index `{name}` shows new documents only after a refresh by hand: its `refresh_interval` is {text}"
            )),
            None => self.gaps.push(format!(
                "the `refresh_interval` of the index `{name}` is `{text}`, which is no time"
            )),
        }
    }
}

impl IndexInfo {
    fn setting(&self, key: &str) -> Option<&str> {
        self.settings.get(key)?.as_str()
    }

    fn groups(&self) -> Vec<FieldGroup> {
        let fields = &self.mappings.properties;
        let has_trace = |[trace, ..]: &[&str; 3]| fields.contains_key(*trace);
        let group = |[trace, start, span]: [&'static str; 3]| FieldGroup {
            trace,
            sort: [start, span].into_iter().filter_map(|name| sortable(fields, name)).collect(),
        };
        FAMILIES.into_iter().filter(has_trace).map(group).collect()
    }
}

/// Returns the field by which documents are sorted instead of this one, with its type. A text cannot be sorted, but its keyword.
fn sortable(fields: &BTreeMap<String, FieldMapping>, name: &str) -> Option<(String, String)> {
    let field = fields.get(name)?;
    let kind = field.r#type.as_deref()?;
    if kind != "text" {
        return Some((name.to_owned(), kind.to_owned()));
    }
    let is_keyword =
        |(_, inner): &(&String, &FieldMapping)| inner.r#type.as_deref() == Some("keyword");
    let (inner, _) = field.fields.iter().find(is_keyword)?;
    Some((format!("{name}.{inner}"), "keyword".to_owned()))
}

impl FieldGroup {
    /// Returns the request for a page of the spans of a trace.
    pub(super) fn request(&self, trace: TraceId, point: &str, after: Option<&Vec<Json>>) -> Json {
        let sort = self.sort.iter().map(|(field, kind)| {
            Map::from_iter([(field.clone(), json!({ "order": "asc", "unmapped_type": kind }))])
        });
        let mut request = json!({
            "size": PAGE_HITS_MAX,
            "track_total_hits": true,
            "pit": { "id": point, "keep_alive": KEEP_ALIVE },
            "query": { "bool": { "filter": [{ "terms": { self.trace: ids(trace) } }] } },
            "sort": sort.collect::<Vec<_>>(),
        });
        if let Some(after) = after {
            request["search_after"] = json!(after);
        }
        request
    }
}

/// Returns the texts by which writers name a trace: old ones of Jaeger omit leading zeros, all or those of the first half.
fn ids(trace: TraceId) -> Vec<String> {
    let whole = trace.to_string();
    let short = whole.trim_start_matches('0');
    let half = format!("{short:0>16}");
    let mut ids = vec![whole.clone(), half, short.to_owned()];
    ids.dedup();
    ids
}

/// Parses a time of a setting: a number with a unit, or `-1` for never.
pub(super) fn interval(text: &str) -> Option<Refresh> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: i64 = digits.trim().parse().ok()?;
    let Ok(number @ 1..) = u64::try_from(number) else { return Some(Refresh::Never) };
    let unit: u64 = match &text[digits.len()..] {
        "nanos" => 1,
        "micros" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    Some(Refresh::Every(Duration::from_nanos(number.saturating_mul(unit))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(index: &Json) -> IndexLayout {
        let indices = json!({ "it": index });
        IndexLayout::of(&serde_json::from_value(indices).expect("an answer about indices"))
    }

    #[test]
    fn an_interval_has_a_unit_or_is_never() {
        let every = |millis| Some(Refresh::Every(Duration::from_millis(millis)));
        let cases = [
            ("1s", every(1_000)),
            ("500ms", every(500)),
            ("2m", every(120_000)),
            ("1d", every(86_400_000)),
            ("-1", Some(Refresh::Never)),
            ("0s", Some(Refresh::Never)),
            ("soon", None),
            ("1", None),
            ("1y", None),
        ];
        for (text, expected) in cases {
            assert_eq!(interval(text), expected, "{text}");
        }
    }

    #[test]
    fn what_an_index_cannot_show_is_a_gap() {
        let found = json!({ "properties": { "traceID": { "type": "keyword" } } });
        let cases = [
            (json!({ "mappings": found, "settings": {} }), None),
            (
                json!({ "settings": {} }),
                Some("the index `it` has none of the fields `traceId`, `traceID` and `trace_id`"),
            ),
            (
                json!({ "settings": { "index.verified_before_close": "true" } }),
                Some("the index `it` is closed"),
            ),
            (
                json!({ "mappings": found, "settings": { "index.refresh_interval": "-1" } }),
                Some(
                    "the index `it` shows new documents only after a refresh by hand: its `refresh_interval` is -1",
                ),
            ),
            (
                json!({ "mappings": found, "settings": { "index.refresh_interval": "soon" } }),
                Some("the `refresh_interval` of the index `it` is `soon`, which is no time"),
            ),
        ];
        for (index, expected) in cases {
            assert_eq!(layout(&index).gaps.first().map(String::as_str), expected);
        }
    }

    #[test]
    fn a_text_is_sorted_by_its_keyword_and_each_writer_by_its_fields() {
        let text = json!({ "type": "text", "fields": { "raw": { "type": "keyword" } } });
        let found = layout(&json!({
            "mappings": { "properties": {
                "traceId": text, "spanId": text, "startTime": { "type": "date" },
                "trace_id": { "type": "keyword" }, "span_id": { "type": "text" },
                "@timestamp": { "type": "date_nanos" },
            } },
            "settings": { "index.refresh_interval": "30s" },
        }));
        let pair = |field: &str, kind: &str| (field.to_owned(), kind.to_owned());
        let groups: Vec<_> = found.groups.into_keys().collect();
        let expected = [
            FieldGroup {
                trace: "traceId",
                sort: vec![pair("startTime", "date"), pair("spanId.raw", "keyword")],
            },
            FieldGroup { trace: "trace_id", sort: vec![pair("@timestamp", "date_nanos")] },
        ];
        assert_eq!(groups, expected);
        assert_eq!(found.refresh, Some(Duration::from_secs(30)));
        assert!(!found.has_default_refresh);
    }

    #[test]
    fn a_trace_is_also_found_by_an_id_without_leading_zeros() {
        let cases = [
            ("0af7651916cd43dd8448eb211c80319c", vec!["af7651916cd43dd8448eb211c80319c"]),
            ("000000000000000000000000000000ab", vec!["00000000000000ab", "ab"]),
            ("4bf92f3577b34da6a3ce929d0e0e4736", vec![]),
        ];
        for (id, others) in cases {
            let found = ids(id.parse().expect("an id"));
            assert_eq!(found.first().map(String::as_str), Some(id));
            assert_eq!(found[1..], others, "{id}");
        }
    }
}
