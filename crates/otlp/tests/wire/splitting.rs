//! Splitting by scanning finds the same spans as decoding.

use std::collections::{BTreeMap, BTreeSet};

use model::{Trace, TraceId};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData};
use otlp::{DecodeError, Split, append, split};
use proptest::{
    collection::vec,
    prelude::{any, prop_assert, prop_assert_eq, proptest},
    sample::Index,
};
use prost::Message;

use crate::{
    raw::field,
    strategy::{TRACE, any_traces, is_parent},
};

proptest! {
    #[test]
    fn scanning_finds_what_decoding_finds(data in any_traces()) {
        let split = split(&data.encode_to_vec(), wanted).expect("split");
        let mut kept = 0;
        for batch in &split.batches {
            prop_assert!(wanted(&batch.trace_id));
            let found = TracesData::decode(&batch.bytes[..]).expect("a batch can be decoded");
            let expected = only(&data, |span| span.trace_id == batch.trace_id.as_bytes());
            // As bytes, so that `NaN` equals itself.
            prop_assert_eq!(found.encode_to_vec(), expected.encode_to_vec());
            kept += count(&found);
        }
        prop_assert_eq!(split.kept, kept);
        let valid = only(&data, |_| true);
        prop_assert_eq!(split.invalid, count(&data) - count(&valid));
        prop_assert_eq!(split.foreign, count(&valid) - kept);
        prop_assert_eq!(split.damaged, damaged(&data));
        let ids: BTreeMap<_, _> = split.batches.iter().map(|it| (it.trace_id, ())).collect();
        prop_assert_eq!(ids.len(), split.batches.len(), "one batch for each trace");
    }

    #[test]
    fn noise_is_refused_or_split_and_never_worse(bytes in vec(any::<u8>(), 0..200)) {
        split(&bytes, |_| true).ok();
    }

    #[test]
    fn what_was_split_can_be_decoded(
        data in any_traces(), at in any::<Index>(), flip in 1u8..=255, cut in any::<Index>(),
    ) {
        let mut bytes = data.encode_to_vec();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            bytes.truncate(cut.index(bytes.len()) + 1);
        }
        for batch in split(&bytes, wanted).map(|split| split.batches).unwrap_or_default() {
            prop_assert!(TracesData::decode(&batch.bytes[..]).is_ok());
        }
    }
}

#[test]
fn a_mistake_counts_only_in_a_wanted_span() {
    // Field 9 of a span is a message; here its content is truncated.
    let mut span =
        Span { trace_id: TRACE.to_vec(), span_id: vec![1; 8], ..Span::default() }.encode_to_vec();
    span.extend([9 << 3 | 2, 2, 1 << 3 | 2, 40]);
    let request = [1 << 3 | 2, span.len() as u8 + 4, 2 << 3 | 2, span.len() as u8 + 2, 2 << 3 | 2]
        .into_iter()
        .chain([span.len() as u8])
        .chain(span)
        .collect::<Vec<u8>>();
    let foreign = Split { foreign: 1, ..Split::default() };
    assert_eq!(split(&request, |_| false), Ok(foreign));
    let error = split(&request, |_| true).expect_err("refused").to_string();
    assert!(error.starts_with("not OTLP protobuf: "), "{error}");
}

#[test]
fn ids_are_found_wherever_they_stand() {
    let (trace, own) = (field(1, &TRACE), field(2, &[1; 8]));
    let (state, parent, name) = (field(3, b"a=b"), field(4, &[2; 8]), field(5, b"name"));
    let bad = field(4, &[2; 3]);
    let long = field(3, &[b'a'; 200]);
    let cases = [
        (vec![&trace, &own, &parent, &name], true),
        (vec![&trace, &own, &name], true),
        (vec![&trace, &own], true),
        (vec![&trace, &own, &state, &parent, &name], true),
        (vec![&trace, &own, &long, &parent], true),
        (vec![&name, &parent, &own, &trace], true),
        (vec![&own, &trace, &name], true),
        (vec![&trace, &own, &bad, &name], false),
        (vec![&trace, &own, &state, &bad], false),
        (vec![&trace, &own, &long, &bad], false),
        (vec![&trace, &name, &parent], false),
    ];
    for (fields, is_valid) in cases {
        let span: Vec<u8> = fields.iter().copied().flatten().copied().collect();
        let request = field(1, &field(2, &field(2, &span)));
        let foreign = split(&request, |_| false).expect("split");
        let counts = (u64::from(is_valid), u64::from(!is_valid));
        assert_eq!((foreign.foreign, foreign.invalid), counts, "{fields:?}");
        let kept = split(&request, |_| true).expect("split");
        assert_eq!((kept.kept, kept.invalid), counts, "{fields:?}");
    }
}

/// A foreign span need not be read to its end: see the module.
#[test]
fn a_second_trace_id_does_not_take_a_foreign_span_back() {
    let span = [field(1, &[9; 16]), field(2, &[1; 8]), field(4, &[2; 8]), field(1, &TRACE)];
    let request = field(1, &field(2, &field(2, &span.concat())));
    let foreign = Split { foreign: 1, ..Split::default() };
    assert_eq!(split(&request, |trace_id| *trace_id.as_bytes() == TRACE), Ok(foreign));
}

