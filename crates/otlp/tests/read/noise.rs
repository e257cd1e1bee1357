//! For any bytes, reading ends with traces or with an error message.

use model::Trace;
use opentelemetry_proto::tonic::trace::v1::TracesData;
use otlp::{encode, read};
use proptest::{
    collection::vec,
    prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest},
    sample::{Index, select},
};
use prost::Message;

use crate::{EXTENSIONS, bytes_of, drawing::draw, folder};

/// Fragments that make a mutation more than noise.
const PIECES: [&str; 18] = [
    "{",
    "}",
    "[",
    "]",
    "null",
    "\"\"",
    "-1",
    "1e30",
    "true",
    "\"data\":",
    "\"trace\":",
    "\"spans\":",
    "\"resourceSpans\":",
    "\"traceId\":\"",
    "99999999999999999999",
    "\u{feff}",
    "\n",
    "\\ud800",
];

fn samples() -> impl Strategy<Value = Vec<u8>> {
    let samples = golden::files(folder(), &EXTENSIONS);
    let samples = samples.iter().map(|file| bytes_of(file)).filter(|bytes| !bytes.is_empty());
    select(samples.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn noise_ends_with_a_message(bytes in vec(any::<u8>(), 0..200)) {
        said(&bytes)?;
    }

    #[test]
    fn a_broken_file_ends_with_a_message_or_is_still_whole(
        bytes in samples(),
        flips in vec((any::<Index>(), any::<u8>()), 0..3),
        piece in select(&PIECES[..]),
        at in any::<Index>(),
        cut in any::<Index>(),
    ) {
        let mut bytes = bytes;
        for (place, byte) in flips {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let place = at.index(bytes.len());
        bytes.splice(place..place, piece.bytes());
        // Complete in half of the cases.
        bytes.truncate(cut.index(2 * bytes.len()) + 1);
        said(&bytes)?;
    }

    #[test]
    fn what_is_read_is_whole(bytes in samples()) {
        let traces = read(&bytes).unwrap_or_default();
        // All of them in one message.
        let written: Vec<u8> = traces.iter().flat_map(encode).collect();
        if !written.is_empty() {
            prop_assert!(TracesData::decode(written.as_slice()).is_ok());
            let again: Vec<Trace> = read(&written).expect("our own message");
            prop_assert_eq!(draw(&again), draw(&traces));
        }
    }
}

fn said(bytes: &[u8]) -> Result<(), proptest::test_runner::TestCaseError> {
    match read(bytes) {
        Ok(traces) => prop_assert!(traces.iter().all(|trace| !trace.is_empty())),
        Err(error) => prop_assert!(error.to_string().len() < 600, "{}", error),
    }
    Ok(())
}

#[test]
fn json_that_nests_without_end_is_refused() {
    let value = "{\"arrayValue\":{\"values\":[".repeat(5_000);
    let text = format!(
        "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"a\",\"value\":{value}"
    );
    let error = read(text.as_bytes()).expect_err("refused").to_string();
    assert!(error.contains("recursion limit exceeded at line 1 column"), "{error}");
}

#[test]
fn what_traces_share_is_not_kept_without_end() {
    // A resource of 1 MiB with one small span of each of this many traces.
    let file = |traces: u32| {
        let large = "x".repeat(1 << 20);
        let spans: Vec<_> = (1..=traces)
            .map(|number| format!(r#"{{"traceId":"{number:032x}","spanId":"{number:016x}"}}"#))
            .collect();
        let spans = spans.join(",");
        format!(
            r#"{{"resourceSpans":[{{"schemaUrl":"{large}","scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#
        )
    };
    assert_eq!(read(file(19).as_bytes()).expect("19 copies fit").len(), 19);
    let error = read(file(21).as_bytes()).expect_err("21 copies do not").to_string();
    assert!(error.starts_with("too many traces share large resources"), "{error}");
}
