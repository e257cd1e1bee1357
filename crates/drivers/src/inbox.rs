//! The in-memory inbox of spans, by trace, for a run without a server.
//!
//! Each trace has a channel. Spans that arrive before the run requests them wait in the channel. Spans that arrive after the
//! run dropped its [`Arrivals`] are discarded. A full inbox refuses, so that senders keep their spans and retry. The cost of a
//! batch does not depend on the number of traces.
//!
//! Several runs may wait for an external trace id, such as all tests of one browser session: each gets all its spans, including
//! those that arrived earlier, as long as one of them holds it.
//!
//! Deliberately absent: anything that outlives the process.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use model::{KeyRing, TraceId};
use otlp::Batch;
use tokio::sync::{Semaphore, mpsc};

use crate::{
    arrivals::{Arrival, Arrivals},
    receiver::{LostSignal, Sender, Sink, SinkError},
};

/// The upper bounds of an inbox.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Traces that a run waits for, that wait for a run, or that are remembered as over.
    pub traces_max: usize,
    /// Bytes of one trace, over its complete lifetime.
    pub trace_bytes_max: usize,
    /// Bytes of all traces that are not over.
    pub bytes_max: usize,
    /// Messages of one trace that wait to be decoded.
    pub messages_max: usize,
}

/// Spans of traces that this process minted, or that a run requested by their id, until the run receives them.
#[derive(Debug)]
pub struct Inbox {
    shared: Arc<InboxState>,
}

/// The state that an inbox shares with its [`Arrivals`].
#[derive(Debug)]
struct InboxState {
    ring: KeyRing,
    limits: Limits,
    /// External trace ids that runs wait for. Almost always there are none, and then no foreign span needs a lock.
    foreign_expected: AtomicUsize,
    /// Unreadable exports of spans, which may belong to any trace.
    unread: AtomicU64,
    /// Unreadable exports of log records.
    unread_logs: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<TraceId, Slot>,
    /// The traces that are over, the oldest first, to evict when space is needed.
    over: VecDeque<(TraceId, u64)>,
    /// Bytes of all slots that are not over.
    bytes: usize,
    /// The number of the newest claim.
    claims: u64,
}

#[derive(Debug)]
struct Slot {
    /// Empty when the trace is over, that is when every run has dropped its [`Arrivals`]. A trace that these keys minted has at
    /// most one reader.
    readers: Vec<Reader>,
    /// The receiving end of the channel, until a run requests it.
    unclaimed: Option<mpsc::Receiver<Arrival>>,
    /// The arrivals of an external trace id, for runs that request it later.
    kept: Vec<Arrival>,
    /// The newest claim.
    claim: u64,
    is_foreign: bool,
    bytes: usize,
    refused: u64,
    logs: u64,
    /// The number of unreadable exports when the slot was created.
    unread_before: u64,
    unread_logs_before: u64,
}

/// The channel through which a run receives its trace.
#[derive(Debug)]
struct Reader {
    claim: u64,
    sender: mpsc::Sender<Arrival>,
}

/// The claim of a run on a trace. When the last one is dropped, the trace is over.
#[derive(Debug)]
pub(crate) struct Claim {
    shared: Arc<InboxState>,
    trace_id: TraceId,
    number: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            traces_max: 4096,
            // A million spans of usual size.
            trace_bytes_max: 512 * 1024 * 1024,
            bytes_max: 1024 * 1024 * 1024,
            messages_max: 4096,
        }
    }
}

impl Inbox {
    /// Creates an inbox for trace ids that these keys minted.
    pub fn new(ring: KeyRing, limits: Limits) -> Self {
        Self {
            shared: Arc::new(InboxState {
                ring,
                limits,
                foreign_expected: AtomicUsize::default(),
                unread: AtomicU64::default(),
                unread_logs: AtomicU64::default(),
                state: Mutex::default(),
            }),
        }
    }

