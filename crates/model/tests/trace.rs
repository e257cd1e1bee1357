//! A trace returns the pushed spans, once, and with the right tree.

use model::{
    SpanId, Timestamp, TraceId,
    trace::{
        Cell, EntityData, EventData, EventHead, Kind, LinkData, LinkHead, PushResult, ResourceData,
        ResourceHead, ScopeData, ScopeHead, SpanData, SpanHead, Status, StatusCode, Trace,
        TraceFull, Tree, Value, ValueRef, Writer,
    },
};
use proptest::{
    collection::vec,
    option,
    prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest},
};

fn trace_id() -> TraceId {
    TraceId::from_bytes([7; 16]).expect("not zero")
}

fn span_id(number: u8) -> SpanId {
    SpanId::from_bytes([number; 8]).expect("not zero")
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Empty),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
        "[a-cé]{0,3}".prop_map(Value::Str),
        vec(any::<u8>(), 0..4).prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec(("[a-c]{0,2}", inner), 0..4).prop_map(Value::Map),
        ]
    })
}

fn attributes() -> impl Strategy<Value = Vec<(String, Value)>> {
    vec(("[a-d.]{0,4}", value()), 0..4)
}

fn span() -> impl Strategy<Value = SpanData> {
    let event = (any::<u64>(), "[a-c]{0,2}", attributes(), any::<u32>()).prop_map(
        |(at, name, attributes, dropped_attributes)| EventData {
            at: Timestamp::from_nanos(at),
            name,
            attributes,
            dropped_attributes,
        },
    );
    let link = (option::of(1u8..9), option::of(1u8..9), "[a-c]{0,2}", any::<u32>(), attributes())
        .prop_map(|(trace, span, trace_state, flags, attributes)| LinkData {
            trace_id: trace.and_then(|number| TraceId::from_bytes([number; 16])),
            span_id: span.map(span_id),
            trace_state,
            flags,
            attributes,
            dropped_attributes: flags / 2,
        });
    let head = (1u8..30, option::of(1u8..30), "[a-c]{0,2}", any::<u32>(), "[a-z]{0,3}");
    let tail = (0i32..9, any::<[u64; 2]>(), any::<[u32; 3]>(), 0i32..5);
    (head, tail, attributes(), vec(event, 0..3), vec(link, 0..3)).prop_map(
        |(
            (id, parent, trace_state, flags, name),
            (kind, times, dropped, code),
            attributes,
            events,
            links,
        )| {
            SpanData {
                id: span_id(id),
                parent: parent.map(span_id),
                trace_state,
                flags,
                name: name.clone(),
                kind: Kind::from_number(kind),
                start: Timestamp::from_nanos(times[0]),
                end: Timestamp::from_nanos(times[1]),
                attributes,
                dropped_attributes: dropped[0],
                events,
                dropped_events: dropped[1],
                links,
                dropped_links: dropped[2],
                status: Status { code: StatusCode::from_number(code), message: name },
            }
        },
    )
}

fn resource() -> impl Strategy<Value = ResourceData> {
    (attributes(), any::<u32>(), "[a-b]{0,1}", vec("[a-b]{0,1}", 0..3)).prop_map(
        |(attributes, dropped_attributes, schema_url, keys)| ResourceData {
            attributes,
            dropped_attributes,
            entities: vec![EntityData {
                schema_url: schema_url.clone(),
                kind: "service".to_owned(),
                id_keys: keys.clone(),
                description_keys: keys,
            }],
            schema_url,
        },
    )
}

