//! Tempo, a real one.

use std::{net::SocketAddr, time::Duration};

use crate::{
    conformance::{self, Intake, Subject},
    sample::{self, address},
};
use drivers::store::StoreClient;

/// The time in which the Tempo of the tests writes a trace to its disk, which loses flags.
const MEMORY: Duration = Duration::from_secs(6);

fn open(url: String) -> StoreClient {
    sample::open(&sample::config("tempo", url))
}

/// Returns the installed Tempo.
fn subject() -> Option<Subject> {
    let client = open(address("QUALITYTRACE_TEST_TEMPO")?);
    let intake = Intake::Otlp(address("QUALITYTRACE_TEST_TEMPO_OTLP")?);
    Some(Subject { client, intake, changes: |_| () })
}

#[tokio::test]
async fn tempo_gives_back_what_it_was_sent() {
    let Some(subject) = subject() else { return };
    conformance::an_unknown_trace(&subject).await;
    conformance::what_was_sent(&subject).await;
    conformance::a_trace_that_grows(&subject).await;
    conformance::answers_that_repeat(&subject, MEMORY).await;
}

#[tokio::test]
async fn tempo_gives_back_a_large_trace() {
    let Some(subject) = subject() else { return };
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
    conformance::cut_answers((query, Intake::Otlp(otlp)), |at: SocketAddr| {
        open(format!("http://{at}"))
    })
    .await;
}