    /// Returns the spans of this trace: those that already arrived, then those that arrive later.
    ///
    /// The trace may have any id. Several runs can request an id that these keys did not mint, and each gets all spans that
    /// arrived since the first request.
    ///
    /// A minted id has only one reader. A second request starts afresh, and ends the earlier [`Arrivals`].
    pub fn expect(&self, trace_id: TraceId) -> Arrivals {
        let shared = &self.shared;
        let mut state = shared.state();
        state.claims += 1;
        let number = state.claims;
        let claim = Claim { shared: Arc::clone(shared), trace_id, number };
        if let Some(slot) = state.slots.get_mut(&trace_id) {
            if let Some(waiting) = slot.unclaimed.take() {
                slot.claim = number;
                slot.readers.iter_mut().for_each(|reader| reader.claim = number);
                return Arrivals::claimed(waiting, claim);
            }
            if slot.is_foreign && !slot.readers.is_empty() {
                return Arrivals::claimed(shared.join(slot, number), claim);
            }
        }
        shared.end(&mut state, trace_id, None);
        let (mut slot, receiver) = shared.slot(number);
        slot.is_foreign = shared.ring.verify(&trace_id).is_none();
        if slot.is_foreign {
            shared.foreign_expected.fetch_add(1, Ordering::Relaxed);
        }
        state.slots.insert(trace_id, slot);
        Arrivals::claimed(receiver, claim)
    }

    /// Ends all [`Arrivals`] of this trace: they receive no more spans.
    pub fn let_go(&self, trace_id: TraceId) {
        self.shared.end(&mut self.shared.state(), trace_id, None);
    }

    /// Returns the bytes of the spans of all traces that are not over.
    pub fn bytes(&self) -> usize {
        self.shared.state().bytes
    }

    /// Returns the log records of this trace since its slot was created, plus the unreadable exports of log records.
    pub fn logs(&self, trace_id: TraceId) -> u64 {
        let unread = self.shared.unread_logs.load(Ordering::Relaxed);
        let state = self.shared.state();
        let of = |slot: &Slot| slot.logs + unread - slot.unread_logs_before;
        state.slots.get(&trace_id).map_or(0, of)
    }

    /// Returns how often spans of this trace were refused, or reported as lost, since its slot was created.
    ///
    /// A sender may have retried refused spans with success, which the inbox cannot know: above zero, absence proves nothing.
    pub fn refused(&self, trace_id: TraceId) -> u64 {
        let unread = self.shared.unread.load(Ordering::Relaxed);
        let state = self.shared.state();
        state.slots.get(&trace_id).map_or(0, |slot| slot.refused + unread - slot.unread_before)
    }
}

impl InboxState {
    fn take(&self, batch: Batch) -> Result<(), SinkError> {
        let mut state = self.state();
        let held = state.bytes;
        let slot = self.slot_of(batch.trace_id, &mut state)?;
        // Without a reader, the run has dropped its arrivals since `wants` returned true.
        if slot.readers.is_empty() {
            return Ok(());
        }
        let size = batch.bytes.len();
        if slot.bytes + size > self.limits.trace_bytes_max {
            // A retry does not make a trace smaller.
            slot.refused += 1;
            return Ok(());
        }
        // All readers accept the batch or none does: the sender retries for all of them.
        let is_full = |reader: &Reader| reader.sender.capacity() == 0 && !reader.sender.is_closed();
        if held + size > self.limits.bytes_max || slot.readers.iter().any(is_full) {
            slot.refused += 1;
            return Err(full(batch.trace_id));
        }
        let arrival = Arrival::pushed(batch.bytes);
        let taken = slot.readers.iter().filter(|reader| {
            // Only a reader that is being dropped does not accept it.
            reader.sender.try_send(arrival.clone()).is_ok()
        });
        if taken.count() > 0 {
            slot.bytes += size;
            if slot.is_foreign {
                slot.kept.push(arrival);
            }
            state.bytes += size;
        }
        Ok(())
    }

