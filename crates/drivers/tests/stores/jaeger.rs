//! Jaeger, a real one, by both of its protocols.

use std::{net::SocketAddr, time::Duration};

use crate::{
    conformance::{self, Intake, Subject, told},
    sample::{self, Content, address, fresh, open},
};
use drivers::store::QueryResult;
use model::{Secret, StoreConfig};

const PROTOCOLS: [bool; 2] = [true, false];

fn config(address: &str, is_grpc: bool) -> StoreConfig {
    StoreConfig { is_grpc, ..sample::config("jaeger", format!("http://{address}")) }
}

/// Returns the address of the query API.
fn query_address(is_grpc: bool) -> Option<String> {
    let variable =
        if is_grpc { "QUALITYTRACE_TEST_JAEGER_GRPC" } else { "QUALITYTRACE_TEST_JAEGER" };
    Some(address(variable)?.trim_start_matches("http://").to_owned())
}

/// Returns the installed Jaeger, by each protocol.
fn subjects() -> Vec<Subject> {
    let subject = |is_grpc| {
        let client = open(&config(&query_address(is_grpc)?, is_grpc));
        Some(Subject {
            client,
            intake: Intake::Otlp(address("QUALITYTRACE_TEST_JAEGER_OTLP")?),
            changes,
        })
    };
    PROTOCOLS.into_iter().filter_map(subject).collect()
}

/// A span that does not end after it starts gets an end, and a warning.
fn changes(content: &mut Content) {
    for (span, ..) in content {
        let is_warned = span.attributes.iter().any(|(key, _)| key == "@jaeger@warnings");
        if is_warned {
            span.attributes.retain(|(key, _)| key != "@jaeger@warnings");
            assert_eq!(span.end, span.start.plus(Duration::from_nanos(1)));
            span.end = span.start;
        }
    }
}

#[tokio::test]
async fn jaeger_gives_back_what_it_was_sent() {
    for subject in subjects() {
        conformance::an_unknown_trace(&subject).await;
        conformance::what_was_sent(&subject).await;
        conformance::a_trace_that_grows(&subject).await;
        conformance::answers_that_repeat(&subject, Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn jaeger_gives_back_a_large_trace() {
    for subject in subjects() {
        conformance::a_large_trace(&subject).await;
    }
}

#[tokio::test]
async fn an_answer_of_jaeger_that_is_cut_or_held_is_no_answer() {
    for is_grpc in PROTOCOLS {
        let (Some(query), Some(otlp)) =
            (query_address(is_grpc), address("QUALITYTRACE_TEST_JAEGER_OTLP"))
        else {
            return;
        };
        let open = |address: SocketAddr| open(&config(&address.to_string(), is_grpc));
        let query = query.parse().expect("an address");
        conformance::cut_answers((query, Intake::Otlp(otlp)), open).await;
    }
}

#[tokio::test]
async fn what_answers_there_and_is_no_jaeger_is_named() {
    // Each protocol is spoken to the other's port.
    for is_grpc in PROTOCOLS {
        let Some(other) = query_address(!is_grpc) else { return };
        let result = open(&config(&other, is_grpc)).store.query(fresh(), None).await;
        assert!(
            matches!(result, QueryResult::Failed { .. } | QueryResult::Refused { .. }),
            "{}",
            told(&result)
        );
    }
}

#[tokio::test]
async fn no_message_contains_a_credential() {
    let Some(address) = query_address(false) else { return };
    let mut config = config(&address, false);
    config.url.push_str("/s3cret-in-no-path");
    config.headers.push(("authorization".to_owned(), Secret::new("s3cret-in-no-path")));
    let result = open(&config).store.query(fresh(), None).await;
    assert!(!format!("{result:?}").contains("s3cret"), "{}", told(&result));
}
