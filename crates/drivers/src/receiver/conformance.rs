//! The requirements of every [`Sink`], as a suite that the tests of each implementation run.

use std::future::Future;

use bytes::Bytes;
use model::TraceId;
use otlp::Batch;

use super::{LostSignal, Sender, Sink};

/// The facts about the sink that the suite needs.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// A trace that the sink waits for.
    pub wanted: TraceId,
    /// A trace that it does not wait for.
    pub foreign: TraceId,
    /// More bytes than the sink accepts for one trace.
    pub too_many_bytes: usize,
}

/// Runs the suite on an empty sink. `held` returns this many batches that the sink delivers for the wanted trace; `lost`
/// returns how many losses of the trace the sink has counted.
pub async fn conforms<S, F>(
    sink: &S,
    facts: Facts,
    held: impl FnOnce(usize) -> F,
    lost: impl Fn() -> u64,
) where
    S: Sink,
    F: Future<Output = Vec<Bytes>>,
{
    let sender = &Sender::of_all();
    let batch = |bytes: Bytes| Batch { trace_id: facts.wanted, spans: 1, bytes };
    assert!(sink.wants(&facts.wanted, sender), "a trace that is waited for is wanted");
    assert!(!sink.wants(&facts.foreign, sender), "a foreign one is not");
    sink.accept(Vec::new(), sender).await.expect("nothing is always accepted");
    let [first, second] = ["first", "second"].map(Bytes::from);
    let both = vec![batch(first.clone()), batch(second.clone())];
    sink.accept(both, sender).await.expect("there is room");
    assert_eq!(lost(), 0, "so far all is held");
    sink.lost(&facts.wanted, sender);
    let told = lost();
    assert!(told > 0, "a loss that the sink is told of is known");
    sink.lost_unread(sender, LostSignal::Spans);
    assert!(lost() > told, "and so is one that may be anybody's");
    let told = lost();
    // A sender that did not receive the acknowledgement sends everything again, here after a batch that can never be accepted.
    let too_large = batch(Bytes::from(vec![0; facts.too_many_bytes]));
    let again = sink.accept(vec![too_large, batch(first.clone())], sender).await;
    again.expect("to offer again what can never be held would not help");
    assert!(lost() > told, "but it is known to be lost");
    assert_eq!(
        held(3).await,
        [first.clone(), second, first],
        "all that was accepted, in order, and no more"
    );
    assert!(sink.wants(&facts.wanted, sender), "a loss does not end the trace");
}