#[test]
fn a_malformed_parent_is_invalid_and_no_root() {
    for (parent, is_kept) in [
        (vec![], true),
        (vec![0; 8], true),
        (vec![0; 16], true),
        (vec![9; 8], true),
        (vec![9; 7], false),
        (vec![9; 16], false),
        (vec![0, 9], false),
    ] {
        let data = one_span(parent.clone());
        let split = split(&data.encode_to_vec(), |_| true).expect("split");
        let counts = (split.kept, split.invalid, split.batches.len(), split.damaged.len());
        let expected = if is_kept { (1, 0, 1, 0) } else { (0, 1, 0, 1) };
        assert_eq!(counts, expected, "{parent:?}");
        let mut trace = Trace::new(TraceId::from_bytes(TRACE).expect("an id"));
        let new = append(&mut trace, &data.encode_to_vec());
        assert_eq!(new, Ok(u64::from(is_kept)), "{parent:?}");
    }
}

fn one_span(parent_span_id: Vec<u8>) -> TracesData {
    let span =
        Span { trace_id: TRACE.to_vec(), span_id: vec![1; 8], parent_span_id, ..Span::default() };
    let scope_spans = vec![ScopeSpans { spans: vec![span], ..ScopeSpans::default() }];
    TracesData { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }
}

#[test]
fn what_traces_share_is_not_copied_without_end() {
    // A resource of 1 MiB with one small span of each of this many traces.
    let request = |traces: u8| {
        let span =
            |byte: u8| Span { trace_id: vec![byte; 16], span_id: vec![1; 8], ..Span::default() };
        let spans = (1..=traces).map(span).collect();
        let resource_spans = ResourceSpans {
            schema_url: "x".repeat(1 << 20),
            scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        };
        TracesData { resource_spans: vec![resource_spans] }.encode_to_vec()
    };
    let taken = split(&request(19), |_| true).expect("19 copies fit");
    assert_eq!((taken.batches.len(), taken.kept), (19, 19));
    let error = split(&request(21), |_| true).expect_err("21 copies do not");
    assert_eq!(error, DecodeError::TooLarge);
    let one = split(&request(21), |id| *id.as_bytes() == [3; 16]).expect("one of them does");
    assert_eq!((one.kept, one.foreign), (1, 20));
}

#[test]
fn a_number_where_a_message_belongs_is_refused() {
    let error = split(&[1 << 3, 1], |_| true).expect_err("refused");
    let expected = "not OTLP protobuf: field 1 has wire type 0, at byte 1";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn fields_of_a_later_otlp_stay() {
    let mut spans = ScopeSpans {
        spans: vec![Span { trace_id: TRACE.to_vec(), span_id: vec![1; 8], ..Span::default() }],
        ..ScopeSpans::default()
    }
    .encode_to_vec();
    let later = [15 << 3 | 2, 3, b'n', b'e', b'w'];
    spans.extend(later);
    let mut request = vec![1 << 3 | 2, spans.len() as u8 + 2, 2 << 3 | 2, spans.len() as u8];
    request.extend(spans);
    let split = split(&request, |_| true).expect("split");
    let bytes = &split.batches[0].bytes;
    assert!(bytes.windows(later.len()).any(|window| window == later), "{bytes:?}");
}

fn wanted(id: &TraceId) -> bool {
    [[1; 16], [2; 16]].contains(id.as_bytes())
}

/// Returns the spans with valid ids that pass, with the resources and scopes that have one.
fn only(data: &TracesData, pass: impl Fn(&Span) -> bool) -> TracesData {
    let pass = |span: &&Span| has_ids(span) && pass(span);
    let mut found = TracesData::default();
    for resource_spans in &data.resource_spans {
        let mut scopes = Vec::new();
        for scope_spans in &resource_spans.scope_spans {
            let spans: Vec<_> = scope_spans.spans.iter().filter(pass).cloned().collect();
            if !spans.is_empty() {
                scopes.push(ScopeSpans { spans, ..scope_spans.clone() });
            }
        }
        if !scopes.is_empty() {
            let scope_spans = scopes;
            found.resource_spans.push(ResourceSpans { scope_spans, ..resource_spans.clone() });
        }
    }
    found
}

fn has_ids(span: &Span) -> bool {
    span.trace_id.len() == 16
        && span.trace_id != [0; 16]
        && span.span_id.len() == 8
        && span.span_id != [0; 8]
        && is_parent(&span.parent_span_id)
}

/// Returns the wanted traces of invalid spans.
fn damaged(data: &TracesData) -> Vec<TraceId> {
    let scopes = data.resource_spans.iter().flat_map(|it| &it.scope_spans);
    let invalid = scopes.flat_map(|it| &it.spans).filter(|span| !has_ids(span));
    let ids =
        invalid.filter_map(|span| TraceId::from_bytes(span.trace_id.as_slice().try_into().ok()?));
    ids.filter(wanted).collect::<BTreeSet<_>>().into_iter().collect()
}

fn count(data: &TracesData) -> u64 {
    let scopes = data.resource_spans.iter().flat_map(|it| &it.scope_spans);
    scopes.map(|it| it.spans.len() as u64).sum()
}
