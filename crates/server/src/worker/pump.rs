//! Passes spans from the bus to a run, and proves on demand that none is on its way.

use std::{
    future::{Future, pending},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use bus::{Bus, Channel, Doubt, Next};
use drivers::arrivals::{Arrival, Arrivals, Demand};
use model::Project;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::active_runs::RETRY;

/// The maximum number of batches between the bus and a run; the bus buffers the rest.
const ARRIVALS_MAX: usize = 16;

/// The longest pause between two proofs while a later one is needed: each queries all servers.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Subscribes to a channel. Returns the task that passes on its spans, and where they arrive. `note` gets the time of each proof, and
/// the doubt if it failed; `counts` decides whether a proof that began then counts, or a later one is needed.
pub(super) fn pump<B, N, C, F>(
    bus: &Arc<B>,
    channel: Channel,
    project: &Project,
    (note, counts): (N, C),
) -> (impl Future<Output = ()> + Send + use<B, N, C, F>, Arrivals)
where
    B: Bus,
    N: Fn(Duration, Option<&Doubt>) + Send + Sync,
    C: Fn(Instant) -> F + Send + Sync,
    F: Future<Output = bool> + Send,
{
    let (sender, receiver) = mpsc::channel(ARRIVALS_MAX);
    let (demands, demand) = watch::channel(Demand::default());
    let pump = Pump {
        bus: Arc::clone(bus),
        channel,
        subscription: bus.subscribe(channel, project),
        sender,
        demand,
        passed: 0,
        proved: None,
        again: None,
        pause: RETRY,
        note,
        counts,
    };
    let pump = async move {
        // The end of the run, or of the trace, ends it.
        let _end = pump.run().await;
    };
    (pump, Arrivals::with_proofs(receiver, demands))
}

struct Pump<B: Bus, N, C> {
    bus: Arc<B>,
    channel: Channel,
    subscription: B::Subscription,
    sender: mpsc::Sender<Arrival>,
    demand: watch::Receiver<Demand>,
    /// The number of batches that were passed on.
    passed: u64,
    /// The time up to which absence is proved.
    proved: Option<Instant>,
    /// The time before which no further proof is tried.
    again: Option<Instant>,
    /// How long to wait if the next proof does not count.
    pause: Duration,
    note: N,
    counts: C,
}

/// The run receives no more, or the trace was forgotten.
struct PumpEnd;

impl<B, N, C, F> Pump<B, N, C>
where
    B: Bus,
    N: Fn(Duration, Option<&Doubt>) + Send + Sync,
    C: Fn(Instant) -> F + Send + Sync,
    F: Future<Output = bool> + Send,
{
    async fn run(mut self) -> Result<(), PumpEnd> {
        loop {
            let wanted = self.wanted();
            tokio::select! {
                biased;
                batch = self.subscription.next() => self.pass(batch).await?,
                changed = self.demand.changed() => changed.map_err(|_| PumpEnd)?,
                () = until(wanted) => self.prove().await?,
            }
        }
    }

    /// Returns the time that the run wants to be covered and that is not.
    fn wanted(&self) -> Option<Instant> {
        match *self.demand.borrow() {
            Demand::Spans { until: Some(until), .. } if self.proved.is_none_or(|at| at < until) => {
                Some(self.again.map_or(until, |again| again.max(until)))
            }
            Demand::Spans { .. } => None,
            Demand::Nothing | Demand::LateSpans { .. } => None,
        }
    }

    async fn pass(&mut self, batch: Option<bytes::Bytes>) -> Result<(), PumpEnd> {
        let batch = batch.ok_or(PumpEnd)?;
        self.passed += 1;
        self.send(Arrival::pushed(batch)).await
    }

    /// Proves that all batches until now are passed on, or reports why that is not known.
    async fn prove(&mut self) -> Result<(), PumpEnd> {
        let (bus, began) = (Arc::clone(&self.bus), Instant::now());
        let mut proof = pin!(bus.proved(self.channel));
        let proved = loop {
            tokio::select! {
                biased;
                batch = self.subscription.next() => self.pass(batch).await?,
                proved = &mut proof => break proved,
            }
        };
        (self.note)(began.elapsed(), proved.as_ref().err());
        let batches = match proved {
            Ok(batches) if (self.counts)(began).await => batches,
            Ok(_) => {
                self.again = Some(Instant::now() + self.pause);
                self.pause = (2 * self.pause).min(PAUSE_MAX);
                return Ok(());
            }
            // The run counts losses by itself. A refused batch may come again, which is worth waiting for.
            Err(doubt) if doubt.is_loss() && doubt.is_lasting() => 0,
            Err(doubt) => return self.doubt(doubt, began).await,
        };
        while self.passed < batches {
            let batch = self.subscription.next().await;
            self.pass(batch).await?;
        }
        (self.proved, self.pause) = (Some(began), RETRY);
        self.send(Arrival::Proof { began }).await
    }

    async fn doubt(&mut self, doubt: Doubt, began: Instant) -> Result<(), PumpEnd> {
        let is_lasting = doubt.is_lasting();
        self.send(Arrival::Doubt { reason: doubt.to_string(), is_lasting }).await?;
        match is_lasting {
            true => self.proved = Some(began),
            false => self.again = Some(Instant::now() + RETRY),
        }
        Ok(())
    }

    async fn send(&mut self, arrival: Arrival) -> Result<(), PumpEnd> {
        self.sender.send(arrival).await.map_err(|_| PumpEnd)
    }
}

/// Waits until a time; forever if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use bus::{Batch, Bus, Channel, Limits, Local, Options, SealKeys};
    use drivers::arrivals::{Arrival, Arrivals};
    use model::{BusSlot, Project, Timestamp, TraceId};
    use tokio::{
        task::JoinSet,
        time::{Instant, timeout},
    };

    use super::pump;

    fn channel() -> Channel {
        let trace = TraceId::from_bytes([7; 16]).expect("not all zero");
        Channel { slot: BusSlot(0), trace }
    }

    async fn publish(bus: &Local, text: &'static str) {
        let batch = Batch {
            channel: channel(),
            spans: 1,
            bytes: text.as_bytes().into(),
            projects: None,
            owner: None,
        };
        bus.publish(Timestamp::from_nanos(0), vec![batch]).await.expect("room");
    }

    /// Reads arrivals until a proof, or until nothing comes.
    async fn until_proof(arrivals: &mut Arrivals) -> (Vec<String>, Option<Instant>) {
        let mut texts = Vec::new();
        while let Ok(Some(arrival)) = timeout(Duration::from_secs(2), arrivals.next()).await {
            match arrival {
                Arrival::Proof { began } => return (texts, Some(began)),
                other => texts.push(other.spans().map_or_else(String::new, |bytes| {
                    String::from_utf8_lossy(&bytes).into_owned()
                })),
            }
        }
        (texts, None)
    }

    #[tokio::test]
    async fn a_proof_comes_behind_all_that_was_accepted_before_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            directory: folder.path().to_owned(),
            limits: Limits::default(),
            batch_bytes_max: 1 << 20,
            keys: SealKeys::new([1; 32], Vec::new(), [2; 16]),
        };
        let bus = Arc::new(Local::open(options, Timestamp::from_nanos(0)).expect("it is there"));
        let (pump, mut arrivals) =
            pump(&bus, channel(), &Project::default(), (|_, _| (), |_| std::future::ready(true)));
        bus.expect(channel());
        // More than the channel to the run holds.
        for _ in 0..50 {
            publish(&bus, "a").await;
        }
        let mut pumps = JoinSet::new();
        pumps.spawn(pump);
        arrivals.start(None);
        let wanted = Instant::now() + Duration::from_millis(20);
        arrivals.want(wanted);
        publish(&bus, "b").await;
        let (texts, proved) = until_proof(&mut arrivals).await;
        assert_eq!((texts.len(), texts.last().map(String::as_str)), (51, Some("b")));
        assert!(proved.is_some_and(|began| began >= wanted), "{proved:?}");
        assert_eq!(until_proof(&mut arrivals).await, (vec![], None), "once is enough");
        arrivals.want(Instant::now());
        assert!(until_proof(&mut arrivals).await.1.is_some(), "and again for a later time");
        bus.forget(channel());
        assert!(arrivals.next().await.is_none(), "a forgotten trace brings nothing more");
    }
}
