//! Tempo, a real one.

use std::{net::SocketAddr, time::Duration};

use drivers::store::{StoreClient, StoreDialer};
use model::{StoreConfig, Tls};
use tokio::time::{Instant, sleep};

use crate::{
    conformance::{self, Subject},
    sample::{Content, address, content, decoded, fresh, full, send},
};

fn open(url: String) -> StoreClient {
    let config = StoreConfig {
        name: "prod".to_owned(),
        kind: "tempo".to_owned(),
        url,
        is_grpc: false,
        headers: Vec::new(),
        credentials: None,
        tls: Tls::default(),
        index: None,
        lag: None,
    };
    StoreDialer::new(&[], None).open(&config).expect("it can be queried")
}

/// Returns the installed Tempo.
fn subject(changes: fn(&mut Content)) -> Option<Subject> {
    let client = open(address("QUALITYTRACE_TEST_TEMPO")?);
    Some(Subject { client, otlp: address("QUALITYTRACE_TEST_TEMPO_OTLP")?, changes })
}

fn without_flags(content: &mut Content) {
    for (span, ..) in content {
        span.flags = 0;
    }
}

#[tokio::test]
async fn tempo_gives_back_what_it_was_sent() {
    let Some(subject) = subject(|_| ()) else { return };
    conformance::an_unknown_trace(&subject).await;
    conformance::a_trace_that_grows(&subject).await;
    conformance::answers_that_repeat(&subject).await;
}

#[tokio::test]
async fn tempo_loses_the_flags_of_a_trace_that_left_its_memory() {
    let Some(subject) = subject(without_flags) else { return };
    let sent = full(fresh());
    send(&subject.otlp, &sent).await;
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let result = subject.client.store.query(sent.id(), None).await;
        let mut found = decoded(sent.id(), &result);
        let mut expected = content(&sent);
        let has_lost = !found.is_empty() && found != expected;
        without_flags(&mut found);
        without_flags(&mut expected);
        assert!(found.is_empty() || found == expected, "{found:#?}");
        if has_lost {
            return;
        }
        assert!(Instant::now() < end, "the flags are still there");
        // Tempo decides when a trace leaves its memory, and reports nothing.
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn tempo_gives_back_a_large_trace() {
    let Some(subject) = subject(|_| ()) else { return };
    conformance::a_large_trace(&subject).await;
}

#[tokio::test]
async fn an_answer_of_tempo_that_is_cut_or_held_is_no_answer() {
    let (Some(query), Some(otlp)) =
        (address("QUALITYTRACE_TEST_TEMPO"), address("QUALITYTRACE_TEST_TEMPO_OTLP"))
    else {
        return;
    };
    let query = query.trim_start_matches("http://").parse().expect("an address");
    conformance::cut_answers((query, &otlp), |at: SocketAddr| open(format!("http://{at}"))).await;
}