    /// Returns the slot of this trace; creates it if it does not exist and there is room.
    fn slot_of<'a>(
        &self,
        trace_id: TraceId,
        state: &'a mut State,
    ) -> Result<&'a mut Slot, SinkError> {
        if !state.slots.contains_key(&trace_id) {
            self.make_room(state)?;
        }
        Ok(state.slots.entry(trace_id).or_insert_with(|| {
            let (mut slot, receiver) = self.slot(0);
            slot.unclaimed = Some(receiver);
            slot
        }))
    }

    /// Evicts traces that are over, once there are too many.
    fn make_room(&self, state: &mut State) -> Result<(), SinkError> {
        while state.slots.len() >= self.limits.traces_max {
            if !state.forget_oldest() {
                let reason = format!("{} traces are held already", state.slots.len());
                return Err(SinkError::Full(reason));
            }
        }
        Ok(())
    }

    /// Adds a reader of a trace, which also gets the earlier arrivals.
    fn join(&self, slot: &mut Slot, claim: u64) -> mpsc::Receiver<Arrival> {
        let (sender, receiver) = self.channel(slot.kept.len());
        for arrival in &slot.kept {
            // The channel has room for all of them.
            let _taken = sender.try_send(arrival.clone());
        }
        slot.claim = claim;
        slot.readers.push(Reader { claim, sender });
        receiver
    }

    /// Ends one claim on a trace, or all of them. A trace without a claim is over, and is remembered, so that late spans are
    /// not stored without a reader.
    fn end(&self, state: &mut State, trace_id: TraceId, claim: Option<u64>) {
        let Some(slot) = state.slots.get_mut(&trace_id) else { return };
        if slot.readers.is_empty() {
            return;
        }
        slot.readers.retain(|reader| claim.is_some_and(|claim| claim != reader.claim));
        if !slot.readers.is_empty() {
            return;
        }
        slot.kept = Vec::new();
        state.bytes -= slot.bytes;
        if slot.is_foreign {
            self.foreign_expected.fetch_sub(1, Ordering::Relaxed);
        }
        state.over.push_back((trace_id, slot.claim));
        if state.over.len() > self.limits.traces_max {
            // A run always gets a slot, so this is the only bound.
            state.forget_oldest();
        }
    }

    fn slot(&self, claim: u64) -> (Slot, mpsc::Receiver<Arrival>) {
        let (sender, receiver) = self.channel(0);
        let slot = Slot {
            readers: vec![Reader { claim, sender }],
            unclaimed: None,
            kept: Vec::new(),
            claim,
            is_foreign: false,
            bytes: 0,
            refused: 0,
            logs: 0,
            unread_before: self.unread.load(Ordering::Relaxed),
            unread_logs_before: self.unread_logs.load(Ordering::Relaxed),
        };
        (slot, receiver)
    }

    /// Creates a channel with room for this many more messages than the limit.
    fn channel(&self, more: usize) -> (mpsc::Sender<Arrival>, mpsc::Receiver<Arrival>) {
        let messages_max = self.limits.messages_max.saturating_add(more);
        mpsc::channel(messages_max.clamp(1, Semaphore::MAX_PERMITS))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step, so a panic elsewhere leaves no inconsistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Evicts the trace that has been over for longest, if there is one.
    fn forget_oldest(&mut self) -> bool {
        let Some((trace_id, claim)) = self.over.pop_front() else { return false };
        // A run may have requested it again since.
        if self.slots.get(&trace_id).is_some_and(|slot| slot.claim == claim) {
            self.slots.remove(&trace_id);
        }
        true
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shared.end(&mut self.shared.state(), self.trace_id, Some(self.number));
    }
}

impl Sink for Inbox {
    fn wants(&self, trace_id: &TraceId, _: &Sender) -> bool {
        let shared = &self.shared;
        let is_minted = shared.ring.verify(trace_id).is_some();
        if !is_minted && shared.foreign_expected.load(Ordering::Relaxed) == 0 {
            return false;
        }
        match shared.state().slots.get(trace_id) {
            Some(slot) => !slot.readers.is_empty(),
            None => is_minted,
        }
    }

    async fn accept(&self, batches: Vec<Batch>, _: &Sender) -> Result<(), SinkError> {
        let tried: Vec<_> = batches.into_iter().map(|batch| self.shared.take(batch)).collect();
        tried.into_iter().collect()
    }

    fn lost(&self, trace_id: &TraceId, _: &Sender) {
        // Without room for the trace nothing is counted; a run that requests its trace before it starts has room.
        if let Ok(slot) = self.shared.slot_of(*trace_id, &mut self.shared.state()) {
            slot.refused += 1;
        }
    }

    fn logged(&self, trace_id: &TraceId, _: &Sender) {
        if let Ok(slot) = self.shared.slot_of(*trace_id, &mut self.shared.state()) {
            slot.logs += 1;
        }
    }

    fn lost_unread(&self, _: &Sender, what: LostSignal) {
        let unread = match what {
            LostSignal::Spans => &self.shared.unread,
            LostSignal::Logs => &self.shared.unread_logs,
        };
        unread.fetch_add(1, Ordering::Relaxed);
    }
}

