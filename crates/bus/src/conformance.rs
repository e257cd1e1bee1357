//! The conformance suite of [`Bus`], which the tests of each implementation run.
//!
//! The suite publishes, forgets, closes the bus by dropping it, and opens it again at the same location, so that it checks the
//! data that must outlive the process. A batch may be delivered again; the suite accepts that only where the trait allows it.

use std::{future::Future, pin::pin, task::Poll, time::Duration};

use bytes::Bytes;
use model::{BusSlot, Project, Timestamp, TraceId};

use crate::{Batch, Bus, Channel, Doubt, Next, Signal, Subject};

/// The properties of the bus under test that the suite needs.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The size in bytes of a batch that is too large for any trace, and no reason to refuse others.
    pub too_many_bytes: usize,
    /// A number of spans that is too large for any trace.
    pub too_many_spans: u32,
    /// A number of batches of `batch_bytes`, each of its own trace, that exceeds the memory of the bus.
    pub too_many_batches: u32,
    /// A number of such batches that exceeds the storage of the bus, so that it refuses.
    pub refused_batches: u32,
    /// The size of each of them in bytes.
    pub batch_bytes: usize,
    /// How long a trace without a subscriber is kept.
    pub age_max: Duration,
    /// Whether several processes share the bus. It then listens while one of them is closed, and what a process forgets stays in
    /// the storage of the bus for some time.
    pub is_shared: bool,
}

/// The timeout for a subscriber to receive a stored batch.
const SOON: Duration = Duration::from_secs(10);

/// The start time of the suite, by its own clock.
const BEGIN: u64 = 1_800_000_000;

/// Runs the suite. `open` opens the bus, at the same location each time, and returns it with its slot, which may be another one
/// each time; the location is empty at first, and the bus before is closed.
pub async fn conforms<B: Bus>(facts: Facts, open: impl AsyncFn(Timestamp) -> (B, BusSlot)) {
    let mut stage = Stage { facts, secs: BEGIN, ids: 0, slot: BusSlot::default() };
    let bus = stage.open(&open).await;
    stage.what_is_kept_comes_first_and_then_the_new(&bus).await;
    stage.a_waiting_subscriber_is_woken_by_news_and_by_the_end(&bus).await;
    stage.what_comes_after_a_forget_is_another_trace(&bus).await;
    stage.what_one_publisher_publishes_stays_in_order(&bus).await;
    stage.what_a_trace_cannot_hold_is_lost_to_it_alone(&bus).await;
    stage.whole_is_what_was_expected_and_nothing_lost(&bus).await;
    stage.what_is_proved_is_here(&bus).await;
    stage.a_sender_reaches_its_projects_only(&bus).await;
    stage.unreadable_exports_and_log_records_are_counted(&bus).await;
    stage.what_has_no_subscriber_ages(&bus).await;
    stage.hints_reach_those_who_listen(&bus).await;
    let bus = stage.what_was_acknowledged_outlives_the_bus(bus, &open).await;
    stage.what_has_no_subscriber_makes_room(&bus).await;
    stage.a_project_that_has_its_share_holds_up_no_other(&bus).await;
    // A shared bus stays full.
    stage.a_full_bus_refuses_and_keeps_what_it_has(&bus).await;
}

struct Stage {
    facts: Facts,
    secs: u64,
    ids: u32,
    /// The slot of the open bus.
    slot: BusSlot,
}