fn scope() -> impl Strategy<Value = ScopeData> {
    ("[a-b]{0,2}", "[0-9]{0,1}", attributes(), any::<u32>()).prop_map(
        |(name, version, attributes, dropped_attributes)| ScopeData {
            schema_url: name.clone(),
            name,
            version,
            attributes,
            dropped_attributes,
        },
    )
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nothing_is_stored_twice(
        pushed in vec((resource(), scope(), span()), 0..12)
    ) {
        let mut trace = Trace::new(trace_id());
        let mut kept: Vec<(ResourceData, ScopeData, SpanData)> = Vec::new();
        // Everything arrives twice, as from a sender that did not receive the first acknowledgement.
        for (resource_data, scope_data, data) in pushed.iter().chain(&pushed) {
            let resource = trace.resource(resource_data.clone()).expect("room");
            let scope = trace.scope(scope_data.clone()).expect("room");
            let first = kept.iter().find(|(_, _, known)| known.id == data.id);
            let item = (resource_data.clone(), scope_data.clone(), data.clone());
            match trace.push(resource, scope, data.clone()).expect("room") {
                PushResult::New(_) => { prop_assert!(first.is_none()); kept.push(item); }
                PushResult::Repeated(_) => prop_assert!(kept.contains(&item)),
                PushResult::Conflicting(ix) => {
                    prop_assert!(first.is_some() && !kept.contains(&item));
                    prop_assert!(trace.conflicts().contains(&ix));
                    kept.push(item);
                }
            }
        }
        let read: Vec<_> = trace
            .spans()
            .map(|span| (span.resource().to_data(), span.scope().to_data(), span.to_data()))
            .collect();
        prop_assert_eq!(read, kept);
    }

    #[test]
    fn every_tree_holds_every_span_once_and_parents_come_first(
        parents in vec(option::of(0u8..24), 1..24), starts in vec(0u64..4, 24)
    ) {
        let mut trace = Trace::new(trace_id());
        let resource = trace.resource(ResourceData::default()).expect("room");
        let scope = trace.scope(ScopeData::default()).expect("room");
        for (number, parent) in (0u8..).zip(&parents) {
            let mut data = SpanData::new(span_id(number + 1), parent.map(|p| span_id(p + 1)), "s");
            data.start = Timestamp::from_nanos(starts[usize::from(number)]);
            trace.push(resource, scope, data).expect("room");
        }
        let tree = Tree::of(&trace);
        let mut seen = tree.order().to_vec();
        seen.sort_unstable();
        prop_assert_eq!(seen, trace.spans().map(|span| span.ix()).collect::<Vec<_>>());
        for span in trace.spans() {
            let below = tree.descendants(span.ix());
            for other in trace.spans() {
                let mut up = tree.parent(other.ix());
                while up.is_some_and(|at| at != span.ix()) {
                    up = up.and_then(|at| tree.parent(at));
                }
                prop_assert_eq!(up.is_some(), below.contains(&other.ix()));
            }
            if let Some(parent) = tree.parent(span.ix()) {
                prop_assert!(tree.place(parent) < tree.place(span.ix()));
            }
        }
        for pair in tree.order().windows(2) {
            if tree.parent(pair[0]) == tree.parent(pair[1]) {
                prop_assert!(trace.span(pair[0]).start() <= trace.span(pair[1]).start());
            }
        }
    }
}

#[test]
fn a_circle_of_parents_is_cut_at_its_earliest_span() {
    let mut trace = Trace::new(trace_id());
    let resource = trace.resource(ResourceData::default()).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    // 1 → 2 → 3 → 1, of which 2 started first; 4 is below 3; 5 names a parent that never arrived.
    for (id, parent, start) in [(1, 3, 30), (2, 1, 10), (3, 2, 20), (4, 3, 1), (5, 9, 50)] {
        let mut data = SpanData::new(span_id(id), Some(span_id(parent)), "s");
        data.start = Timestamp::from_nanos(start);
        trace.push(resource, scope, data).expect("room");
    }
    let tree = Tree::of(&trace);
    let order: Vec<_> = tree.order().iter().map(|ix| trace.span(*ix).id()).collect();
    assert_eq!(order, [2, 3, 4, 1, 5].map(span_id));
    let orphans: Vec<_> = tree.orphans().iter().map(|ix| trace.span(*ix).id()).collect();
    assert_eq!(orphans, [span_id(5)]);
}

/// As many spans as would take minutes if each cycle, or each span with the same id, visited all others.
const MANY: u64 = 200_000;

#[test]
fn a_trace_of_nothing_but_circles_is_cut_at_each() {
    let mut trace = Trace::new(trace_id());
    let resource = trace.resource(ResourceData::default()).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    // Spans 2n and 2n + 1 name each other; the second of each pair started first.
    let id = |number: u64| SpanId::from_bytes((number + 1).to_be_bytes()).expect("not zero");
    for number in 0..MANY {
        let mut data = SpanData::new(id(number), Some(id(number ^ 1)), "s");
        data.start = Timestamp::from_nanos(number ^ 1);
        trace.push(resource, scope, data).expect("room");
    }
    let tree = Tree::of(&trace);
    let order: Vec<_> = tree.order().iter().map(|ix| trace.span(*ix).id()).collect();
    assert_eq!(order, (0..MANY).map(|number| id(number ^ 1)).collect::<Vec<_>>());
    for (number, span) in (0..MANY).zip(trace.spans()) {
        let parent = tree.parent(span.ix()).map(|parent| trace.span(parent).id());
        assert_eq!(parent, (number % 2 == 0).then(|| id(number + 1)));
    }
}