fn full(trace_id: TraceId) -> SinkError {
    SinkError::Full(format!("no room for more spans of trace `{trace_id}`"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use model::{Key, KeyRing, Project, Timestamp, TraceId};
    use otlp::Batch;

    use super::{Inbox, Limits};
    use crate::{
        arrivals::{Arrival, Arrivals},
        receiver::{
            Sender, Sink,
            conformance::{Facts, conforms},
        },
    };

    fn inbox(limits: Limits) -> Inbox {
        Inbox::new(KeyRing::new(Key::from_bytes([1; 16]), Vec::new()), limits)
    }

    fn wants(inbox: &Inbox, trace_id: &TraceId) -> bool {
        inbox.wants(trace_id, &Sender::of_all())
    }

    fn minted(inbox: &Inbox, number: u8) -> TraceId {
        inbox.shared.ring.mint(&Project::default(), Timestamp::from_nanos(0), [number; 5])
    }

    async fn send(inbox: &Inbox, trace_id: TraceId, text: &'static str) -> Result<(), String> {
        let bytes = Bytes::from_static(text.as_bytes());
        let batch = Batch { trace_id, spans: 1, bytes };
        inbox.accept(vec![batch], &Sender::of_all()).await.map_err(|refused| refused.to_string())
    }

    async fn next(arrivals: &mut Arrivals) -> String {
        let bytes = arrivals.next().await.and_then(Arrival::spans).expect("there is more");
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[tokio::test]
    async fn an_inbox_is_a_sink() {
        let inbox = inbox(Limits { trace_bytes_max: 100, ..Limits::default() });
        let wanted = minted(&inbox, 1);
        let foreign = TraceId::from_random([5; 16]);
        let mut arrivals = inbox.expect(wanted);
        conforms(
            &inbox,
            Facts { wanted, foreign, too_many_bytes: 101 },
            async |batches| {
                let mut held = Vec::new();
                for _ in 0..batches {
                    held.extend(arrivals.next().await.and_then(Arrival::spans));
                }
                held
            },
            || inbox.refused(wanted),
        )
        .await;
    }

    #[tokio::test]
    async fn what_came_before_comes_first() {
        let inbox = inbox(Limits::default());
        let (trace, other) = (minted(&inbox, 1), minted(&inbox, 2));
        assert_eq!(send(&inbox, trace, "early").await, Ok(()));
        assert_eq!(send(&inbox, other, "other").await, Ok(()));
        let mut arrivals = inbox.expect(trace);
        assert_eq!(send(&inbox, trace, "live").await, Ok(()));
        assert_eq!(next(&mut arrivals).await, "early");
        assert_eq!(next(&mut arrivals).await, "live");
        assert_eq!(next(&mut inbox.expect(other)).await, "other");
    }

    #[tokio::test]
    async fn only_minted_traces_that_are_not_over_are_wanted() {
        let inbox = inbox(Limits::default());
        let trace = minted(&inbox, 1);
        assert!(wants(&inbox, &trace));
        assert!(!wants(&inbox, &TraceId::from_bytes([9; 16]).expect("an id")));
        let arrivals = inbox.expect(trace);
        assert!(wants(&inbox, &trace));
        drop(arrivals);
        assert!(!wants(&inbox, &trace));
        assert_eq!(send(&inbox, trace, "late").await, Ok(()), "dropped, not refused");
    }

    #[tokio::test]
    async fn asking_again_ends_the_first() {
        let inbox = inbox(Limits::default());
        let trace = minted(&inbox, 1);
        let mut first = inbox.expect(trace);
        let mut second = inbox.expect(trace);
        assert_eq!(send(&inbox, trace, "new").await, Ok(()));
        assert_eq!(next(&mut second).await, "new");
        assert_eq!(first.next().await, None);
    }

    #[tokio::test]
    async fn each_limit_refuses() {
        let base = Limits { traces_max: 2, trace_bytes_max: 4, bytes_max: 6, messages_max: 3 };
        let cases = [
            ("messages", base, vec![(1, "a"), (1, "b"), (1, "c"), (1, "d")], "no room for more"),
            ("bytes", base, vec![(1, "abcd"), (2, "abc")], "no room for more"),
            ("traces", base, vec![(1, "a"), (2, "b"), (3, "c")], "2 traces are held already"),
        ];
        for (what, limits, sent, expected) in cases {
            let inbox = inbox(limits);
            let (last, before) = sent.split_last().expect("something is sent");
            for (number, text) in before {
                assert_eq!(send(&inbox, minted(&inbox, *number), text).await, Ok(()), "{what}");
            }
            let refused = send(&inbox, minted(&inbox, last.0), last.1).await;
            let error = refused.expect_err(what);
            assert!(error.contains(expected), "{what}: {error}");
        }
    }

    #[tokio::test]
    async fn one_trace_without_room_costs_no_other_its_spans() {
        let inbox = inbox(Limits { trace_bytes_max: 4, ..Limits::default() });
        let batch = |number, text: &'static str| Batch {
            trace_id: minted(&inbox, number),
            spans: 1,
            bytes: Bytes::from_static(text.as_bytes()),
        };
        let both = vec![batch(1, "too long"), batch(2, "fits")];
        inbox.accept(both, &Sender::of_all()).await.expect("taken or lost");
        assert_eq!(next(&mut inbox.expect(minted(&inbox, 2))).await, "fits");
        assert_eq!([1, 2].map(|number| inbox.refused(minted(&inbox, number))), [1, 0]);
    }

    #[test]
    fn a_loss_is_known_to_the_run_that_asks_later_and_takes_no_more_room_than_there_is() {
        let inbox = inbox(Limits { traces_max: 2, ..Limits::default() });
        let traces = [1, 2, 3].map(|number| minted(&inbox, number));
        let _arrivals = inbox.expect(traces[0]);
        for trace in traces.iter().chain(&traces[..1]) {
            inbox.lost(trace, &Sender::of_all());
        }
        let _later = inbox.expect(traces[1]);
        assert_eq!(traces.map(|trace| inbox.refused(trace)), [2, 1, 0]);
    }

    #[tokio::test]
    async fn a_trace_that_is_over_makes_room() {
        let limits = Limits { traces_max: 1, trace_bytes_max: 4, bytes_max: 4, messages_max: 3 };
        let inbox = inbox(limits);
        let first = inbox.expect(minted(&inbox, 1));
        assert_eq!(send(&inbox, minted(&inbox, 1), "abcd").await, Ok(()));
        assert!(send(&inbox, minted(&inbox, 2), "abcd").await.is_err());
        drop(first);
        assert_eq!(send(&inbox, minted(&inbox, 2), "abcd").await, Ok(()));
    }

    #[tokio::test]
    async fn a_trace_of_another_minter_is_wanted_while_it_is_asked_for() {
        let inbox = inbox(Limits { traces_max: 2, ..Limits::default() });
        let foreign = TraceId::from_bytes([9; 16]).expect("an id");
        let other = TraceId::from_bytes([8; 16]).expect("an id");
        let mut first = inbox.expect(foreign);
        assert!(wants(&inbox, &foreign));
        assert!(!wants(&inbox, &other));
        assert_eq!(send(&inbox, foreign, "spans").await, Ok(()));
        assert_eq!(next(&mut first).await, "spans");
        let second = inbox.expect(foreign);
        drop(first);
        assert!(wants(&inbox, &foreign), "the first reader takes nothing from the second");
        drop(second);
        assert!(!wants(&inbox, &foreign));
    }

    #[tokio::test]
    async fn a_trace_of_another_minter_is_shared_by_all_who_ask() {
        let inbox = inbox(Limits { messages_max: 1, ..Limits::default() });
        let foreign = TraceId::from_bytes([9; 16]).expect("an id");
        let mut first = inbox.expect(foreign);
        assert_eq!(send(&inbox, foreign, "early").await, Ok(()));
        assert_eq!(next(&mut first).await, "early");
        let mut second = inbox.expect(foreign);
        assert_eq!(send(&inbox, foreign, "live").await, Ok(()));
        assert!(send(&inbox, foreign, "more").await.is_err(), "the first has no room");
        assert_eq!(next(&mut first).await, "live");
        for text in ["early", "live"] {
            assert_eq!(next(&mut second).await, text);
        }
        drop(first);
        assert_eq!(send(&inbox, foreign, "last").await, Ok(()));
        assert_eq!(next(&mut second).await, "last");
        let mut third = inbox.expect(foreign);
        inbox.let_go(foreign);
        assert_eq!(second.next().await, None);
        for text in ["early", "live", "last"] {
            assert_eq!(next(&mut third).await, text);
        }
        assert_eq!(third.next().await, None);
        assert!(!wants(&inbox, &foreign));
        assert_eq!(inbox.shared.state().bytes, 0);
    }

    #[tokio::test]
    async fn what_is_over_is_forgotten_in_the_end() {
        let inbox = inbox(Limits { traces_max: 2, ..Limits::default() });
        for number in 0..10 {
            let trace = minted(&inbox, number);
            let arrivals = inbox.expect(trace);
            assert_eq!(send(&inbox, trace, "spans").await, Ok(()));
            drop(arrivals);
            assert!(!wants(&inbox, &trace), "{number}");
        }
        let state = inbox.shared.state();
        assert!(state.slots.len() <= 3 && state.over.len() <= 3, "{state:?}");
        assert_eq!(state.bytes, 0);
    }
}
