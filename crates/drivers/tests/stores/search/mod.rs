//! OpenSearch and Elasticsearch, real ones: with a real Jaeger that writes to them, and with the documents of other writers.

mod limits;
mod node;
mod scripted;
mod writers;

use std::{net::SocketAddr, time::Duration};

use crate::{
    conformance::{self, Intake, Subject},
    sample::{Content, content, decoded, flat, fresh, full, remove},
};
use model::{SpanDetail, trace::Value};
use node::{ELASTICSEARCH, OPENSEARCH, SearchNode, open};
use writers::{
    ContentChange, DATA_PREPPER, DocumentWriter, OTEL_MODE, SIMPLE_SCHEMA, composed_as_text,
    without_scope_attributes,
};

/// What Jaeger does not keep in its index.
const JAEGER_CHANGES: &[ContentChange] = &[
    ("nanoseconds", |content| remove(SpanDetail::Nanoseconds, content)),
    ("scope attributes", without_scope_attributes),
    ("link attributes", |content| {
        let links = content.iter_mut().flat_map(|(span, ..)| &mut span.links);
        links.for_each(|link| link.attributes.clear());
    }),
    ("lists and maps become JSON", composed_as_text),
    ("warnings", |content| {
        let is_warning = |(key, _): &(String, Value)| key == "@jaeger@warnings";
        content.iter_mut().for_each(|(span, ..)| span.attributes.retain(|it| !is_warning(it)));
    }),
];

fn jaeger_changes(content: &mut Content) {
    JAEGER_CHANGES.iter().for_each(|(_, change)| change(content));
}

/// A trace comes back but for the changes, and each of them is made.
async fn each_change_is_made(subject: &Subject, changes: &[ContentChange]) {
    let sent = full(fresh());
    subject.intake.send(&sent).await;
    let result = subject.shown(sent.id(), sent.len()).await;
    let (found, expected) = (decoded(sent.id(), &result), content(&sent));
    for (left_out, _) in changes {
        let without = |content: &Content| {
            let mut content = content.clone();
            let others = changes.iter().filter(|(name, _)| name != left_out);
            others.for_each(|(_, change)| change(&mut content));
            content
        };
        assert_ne!(without(&found), without(&expected), "it does not change: {left_out}");
    }
}

async fn gives_back_what_it_was_sent(subject: &Subject, changes: &[ContentChange]) {
    conformance::what_was_sent(subject).await;
    conformance::an_unknown_trace(subject).await;
    conformance::a_trace_that_grows(subject).await;
    conformance::answers_that_repeat(subject, Duration::from_secs(2)).await;
    each_change_is_made(subject, changes).await;
}

/// Returns a node to which a Jaeger writes. By default, the indices of other tests would match too, while they are made.
fn jaeger_subject(node: SearchNode, otlp: &str) -> Subject {
    let client = open(node.kind, &node.url().expect("it is installed"), Some("jaeger-span-*"));
    Subject { client, intake: Intake::Otlp(otlp.to_owned()), changes: jaeger_changes }
}

#[tokio::test]
async fn opensearch_gives_back_what_jaeger_wrote() {
    let Some(jaeger) = OPENSEARCH.jaeger().await else { return };
    gives_back_what_it_was_sent(&jaeger_subject(OPENSEARCH, &jaeger.otlp), JAEGER_CHANGES).await;
}

#[tokio::test]
async fn elasticsearch_gives_back_what_jaeger_wrote() {
    let Some(jaeger) = ELASTICSEARCH.jaeger().await else { return };
    gives_back_what_it_was_sent(&jaeger_subject(ELASTICSEARCH, &jaeger.otlp), JAEGER_CHANGES).await;
}

#[tokio::test]
async fn documents_of_every_writer_are_read() {
    let cases: [(_, _, fn(&mut Content)); 3] = [
        (OPENSEARCH, DATA_PREPPER, |it| DATA_PREPPER.change(it)),
        (OPENSEARCH, SIMPLE_SCHEMA, |it| SIMPLE_SCHEMA.change(it)),
        (ELASTICSEARCH, OTEL_MODE, |it| OTEL_MODE.change(it)),
    ];
    for (node, writer, changes) in cases {
        let Some(url) = node.url() else { continue };
        let index = writer.make_index(node).await;
        let client = open(node.kind, &url, Some(&format!("{index}*")));
        let subject = Subject { client, intake: writer.intake(node, index), changes };
        gives_back_what_it_was_sent(&subject, writer.changes).await;
    }
}

#[tokio::test]
async fn opensearch_gives_back_a_large_trace_of_jaeger() {
    let Some(jaeger) = OPENSEARCH.jaeger().await else { return };
    conformance::a_large_trace(&jaeger_subject(OPENSEARCH, &jaeger.otlp)).await;
}

#[tokio::test]
async fn elasticsearch_gives_back_a_large_trace() {
    let Some(url) = ELASTICSEARCH.url() else { return };
    let index = OTEL_MODE.make_index(ELASTICSEARCH).await;
    let client = open(ELASTICSEARCH.kind, &url, Some(&index));
    let intake = OTEL_MODE.intake(ELASTICSEARCH, index);
    conformance::a_large_trace(&Subject { client, intake, changes: |_| () }).await;
}

#[tokio::test]
async fn the_indices_of_known_writers_are_found_without_a_name() {
    for (node, writer) in [(OPENSEARCH, SIMPLE_SCHEMA), (ELASTICSEARCH, OTEL_MODE)] {
        let Some(url) = node.url() else { continue };
        let (sent, index) = (flat(fresh(), 3), writer.make_index(node).await);
        let client = open(node.kind, &url, None);
        let subject = Subject { client, intake: writer.intake(node, index), changes: |_| () };
        subject.intake.send(&sent).await;
        subject.shown(sent.id(), 3).await;
    }
}

#[tokio::test]
async fn a_trace_in_indices_of_two_writers_is_one_trace() {
    let Some(url) = OPENSEARCH.url() else { return };
    let trace = flat(fresh(), 10);
    let mut names = Vec::new();
    for (writer, is_first) in [(DATA_PREPPER, true), (SIMPLE_SCHEMA, false)] {
        let part = trace.only(|span| (span.name() < "span 5") == is_first).expect("room");
        let index = writer.make_index(OPENSEARCH).await;
        OPENSEARCH.add(&index, &writer.documents(&part)).await;
        names.push(index);
    }
    let client = open(OPENSEARCH.kind, &url, Some(&names.join(",")));
    let subject = Subject { client, intake: Intake::Otlp(String::new()), changes: |_| () };
    let shown = subject.shown(trace.id(), 10).await;
    assert_eq!(conformance::told(&shown), "1 messages, Complete");
}

async fn cut_answers(node: SearchNode, writer: DocumentWriter) {
    let Some(url) = node.url() else { return };
    let index = writer.make_index(node).await;
    let query = url.trim_start_matches("http://").parse().expect("an address");
    let intake = writer.intake(node, index.clone());
    let open = |at: SocketAddr| open(node.kind, &format!("http://{at}"), Some(&index));
    conformance::cut_answers((query, intake), open).await;
}

#[tokio::test]
async fn an_answer_of_opensearch_that_is_cut_or_held_is_no_answer() {
    cut_answers(OPENSEARCH, DATA_PREPPER).await;
}

#[tokio::test]
async fn an_answer_of_elasticsearch_that_is_cut_or_held_is_no_answer() {
    cut_answers(ELASTICSEARCH, OTEL_MODE).await;
}