impl Stage {
    async fn open<B: Bus>(&mut self, open: &impl AsyncFn(Timestamp) -> (B, BusSlot)) -> B {
        let (bus, slot) = open(self.now()).await;
        self.slot = slot;
        bus
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.secs * 1_000_000_000)
    }

    fn later(&mut self, by: Duration) {
        self.secs += by.as_secs();
    }

    /// Returns the channel of a new trace, as this bus mints it.
    fn trace(&mut self) -> Channel {
        self.ids += 1;
        let mut id = [0xc0; 16];
        id[..4].copy_from_slice(&self.ids.to_be_bytes());
        Channel { slot: self.slot, trace: TraceId::from_bytes(id).expect("not all zero") }
    }

    async fn publish<B: Bus>(&self, bus: &B, trace: Channel, texts: &[&str]) {
        let batches = texts.iter().map(|text| batch(trace, text.as_bytes().to_vec())).collect();
        bus.publish(self.now(), batches).await.expect("there is room");
    }

    async fn what_is_kept_comes_first_and_then_the_new<B: Bus>(&mut self, bus: &B) {
        let (trace, other) = (self.trace(), self.trace());
        self.publish(bus, trace, &["a", "b"]).await;
        self.publish(bus, other, &["x"]).await;
        let mut early = subscribe(bus, trace);
        assert_eq!(read(&mut early, 2).await, ["a", "b"]);
        assert!(is_waiting(&mut early).await, "there is no more");
        self.publish(bus, trace, &["c"]).await;
        assert_eq!(read(&mut early, 1).await, ["c"]);
        let mut late = subscribe(bus, trace);
        assert_eq!(read(&mut late, 3).await, ["a", "b", "c"], "each has a place of its own");
        bus.publish(self.now(), vec![batch(trace, Vec::new())]).await.expect("nothing is taken");
        assert!(is_waiting(&mut late).await, "and tells nobody anything");
    }

    async fn a_waiting_subscriber_is_woken_by_news_and_by_the_end<B: Bus>(&mut self, bus: &B) {
        let trace = self.trace();
        let mut waiting = subscribe(bus, trace);
        let (got, ()) = tokio::join!(read(&mut waiting, 1), self.publish(bus, trace, &["a"]));
        assert_eq!(got, ["a"]);
        let (got, ()) = tokio::join!(soon(waiting.next()), async { bus.forget(trace) });
        assert_eq!(got, None);
    }

    async fn what_comes_after_a_forget_is_another_trace<B: Bus>(&mut self, bus: &B) {
        let trace = self.trace();
        let mut before = subscribe(bus, trace);
        self.publish(bus, trace, &["a"]).await;
        assert_eq!(soon(bus.proved(trace)).await, Err(Doubt::NotListened), "and it is here");
        bus.forget(trace);
        self.publish(bus, trace, &["b"]).await;
        assert_eq!(soon(before.next()).await, None, "a forget ends a subscription for good");
        drop(before);
        assert_eq!(read(&mut subscribe(bus, trace), 1).await, ["b"]);
    }

    async fn what_one_publisher_publishes_stays_in_order<B: Bus>(&mut self, bus: &B) {
        let trace = self.trace();
        let publisher = async |name: &str| {
            for number in 0..20 {
                let text = format!("{name}{number}");
                self.publish(bus, trace, &[&text]).await;
            }
        };
        tokio::join!(publisher("a"), publisher("b"), publisher("c"));
        let got = read(&mut subscribe(bus, trace), 60).await;
        for name in ["a", "b", "c"] {
            let of_one: Vec<_> = got.iter().filter(|text| text.starts_with(name)).collect();
            let expected: Vec<_> = (0..20).map(|number| format!("{name}{number}")).collect();
            assert_eq!(of_one, expected.iter().collect::<Vec<_>>());
        }
        bus.forget(trace);
    }

    async fn what_a_trace_cannot_hold_is_lost_to_it_alone<B: Bus>(&mut self, bus: &B) {
        let (large, many, small) = (self.trace(), self.trace(), self.trace());
        let subscriptions = [large, many, small].map(|trace| subscribe(bus, trace));
        let batches = vec![
            batch(large, vec![b'x'; self.facts.too_many_bytes]),
            Batch { spans: self.facts.too_many_spans, ..batch(many, b"x".to_vec()) },
            batch(small, b"fits".to_vec()),
        ];
        let published = bus.publish(self.now(), batches).await;
        published.expect("to publish again what can never be held would not help");
        let _listened = bus.proved(small).await;
        let lost = Some(Doubt::Lost(1));
        let expected = [lost.clone(), lost, Some(Doubt::NotListened)];
        assert_eq!([large, many, small].map(|trace| bus.doubt(trace)), expected);
        assert_eq!(read(&mut subscribe(bus, small), 1).await, ["fits"]);
        drop(subscriptions);
    }

    async fn whole_is_what_was_expected_and_nothing_lost<B: Bus>(&mut self, bus: &B) {
        let (whole, lost, unexpected) = (self.trace(), self.trace(), self.trace());
        let subscriptions = [whole, lost, unexpected].map(|trace| subscribe(bus, trace));
        for trace in [whole, lost] {
            bus.expect(trace);
        }
        for trace in [whole, lost, unexpected] {
            self.publish(bus, trace, &["a"]).await;
        }
        bus.lose(self.now(), lost);
        assert_eq!(soon(bus.proved(whole)).await, Ok(1));
        assert_eq!(soon(bus.proved(lost)).await, Err(Doubt::Lost(1)));
        assert_eq!(soon(bus.proved(unexpected)).await, Err(Doubt::NotListened));
        for trace in [whole, lost, unexpected] {
            assert_eq!(bus.doubt(trace), bus.proved(trace).await.err());
        }
        drop(subscriptions);
        let again = subscribe(bus, whole);
        assert_eq!(soon(bus.proved(whole)).await, Ok(1), "another run goes on, nothing was missed");
        drop(again);
        bus.forget(whole);
        assert_eq!(bus.doubt(whole), Some(Doubt::NotListened), "nothing is known of it any more");
    }

    /// What is proved is what a subscriber can read without waiting.
    async fn what_is_proved_is_here<B: Bus>(&mut self, bus: &B) {
        let trace = self.trace();
        let mut subscription = subscribe(bus, trace);
        bus.expect(trace);
        assert_eq!(soon(bus.proved(trace)).await, Ok(0), "that nothing came is a proof too");
        for number in 1..=50_u64 {
            self.publish(bus, trace, &[&number.to_string()]).await;
            assert_eq!(soon(bus.proved(trace)).await, Ok(number));
            assert!(!is_waiting(&mut subscription).await, "{number}");
        }
        let publish = self.publish(bus, trace, &["51"]);
        let proofs = [(); 20].map(|()| bus.proved(trace));
        let (_, proved) = tokio::join!(publish, async {
            let mut proved = Vec::new();
            for proof in proofs {
                proved.push(soon(proof).await);
            }
            proved
        });
        assert!(proved.iter().all(|it| matches!(it, Ok(50 | 51))), "{proved:?}");
        bus.forget(trace);
    }

    async fn a_sender_reaches_its_projects_only<B: Bus>(&mut self, bus: &B) {
        let trace = self.trace();
        let [alpha, beta]: [Project; 2] =
            ["alpha", "beta"].map(|name| name.parse().expect("a name"));
        let mut subscription = bus.subscribe(trace, &alpha);
        bus.expect(trace);
        let all = vec![beta.clone(), alpha];
        for (text, projects) in [("a", Some(vec![beta])), ("b", None), ("c", Some(all))] {
            let projects = projects.map(Into::into);
            let batch = Batch { projects, ..batch(trace, text.as_bytes().to_vec()) };
            bus.publish(self.now(), vec![batch]).await.expect("its sender learns nothing");
        }
        assert_eq!(soon(bus.proved(trace)).await, Ok(2), "and nothing is in doubt");
        assert_eq!(read(&mut subscription, 2).await, ["b", "c"]);
        bus.forget(trace);
    }

    async fn unreadable_exports_and_log_records_are_counted<B: Bus>(&mut self, bus: &B) {
        let (trace, other) = (self.trace(), self.trace());
        let [alpha, beta]: [Project; 2] =
            ["alpha", "beta"].map(|name| name.parse().expect("a name"));
        let unread = || [&alpha, &beta].map(|project| bus.unread(Signal::Spans, project));
        let before = unread();
        bus.lose_unread(Signal::Spans, Some(std::slice::from_ref(&alpha)));
        bus.lose_unread(Signal::Spans, None);
        bus.lose_unread(Signal::Logs, Some(std::slice::from_ref(&beta)));
        assert_eq!(unread(), [before[0] + 2, before[1] + 1]);
        bus.log(trace);
        bus.log(trace);
        soon(bus.flush()).await.expect("there is room");
        assert_eq!([trace, other].map(|trace| bus.logs(trace)), [2, 0]);
        assert_eq!(unread(), [before[0] + 2, before[1] + 1], "each counts once");
    }

    async fn what_has_no_subscriber_ages<B: Bus>(&mut self, bus: &B) {
        let (old, subscribed, fresh) = (self.trace(), self.trace(), self.trace());
        self.publish(bus, old, &["a"]).await;
        self.publish(bus, subscribed, &["a"]).await;
        let mut subscription = subscribe(bus, subscribed);
        self.later(self.facts.age_max + Duration::from_secs(1));
        self.publish(bus, fresh, &["a"]).await;
        assert_eq!(read(&mut subscribe(bus, fresh), 1).await, ["a"], "new");
        assert!(is_waiting(&mut subscribe(bus, old)).await, "nobody asked for it in time");
        assert_eq!(read(&mut subscription, 1).await, ["a"], "subscribed to");
    }

    async fn hints_reach_those_who_listen<B: Bus>(&mut self, bus: &B) {
        let subject = |number: u32| Subject(format!("subject {number}"));
        bus.hint(subject(0));
        let (mut one, mut other) = (bus.hints(), bus.hints());
        bus.hint(subject(1));
        assert_eq!(soon(one.next()).await, Some(subject(1)), "from its start on");
        assert_eq!(soon(other.next()).await, Some(subject(1)), "every listener");
        bus.set_available(true);
        bus.hint_one(subject(2));
        assert_eq!(soon(one.next()).await, Some(subject(2)), "who sends it is available");
    }

    async fn what_was_acknowledged_outlives_the_bus<B: Bus>(
        &mut self,
        bus: B,
        open: &impl AsyncFn(Timestamp) -> (B, BusSlot),
    ) -> B {
        let (kept, forgotten, anew) = (self.trace(), self.trace(), self.trace());
        let subscription = subscribe(&bus, kept);
        bus.expect(kept);
        for trace in [kept, forgotten, anew] {
            self.publish(&bus, trace, &["a", "b"]).await;
        }
        bus.forget(forgotten);
        bus.forget(anew);
        self.publish(&bus, kept, &["c"]).await;
        self.publish(&bus, anew, &["c"]).await;
        let state = bus.state(kept);
        assert_eq!(state.is_some(), self.facts.is_shared);
        drop(subscription);
        drop(bus);

        let bus = self.open(open).await;
        let mut again = subscribe(&bus, kept);
        bus.resume(kept, self.now(), state.as_deref());
        assert_eq!(read(&mut again, 3).await, ["a", "b", "c"]);
        assert!(is_waiting(&mut again).await, "and each of them once");
        if self.facts.is_shared {
            assert_eq!(soon(bus.proved(kept)).await, Ok(3), "others have listened");
        } else {
            assert_eq!(soon(bus.proved(kept)).await, Err(Doubt::NotListened));
            assert!(is_waiting(&mut subscribe(&bus, forgotten)).await, "it stays forgotten");
            assert_eq!(read(&mut subscribe(&bus, anew), 1).await, ["c"], "but for what came later");
        }
        self.publish(&bus, kept, &["d"]).await;
        assert_eq!(read(&mut again, 1).await, ["d"], "it goes on where it was");
        drop(again);
        drop(bus);

        let bus = self.open(open).await;
        let mut again = subscribe(&bus, kept);
        bus.resume(kept, self.now(), Some("another"));
        assert_eq!(read(&mut again, 4).await, ["a", "b", "c", "d"]);
        assert_eq!(soon(bus.proved(kept)).await, Err(Doubt::NotListened), "the state is another");
        bus.forget(kept);
        bus.forget(anew);
        bus
    }

    async fn a_full_bus_refuses_and_keeps_what_it_has<B: Bus>(&mut self, bus: &B) {
        let first = self.trace();
        let mut subscription = subscribe(bus, first);
        bus.expect(first);
        self.publish(bus, first, &["a"]).await;
        let mut traces = Vec::new();
        let mut refused = None;
        while refused.is_none() && traces.len() < self.facts.refused_batches as usize {
            let trace = self.trace();
            // Each trace has its own project: none exceeds its share.
            let project = format!("project-{}", traces.len()).parse().expect("a name");
            traces.push((trace, bus.subscribe(trace, &project)));
            bus.expect(trace);
            let large = batch(trace, vec![b'x'; self.facts.batch_bytes]);
            refused = bus.publish(self.now(), vec![large]).await.err();
        }
        refused.expect("it is full");
        let (last, subscription_of_last) = traces.pop().expect("something was published");
        assert_eq!(bus.doubt(last), Some(Doubt::Refused(1)), "the trace is told");
        assert_eq!(read(&mut subscription, 1).await, ["a"]);
        assert_eq!(bus.doubt(first), None, "another's want of room is not its own");
        for (trace, _) in &traces {
            bus.forget(*trace);
        }
        if !self.facts.is_shared {
            self.publish(bus, first, &["b"]).await;
            assert_eq!(read(&mut subscription, 1).await, ["b"], "the forgotten made room");
            self.publish(bus, last, &["b"]).await;
            assert_eq!(bus.doubt(last), Some(Doubt::Refused(1)), "another batch is no repetition");
            let large = batch(last, vec![b'x'; self.facts.batch_bytes]);
            bus.publish(self.now(), vec![large]).await.expect("there is room");
            assert_eq!(soon(bus.proved(last)).await, Ok(2), "it was sent again");
        }
        drop(subscription_of_last);
        bus.forget(last);
        bus.forget(first);
    }

    async fn what_has_no_subscriber_makes_room<B: Bus>(&mut self, bus: &B) {
        let waiting = self.trace();
        let mut subscription = subscribe(bus, waiting);
        bus.expect(waiting);
        self.publish(bus, waiting, &["a"]).await;
        for _ in 0..self.facts.too_many_batches {
            let batch = batch(self.trace(), vec![b'x'; self.facts.batch_bytes]);
            bus.publish(self.now(), vec![batch]).await.expect("an older one gives way");
        }
        self.publish(bus, waiting, &["b"]).await;
        assert_eq!(read(&mut subscription, 2).await, ["a", "b"]);
        assert_eq!(bus.doubt(waiting), None, "and nothing of what somebody waits for");
        bus.forget(waiting);
    }

    async fn a_project_that_has_its_share_holds_up_no_other<B: Bus>(&mut self, bus: &B) {
        let other = self.trace();
        let name = "other".parse().expect("a name");
        let mut subscription = bus.subscribe(other, &name);
        bus.expect(other);
        let mut traces = Vec::new();
        while traces
            .last()
            .is_none_or(|(trace, _)| !matches!(bus.doubt(*trace), Some(Doubt::Lost(_))))
        {
            assert!(traces.len() < self.facts.too_many_batches as usize, "it has no end");
            let trace = self.trace();
            traces.push((trace, subscribe(bus, trace)));
            let both = [(trace, self.facts.batch_bytes), (other, 1)];
            let both = both.map(|(trace, bytes)| batch(trace, vec![b'x'; bytes]));
            bus.publish(self.now(), both.into()).await.expect("who sends it is not made to wait");
            soon(bus.proved(other)).await.expect("its share is its own");
        }
        assert_eq!(read(&mut subscription, traces.len()).await.len(), traces.len());
        assert_eq!(soon(bus.proved(other)).await, Ok(traces.len() as u64));
        for (trace, _) in &traces {
            bus.forget(*trace);
        }
        bus.forget(other);
    }
}

fn subscribe<B: Bus>(bus: &B, channel: Channel) -> B::Subscription {
    bus.subscribe(channel, &Project::default())
}

fn batch(channel: Channel, bytes: Vec<u8>) -> Batch {
    Batch { channel, spans: 1, bytes: Bytes::from(bytes), projects: None, owner: None }
}

/// Reads the next `batches` batches.
async fn read(subscription: &mut impl Next, batches: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..batches {
        let bytes = soon(subscription.next()).await.expect("the trace is not forgotten");
        texts.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    texts
}

/// Whether there is nothing to read now.
async fn is_waiting(subscription: &mut impl Next) -> bool {
    let mut next = pin!(subscription.next());
    std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_pending())).await
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("it comes soon")
}
