//! What holds for the columns of every trace: random spans with few ids, so that there are circles, copies and orphans.

use std::collections::BTreeMap;

use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{Kind, ResourceData, SpanData, StatusCode, Value},
};
use proptest::{
    collection::vec,
    prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest},
    test_runner::TestCaseError,
};

use crate::reader::{Row, read};

/// What a random span consists of.
#[derive(Clone, Debug)]
struct Recipe {
    own: u8,
    parent: u8,
    name: u8,
    process: u8,
    start: u16,
    end: u16,
    kind: i32,
    status: i32,
}

fn recipes() -> impl Strategy<Value = Vec<Recipe>> {
    let recipe = (1u8..12, 0u8..14, 0u8..4, 0u8..6, 0u16..20, 0u16..20, -1i32..8, 0i32..4);
    let recipe = recipe.prop_map(|(own, parent, name, process, start, end, kind, status)| Recipe {
        own,
        parent,
        name,
        process,
        start,
        end,
        kind,
        status,
    });
    vec(recipe, 0..40)
}

fn id(number: u8) -> SpanId {
    SpanId::from_bytes([number; 8]).expect("not all zero")
}

fn trace(recipes: &[Recipe], first: u64) -> Trace {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("an id"));
    let scope = trace.scope(Default::default()).expect("room");
    for recipe in recipes {
        let text = |text: String| Value::Str(text);
        let attributes = vec![
            ("service.name".to_owned(), text(format!("service {}", recipe.process % 3))),
            ("service.instance.id".to_owned(), text(recipe.process.to_string())),
        ];
        let data = ResourceData { attributes, ..ResourceData::default() };
        let resource = trace.resource(data).expect("room");
        let parent = (recipe.parent > 0).then(|| id(recipe.parent));
        let name = format!("name {}", recipe.name);
        let mut span = SpanData {
            start: Timestamp::from_nanos(first.saturating_add(recipe.start.into())),
            end: Timestamp::from_nanos(first.saturating_add(recipe.end.into())),
            kind: Kind::from_number(recipe.kind),
            ..SpanData::new(id(recipe.own), parent, name)
        };
        span.status.code = StatusCode::from_number(recipe.status);
        trace.push(resource, scope, span).expect("room");
    }
    trace
}

/// Returns the place of the parent of each row: the last row before it whose subtree has not ended.
fn parents(rows: &[Row]) -> Result<Vec<Option<usize>>, TestCaseError> {
    let (mut open, mut parents) = (Vec::<usize>::new(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        while open.last().is_some_and(|above| rows[*above].end as usize <= at) {
            open.pop();
        }
        let end_max = open.last().map_or(rows.len(), |above| rows[*above].end as usize);
        prop_assert!((at + 1..=end_max).contains(&(row.end as usize)), "subtrees nest: {rows:?}");
        parents.push(open.last().copied());
        open.push(at);
    }
    Ok(parents)
}

proptest! {
    #[test]
    fn every_span_is_there_once_and_the_tree_nests(recipes in recipes(), first in any::<u64>()) {
        let trace = trace(&recipes, first);
        let (head, rows) = read(&otlp::columns(&trace).expect("few names"));
        let starts = trace.spans().map(|span| span.start().as_nanos());
        let first = starts.min().unwrap_or_default();
        prop_assert_eq!(&head.start, &first.to_string());
        // What a row reports of its span, by the span and by the row.
        let mut expected: Vec<_> = trace.spans().map(|span| {
            let (start, end) = (span.start().as_nanos(), span.end().as_nanos());
            let instance = span.resource().attributes().get("service.instance.id");
            let instance = match instance {
                Some(model::trace::ValueRef::Str(text)) => text.to_owned(),
                _ => String::new(),
            };
            let kind = u8::try_from(span.kind().number()).unwrap_or(0);
            (
                span.id().to_string(),
                (start - first) as f64,
                (i128::from(end) - i128::from(start)) as f64,
                span.name().to_owned(),
                instance,
                if kind > 5 { 0 } else { kind },
                span.status(),
            )
        }).map(|span| format!("{span:?}")).collect();
        let status = |flags: u8| match flags & (1 | 32) {
            1 => StatusCode::Error,
            32 => StatusCode::Ok,
            _ => StatusCode::Unset,
        };
        let mut found: Vec<_> = rows.iter().map(|row| {
            let process = &head.processes[row.process as usize];
            assert_eq!(process.service, row.service);
            let name = head.names[row.name as usize].clone();
            (row.id.clone(), row.start, row.duration, name, process.name.clone(), row.kind, status(row.flags))
        }).map(|row| format!("{row:?}").replace("Unset", "Other(3)")).collect();
        for text in &mut expected {
            *text = text.replace("Unset", "Other(3)");
        }
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected);

        let parents = parents(&rows)?;
        // By the id of a span, the parent that each of its copies names.
        let mut named = BTreeMap::<_, Vec<_>>::new();
        for span in trace.spans() {
            named.entry(span.id().to_string()).or_default().push(span.parent().map(|id| id.to_string()));
        }
        for (at, row) in rows.iter().enumerate() {
            let above = parents[at].map(|above| rows[above].id.clone());
            prop_assert_eq!(row.depth, parents[at].map_or(0, |above| rows[above].depth + 1));
            match above {
                Some(_) => {
                    prop_assert!(named[&row.id].contains(&above), "it names its parent");
                    prop_assert_eq!(row.flags & 8, 0);
                }
                None if row.flags & 8 == 0 => prop_assert!(named[&row.id].contains(&None)),
                None => {
                    let is_cut = |parent: &Option<String>| parent.is_some();
                    prop_assert!(named[&row.id].iter().any(is_cut), "an orphan names a parent");
                }
            }
            // The next span of the same parent starts later, or at once with an id that is not lower.
            let next = row.end as usize;
            if next < rows.len() && parents[next] == parents[at] {
                let key = |row: &Row| (row.start as u64, row.id.clone());
                prop_assert!(key(row) <= key(&rows[next]), "{:?}", (row, &rows[next]));
            }
        }
    }

    #[test]
    fn a_span_outside_of_its_parent_in_another_process_has_its_flag(recipes in recipes()) {
        let (_, rows) = read(&otlp::columns(&trace(&recipes, 1000)).expect("few names"));
        let parents = parents(&rows)?;
        let interval = |row: &Row| {
            let end = row.start + row.duration;
            (row.start.min(end), row.start.max(end))
        };
        for (row, parent) in rows.iter().zip(parents) {
            let parent = parent.map(|parent| &rows[parent]);
            let is_outside = parent.is_some_and(|parent| {
                let ((first, last), (above_first, above_last)) = (interval(row), interval(parent));
                parent.process != row.process && (first < above_first || above_last < last)
            });
            prop_assert_eq!(row.flags & 16 != 0, is_outside, "{:?} below {:?}", row, parent);
        }
    }
}