#[test]
fn many_spans_of_one_id_are_told_apart() {
    let mut trace = Trace::new(trace_id());
    let resources = ["", "other"].map(|url| {
        let data = ResourceData { schema_url: url.to_owned(), ..ResourceData::default() };
        trace.resource(data).expect("room")
    });
    let scope = trace.scope(ScopeData::default()).expect("room");
    let spans: Vec<_> = (0..MANY / 4)
        .flat_map(|end| resources.map(|resource| (resource, Timestamp::from_nanos(end))))
        .collect();
    for round in 0..2 {
        for (number, (resource, end)) in spans.iter().enumerate() {
            let data = SpanData { end: *end, ..SpanData::new(span_id(1), None, "s") };
            let pushed = trace.push(*resource, scope, data).expect("room");
            let is_right = match pushed {
                PushResult::New(_) => (round, number) == (0, 0),
                PushResult::Conflicting(_) => round == 0 && number > 0,
                PushResult::Repeated(ix) => round == 1 && trace.span(ix).end() == *end,
            };
            assert!(is_right, "{number} in round {round}: {pushed:?}");
        }
    }
    assert_eq!((trace.len(), trace.conflicts().len()), (spans.len(), spans.len() - 1));
}

#[test]
fn attributes_are_found_by_key_and_the_last_of_two_wins() {
    let mut trace = Trace::new(trace_id());
    let resource = trace.resource(ResourceData::default()).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    let mut data = SpanData::new(span_id(1), None, "s");
    let text = |text: &str| Value::Str(text.to_owned());
    data.attributes =
        [("a", "1"), ("b", ""), ("a", "2")].map(|(k, v)| (k.to_owned(), text(v))).to_vec();
    trace.push(resource, scope, data).expect("room");
    let attributes = trace.find(span_id(1)).expect("it was pushed").attributes();
    assert!(matches!(attributes.get("a"), Some(ValueRef::Str("2"))));
    assert!(matches!(attributes.get("b"), Some(ValueRef::Str(""))), "empty is not absent");
    assert!(attributes.get("c").is_none());
}

#[test]
fn what_nothing_took_leaves_nothing_behind() {
    let mut trace = Trace::new(trace_id());
    let head = |writer: &mut Writer<'_>| {
        let resource = writer.resource(ResourceHead::default()).expect("room");
        let scope = writer.scope(ScopeHead::default()).expect("room");
        SpanHead::new(span_id(1), None, resource, scope)
    };
    let mut writer = Writer::new(&mut trace);
    let head = head(&mut writer);
    write_all_kinds(&mut writer).expect("room");
    assert!(matches!(writer.span(head), Ok(PushResult::New(_))));
    drop(writer);
    // Includes rows and tables.
    let before = format!("{trace:?}");

    let mut writer = Writer::new(&mut trace);
    write_all_kinds(&mut writer).expect("room");
    assert!(matches!(writer.span(head), Ok(PushResult::Repeated(_))));
    drop(writer);
    assert_eq!(format!("{trace:?}"), before, "a repeated span");

    let mut writer = Writer::new(&mut trace);
    write_all_kinds(&mut writer).expect("room");
    writer.discard();
    assert!(matches!(writer.resource(ResourceHead::default()), Ok(ix) if ix == head.resource));
    write_all_kinds(&mut writer).expect("room");
    drop(writer);
    assert_eq!(format!("{trace:?}"), before, "what was written for nothing");
}

/// Writes something into each vector of a trace.
fn write_all_kinds(writer: &mut Writer<'_>) -> Result<(), TraceFull> {
    let text = writer.text(b"text")?.expect("UTF-8");
    assert_eq!(writer.text(&[0xff])?, None);
    let bytes = writer.bytes(&[1, 2])?;
    let since = writer.mark();
    writer.element(bytes);
    writer.element(Cell::Int(3.into()));
    let array = writer.array(since)?;
    let since = writer.mark();
    writer.attribute(text, array);
    let map = writer.map(since)?;
    let since = writer.mark();
    writer.attribute(text, map);
    writer.event(EventHead { name: text, ..EventHead::default() }, since)?;
    writer.link(LinkHead { trace_state: text, ..LinkHead::default() }, writer.mark())?;
    writer.entity(text, text, &[text], &[])?;
    writer.attribute(text, Cell::Double(0.5.into()));
    let since = writer.mark();
    writer.element(Cell::Empty);
    writer.attribute(text, Cell::Empty);
    writer.forget(since);
    Ok(())
}
