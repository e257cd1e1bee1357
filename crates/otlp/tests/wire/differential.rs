//! Decoding field by field gives the same result as `prost`, for messages that no encoder would write.

use model::{
    Trace, TraceId,
    trace::{ResourceData, ScopeData, SpanData},
};
use opentelemetry_proto::tonic::trace::v1::TracesData;
use otlp::{append, encode, split};
use proptest::{
    collection::vec,
    prelude::{ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest},
    sample::Index,
    test_runner::TestCaseError,
};
use prost::Message;

use crate::{
    raw::{TRACES_DATA, field, message},
    reference,
    strategy::{TRACE, any_traces, traces},
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn fields_in_any_order_and_number_mean_what_they_mean_to_prost(
        bytes in message(&TRACES_DATA, 6), again in message(&TRACES_DATA, 6)
    ) {
        agree(&[&bytes, &again])?;
    }

    #[test]
    fn what_an_encoder_writes_means_what_it_means_to_prost(data in any_traces()) {
        agree(&[&data.encode_to_vec()])?;
    }

    #[test]
    fn what_is_broken_is_broken_to_prost(
        bytes in prop_oneof![message(&TRACES_DATA, 6), traces().prop_map(|data| data.encode_to_vec())],
        flips in vec((any::<Index>(), 1u8..=255), 0..3), cut in any::<Index>(),
    ) {
        let mut bytes = bytes;
        if !bytes.is_empty() {
            for (at, flip) in flips {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
            }
            // Complete in half of the cases.
            bytes.truncate(cut.index(2 * bytes.len()) + 1);
        }
        agree(&[&bytes])?;
    }

    #[test]
    fn noise_is_broken_to_prost(bytes in vec(any::<u8>(), 0..60)) {
        agree(&[&bytes])?;
    }

    #[test]
    fn what_is_written_is_what_prost_writes(data in traces()) {
        let mut trace = Trace::new(id());
        append(&mut trace, &data.encode_to_vec()).expect("appended");
        let written = encode(&trace);
        let read = TracesData::decode(written.as_slice()).expect("our own message");
        prop_assert_eq!(read.encode_to_vec(), written);
    }
}

#[test]
fn messages_nest_as_deep_as_prost_lets_them() {
    // A span is nested three messages deep, its attribute's value two more; each array needs two.
    for depth in 40..60 {
        let mut value = vec![];
        for _ in 0..depth {
            value = field(1, &field(5, &value));
        }
        let attribute = field(2, &field(5, &value));
        let span = [field(1, &TRACE), field(2, &[1; 8]), field(9, &attribute)].concat();
        let bytes = field(1, &field(2, &field(2, &span)));
        agree(&[&bytes]).expect("agreed");
        // The same for unknown fields: groups within groups, in an event.
        let unknown = [vec![0x7b; depth * 2], vec![0x7c; depth * 2]].concat();
        let span = [field(1, &TRACE), field(2, &[1; 8]), field(11, &unknown)].concat();
        agree(&[&field(1, &field(2, &field(2, &span)))]).expect("agreed");
    }
}

/// Appends each of these to a trace in both ways, until decoding fails.
fn agree(messages: &[&[u8]]) -> Result<(), TestCaseError> {
    let (mut ours, mut theirs) = (Trace::new(id()), Trace::new(id()));
    for bytes in messages {
        let expected = reference::append(&mut theirs, bytes);
        let new = append(&mut ours, bytes);
        prop_assert_eq!(new.as_ref().ok(), expected.as_ref().ok(), "{:?} {:?}", new, expected);
        if new.is_err() {
            return Ok(());
        }

        prop_assert_eq!(content(&ours), content(&theirs));
        prop_assert_eq!(ours.conflicts(), theirs.conflicts());
        if names_two_traces(bytes) {
            continue;
        }
        // A message that can be decoded can also be split, and the trace is then in its batch.
        let split = split(bytes, |trace_id| *trace_id == id());
        prop_assert_eq!(split.as_ref().err(), None);
        let mut batched = Trace::new(id());
        for batch in split.into_iter().flat_map(|split| split.batches) {
            append(&mut batched, &batch.bytes).expect("a batch is read");
        }
        let mut alone = Trace::new(id());
        append(&mut alone, bytes).expect("read before");
        prop_assert_eq!(content(&batched), content(&alone));
    }
    Ok(())
}

/// Whether a span has two different trace ids. The last one then counts for `prost`, and the first one for a split, if it is
/// that of a foreign trace.
fn names_two_traces(bytes: &[u8]) -> bool {
    let data = AllIds::decode(bytes).expect("read before");
    let of_scopes = data.of_resources.iter().flat_map(|it| &it.of_scopes);
    let mut spans = of_scopes.flat_map(|it| &it.spans);
    spans.any(|span| span.trace_ids.iter().any(|id| *id != span.trace_ids[0]))
}

#[derive(Clone, PartialEq, Message)]
struct AllIds {
    #[prost(message, repeated, tag = "1")]
    of_resources: Vec<OfResource>,
}

#[derive(Clone, PartialEq, Message)]
struct OfResource {
    #[prost(message, repeated, tag = "2")]
    of_scopes: Vec<OfScope>,
}

#[derive(Clone, PartialEq, Message)]
struct OfScope {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<OfSpan>,
}

#[derive(Clone, PartialEq, Message)]
struct OfSpan {
    #[prost(bytes = "vec", repeated, tag = "1")]
    trace_ids: Vec<Vec<u8>>,
}

fn id() -> TraceId {
    TraceId::from_bytes(TRACE).expect("an id")
}

fn content(trace: &Trace) -> Vec<(ResourceData, ScopeData, SpanData)> {
    let spans = trace.spans();
    spans.map(|it| (it.resource().to_data(), it.scope().to_data(), it.to_data())).collect()
}
