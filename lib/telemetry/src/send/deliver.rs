//! The delivery loop of a sender: which request is sent when, and the reaction to each response.
//!
//! A batch is read and split into parts. It ends when all its parts have ended: only then is it counted and
//! acknowledged. A part to retry goes back to the head of the queue. A rejected part is bisected until the rejected
//! item is isolated. While the destination fails no new part is started, and one part at a time probes whether it has
//! recovered. A part that repeatedly fails with an internal server error while others succeed counts as rejected,
//! regardless of the status.
//!
//! Each signal fails and recovers on its own, because a destination may accept only one of them, and has its own
//! journal. A journal with both signals is left by an earlier plan: there, rejected parts that were read stay open, up
//! to a limit, and beyond it the other signal waits too. Deliberately absent: threads, clocks and sockets.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    task::{Id, JoinError, JoinSet},
    time::sleep_until,
};

use super::{
    HOLD,
    answer::{Answer, Why, WhyKind},
    backoff::{Failure, Outage},
    notices::Notices,
    part::{Doubt, LetterKind, Part, Work},
    push::{Push, SenderState},
    sender::{Control, LOOK_MIN, retry},
    tally::{Tally, add},
};
use crate::plan::{BATCH_BYTES_MAX, BATCH_ITEMS_MAX, Destination, Exporter, Retry, Signal};

/// The grace period for requests in progress when the sender ends: a healthy peer needs less, and each response that
/// arrives prevents that a batch is sent twice.
const GRACE: Duration = Duration::from_millis(500);
/// The number of times that a part may fail, with others accepted in between, until it counts as rejected.
const ALONE_MAX: u32 = 3;
/// The maximum number of open batches, and of their bytes, while one signal of a journal is rejected and the other is
/// delivered. The next sender sends the delivered items of these batches again.
const OPEN_MAX: usize = 64;
const OPEN_BYTES_MAX: usize = 8 * BATCH_BYTES_MAX;
/// The number of accepted requests after which a larger one is tried.
const GROW_AFTER: u32 = 16;
/// The sleep time if only a response or a control signal can change anything.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// The delivery loop of a sender.
pub(crate) struct DeliveryLoop {
    shared: SenderState,
    control: Arc<Control>,
    /// Notices about dead letters: each kind is reported once, not after each success.
    notices: Notices,
    throttle: Duration,
    concurrency: usize,
    retry: Retry,
    /// The maximum bytes of a batch. It shrinks after the destination has rejected one for its size, and then slowly
    /// grows again: a single odd item may have been the cause, or the limit may have changed.
    bytes_max: usize,
    /// The number of accepted requests since the size of batches last changed.
    fitting: u32,
    /// The parts to send.
    queue: VecDeque<Part>,
    works: HashMap<u64, Work>,
    next_id: u64,
    under_way: JoinSet<Answer>,
    sent: HashMap<Id, (Part, Instant)>,
    spans: Way,
    logs: Way,
    /// The number of items that were read and not acknowledged.
    taken: u64,
    /// Whether a further batch would be full.
    is_full: bool,
    is_draining: bool,
    /// When a batch that is not full may be sent.
    due_at: Instant,
    /// When to poll the journal even without a notification.
    look_at: Instant,
}

/// The delivery state of one signal.
#[derive(Default)]
struct Way {
    outage: Option<Outage>,
    /// The number of accepted requests.
    accepted: u64,
}

impl DeliveryLoop {
    pub(crate) fn new(exporter: &Exporter, shared: SenderState, control: Arc<Control>) -> Self {
        let concurrency = match &exporter.destination {
            Destination::Otlp(otlp) => otlp.concurrency.max(1),
            Destination::Stdout | Destination::Log(_) => 1,
        };
        Self {
            notices: Notices::new(exporter, &shared.host),
            throttle: exporter.throttle,
            concurrency,
            retry: retry(exporter),
            bytes_max: BATCH_BYTES_MAX,
            fitting: 0,
            queue: VecDeque::new(),
            works: HashMap::new(),
            next_id: 0,
            under_way: JoinSet::new(),
            sent: HashMap::new(),
            spans: Way::default(),
            logs: Way::default(),
            taken: 0,
            is_full: false,
            is_draining: false,
            due_at: (shared.host.now)(),
            look_at: (shared.host.now)(),
            shared,
            control,
        }
    }

    /// Runs until it is stopped; then batches that have not ended become unread again.
    pub(crate) async fn run(mut self, mut push: Option<Push>) {
        let stop_by = loop {
            let now = self.now();
            if let Some(stop_by) = self.control.stop_by() {
                break stop_by;
            }
            let (is_draining, is_new) = self.control.draining(now);
            self.is_draining = is_draining;
            if is_new {
                for way in [&mut self.spans, &mut self.logs] {
                    way.outage = way.outage.map(|_| Outage::until(now, now));
                }
            }
            if self.control.take_full() {
                // Below `LOOK_MIN` the journal wakes the sender at the first item, so that it never polls in vain. This
                // is not a full batch.
                self.is_full |= self.throttle >= LOOK_MIN;
                self.look_at = self.due_at;
            }
            self.fill(now);
            let mut wake_at = self.wake_at(now);
            if let Some(push) = &mut push {
                wake_at = wake_at.min(push.advance(now));
            }
            if is_draining && self.is_empty() {
                self.control.drained();
            }
            tokio::select! {
                Some(ended) = self.under_way.join_next_with_id() => self.ended(ended),
                () = pushed(&mut push) => {}
                () = self.control.notify.notified() => {}
                () = sleep_until(wake_at.into()) => {}
            }
        };
        self.finish(stop_by).await;
        if let Some(push) = push {
            push.finish(stop_by).await;
        }
    }

    /// Waits briefly for requests in progress, then leaves the rest to the next sender.
    async fn finish(&mut self, stop_by: Instant) {
        let until = stop_by.min(self.now() + GRACE);
        while let Ok(Some(ended)) =
            tokio::time::timeout_at(until.into(), self.under_way.join_next_with_id()).await
        {
            self.ended(ended);
        }
        self.under_way.abort_all();
        self.shared.lane.rewind(self.shared.turn);
    }

    fn now(&self) -> Instant {
        (self.shared.host.now)()
    }

    /// Returns whether no part is queued and no request is in progress.
    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.under_way.is_empty()
    }

    fn way(&self, signal: Signal) -> &Way {
        if signal == Signal::Logs { &self.logs } else { &self.spans }
    }

    fn way_mut(&mut self, signal: Signal) -> &mut Way {
        if signal == Signal::Logs { &mut self.logs } else { &mut self.spans }
    }

    /// Returns when to wake up even if no event occurs.
    fn wake_at(&self, now: Instant) -> Instant {
        let has_room = self.under_way.len() < self.concurrency && self.may_read(now);
        let look_at = if has_room { self.look_at } else { now + SLEEP_MAX };
        let outages = [self.spans.outage, self.logs.outage].into_iter().flatten();
        let resume_at = outages.map(|outage| outage.resume_at).filter(|resume_at| *resume_at > now);
        resume_at.min().map_or(look_at, |resume_at| resume_at.min(look_at))
    }

    /// Returns whether a part of this signal may be sent: always, or during an outage one at a time, as a probe.
    fn may_start(&self, signal: Signal, now: Instant) -> bool {
        self.way(signal).outage.is_none_or(|outage| {
            now >= outage.resume_at && self.sent.values().all(|(part, _)| part.signal != signal)
        })
    }

    /// Returns whether a further batch may be read: a part of it could be sent, and not too many batches are open.
    fn may_read(&self, now: Instant) -> bool {
        let is_wanted = self.may_start(Signal::Spans, now) || self.may_start(Signal::Logs, now);
        let open_bytes = || self.works.values().map(|work| work.batch.bytes()).sum::<usize>();
        let is_little = || self.works.len() < OPEN_MAX && open_bytes() < OPEN_BYTES_MAX;
        is_wanted && (self.queue.is_empty() || is_little())
    }

    /// Starts the requests that may be started.
    fn fill(&mut self, now: Instant) {
        while self.under_way.len() < self.concurrency {
            match self.next_part(now) {
                Some(part) => self.start(part, now),
                None if self.is_due(now) && self.may_read(now) && self.read(now) => {}
                None => break,
            }
        }
    }

    fn next_part(&mut self, now: Instant) -> Option<Part> {
        let mut at = self.queue.iter().position(|part| self.may_start(part.signal, now))?;
        let Part { signal, doubt, .. } = self.queue[at];
        // Another part shows whether this part or the server is the cause.
        let is_doubtful = doubt.is_some() && self.way(signal).outage.is_some();
        let queued = self.queue.iter().filter(|part| part.signal == signal).count();
        if is_doubtful
            && queued < self.concurrency.max(2)
            && self.may_read(now)
            && self.read(now)
            && let Some(newest) = self.queue.iter().rposition(|part| part.signal == signal)
        {
            at = newest;
        }
        self.queue.remove(at)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.is_full || self.is_draining || now >= self.look_at
    }

    /// Reads a batch into the queue; returns `false` if there is none.
    fn read(&mut self, now: Instant) -> bool {
        self.look_at = now + self.throttle.max(LOOK_MIN);
        let lane = &self.shared.lane;
        let Some(batch) = lane.read(self.shared.turn, BATCH_ITEMS_MAX, self.bytes_max) else {
            self.is_full = false;
            return false;
        };
        self.due_at = now + self.throttle;
        self.taken += batch.items();
        let unread = lane.journal.counts().queued.saturating_sub(self.taken);
        let unread_bytes = unread.saturating_mul(batch.bytes() as u64 / batch.items().max(1));
        self.is_full = unread >= BATCH_ITEMS_MAX || unread_bytes >= self.bytes_max as u64;
        let (work, parts) = Work::new(self.next_id, batch);
        self.next_id += 1;
        let (id, is_over) = (work.id, parts.is_empty());
        self.works.insert(id, work);
        self.queue.extend(parts);
        if is_over {
            self.close(id);
        }
        true
    }

    fn start(&mut self, part: Part, now: Instant) {
        let tally = &self.shared.lane.tally;
        add(&tally.requests, 1);
        add(&tally.retries, u64::from(part.is_repeated));
        let outlet = Arc::clone(&self.shared.outlet);
        let (signal, body) = (part.signal, part.body.clone());
        let task = self.under_way.spawn(async move { outlet.send(signal, body).await });
        self.sent.insert(task.id(), (part, now));
        self.in_turn(|tally| tally.began(signal, now));
    }

    fn ended(&mut self, ended: Result<(Id, Answer), JoinError>) {
        let (id, answer) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let why = Why::new(WhyKind::Io, format!("a request was not finished: {error}"));
                (error.id(), Answer::Later { after: None, why })
            }
        };
        let (mut part, sent) = self.sent.remove(&id).expect("each task was put there");
        match answer {
            Answer::Accepted => {
                self.way_mut(part.signal).accepted += 1;
                self.is_well(part.signal, sent);
                self.grow();
                self.settle(&part, Work::delivered);
            }
            Answer::Partial { rejected, message } => {
                self.is_well(part.signal, sent);
                let (rejected, of) = (rejected.min(part.items), part.items);
                let said =
                    format!("{rejected} of {of} {} were refused: {message}", part.signal.as_str());
                let kind = LetterKind::Partial { rejected, of };
                self.notices.say(WhyKind::Protocol, &said);
                self.settle(&part, |work, part| work.refused(part, rejected, kind, &said));
            }
            Answer::Later { why, .. } if self.fails_alone(&mut part, why.kind) => {
                self.halve(&part, LetterKind::Refused, &why);
            }
            Answer::Later { after, why } => {
                let (now, random) = (self.now(), (self.shared.host.random)());
                let (failure, retry) = (Failure { sent, now, after, random }, self.retry);
                let way = self.way_mut(part.signal);
                way.outage = Some(Outage::next(way.outage, failure, retry));
                self.again(part, why);
            }
            Answer::Misconfigured(why) => {
                let now = self.now();
                let hold = if self.is_draining { self.retry.max } else { HOLD };
                let way = self.way_mut(part.signal);
                way.outage = Some(Outage::until(now, now + hold));
                // Perhaps only this part is rejected, with a status that does not show it.
                part.doubt.get_or_insert(Doubt { accepted: way.accepted, alone: 0 });
                self.again(part, why);
            }
            Answer::TooLarge(why) => {
                self.is_well(part.signal, sent);
                self.fitting = 0;
                if part.records.len() > 1 {
                    // The limit is below this length, so half of it is at least half of the limit.
                    self.bytes_max = self.bytes_max.min(part.body.len() / 2).max(1);
                }
                self.halve(&part, LetterKind::TooLarge, &why);
            }
            Answer::Poison(why) => {
                self.is_well(part.signal, sent);
                self.halve(&part, LetterKind::Refused, &why);
            }
        }
    }

    /// Records a valid response of the destination. It ends an outage of this signal that existed when the request was
    /// sent.
    fn is_well(&mut self, signal: Signal, sent: Instant) {
        if self.way_mut(signal).outage.take_if(|outage| outage.is_over(sent)).is_some() {
            self.in_turn(|tally| tally.set_trouble(signal, None));
        }
        if self.way(signal).outage.is_none() {
            let under_way = self.sent.values().filter(|(part, _)| part.signal == signal);
            let oldest = under_way.map(|(_, sent)| *sent).min();
            self.in_turn(|tally| tally.answered(signal, oldest));
        }
    }

    /// Updates the tally, unless another sender has taken over the lane.
    fn in_turn(&self, note: impl FnOnce(&Tally)) {
        if self.shared.lane.is_turn(self.shared.turn) {
            note(&self.shared.lane.tally);
        }
    }

    /// Counts an accepted request: after some of them, larger batches are tried again.
    fn grow(&mut self) {
        self.fitting += 1;
        if self.fitting >= GROW_AFTER {
            self.fitting = 0;
            self.bytes_max = self.bytes_max.saturating_mul(2).min(BATCH_BYTES_MAX);
        }
    }

    /// Returns whether a part has failed so often while others succeeded that the part must be the cause. Only for
    /// internal server errors: OTLP treats them as permanent, and a Collector returns them for data that its own
    /// destination rejects.
    fn fails_alone(&self, part: &mut Part, kind: WhyKind) -> bool {
        if !matches!(kind, WhyKind::Status(500) | WhyKind::Grpc(2 | 13)) {
            return false;
        }
        // Counts its own signal only: the server may process each signal separately, and only one of them may be
        // broken.
        let accepted = self.way(part.signal).accepted;
        let doubt = part.doubt.get_or_insert(Doubt { accepted, alone: 0 });
        if accepted > doubt.accepted {
            *doubt = Doubt { accepted, alone: doubt.alone + 1 };
        }
        doubt.alone >= ALONE_MAX
    }

    fn again(&mut self, mut part: Part, why: Why) {
        part.is_repeated = true;
        self.in_turn(|tally| tally.set_trouble(part.signal, Some(why)));
        match part.doubt {
            Some(_) => self.queue.push_back(part),
            None => self.queue.push_front(part),
        }
    }

    /// Bisects a rejected part; a single item is the rejected one.
    fn halve(&mut self, part: &Part, kind: LetterKind, why: &Why) {
        let work = self.works.get_mut(&part.id).expect("a part's work is open");
        match work.halve(part) {
            Some([first, second]) => {
                self.queue.push_front(second);
                self.queue.push_front(first);
            }
            None => {
                self.settle(part, |work, part| work.refused(part, part.items, kind, &why.message));
                self.notices.say(
                    why.kind,
                    &format!("{}; what it refuses becomes a dead letter", why.message),
                );
            }
        }
    }

    /// Ends a part, and its batch with the last part.
    fn settle(&mut self, part: &Part, end: impl FnOnce(&mut Work, &Part)) {
        let work = self.works.get_mut(&part.id).expect("a part's work is open");
        end(work, part);
        if work.open == 0 {
            self.close(part.id);
        }
    }

    /// Counts and acknowledges a batch after all its parts have ended.
    fn close(&mut self, id: u64) {
        let Some(work) = self.works.remove(&id) else { return };
        self.taken -= work.batch.items();
        let (lane, turn) = (Arc::clone(&self.shared.lane), self.shared.turn);
        if !lane.is_turn(turn) {
            return;
        }
        self.keep_letters(&work);
        lane.acknowledge(turn, &work.batch, |tally, fresh| {
            let (spans, logs) = (tally.ends(Signal::Spans), tally.ends(Signal::Logs));
            // All items are fresh, unless the journal has lost some meanwhile: items that the journal counts are not
            // counted here.
            let mut left = fresh;
            for (counter, ended) in [
                (&spans.delivered, work.spans.delivered),
                (&logs.delivered, work.logs.delivered),
                (&spans.rejected, work.spans.rejected),
                (&logs.rejected, work.logs.rejected),
                (&tally.unreadable, work.unreadable),
            ] {
                let ended = ended.min(left);
                add(counter, ended);
                left -= ended;
            }
            add(&tally.batches, 1);
        });
        if work.unreadable > 0 {
            let said = format!(
                "{} items were written by another version and are left out",
                work.unreadable
            );
            self.notices.say(WhyKind::Protocol, &said);
        }
    }

    fn keep_letters(&mut self, work: &Work) {
        let tally = &self.shared.lane.tally;
        for (request, letter) in work.dead_letters() {
            let Some(folder) = &self.shared.lane.dead_letters else {
                add(&tally.dead_letters, 1);
                continue;
            };
            let mut folder = folder.lock().expect("no panic under this lock");
            let (removed, kept) = folder.keep(&request, &letter, (self.shared.host.wall)());
            add(&tally.dead_letters_removed, removed);
            match kept {
                Ok(()) => add(&tally.dead_letters, 1),
                Err(error) => {
                    add(&tally.dead_letters_failed, 1);
                    self.notices
                        .say(WhyKind::Io, &format!("a dead letter could not be kept: {error}"));
                }
            }
        }
    }
}

/// Waits for a push in progress; never completes if there is none.
async fn pushed(push: &mut Option<Push>) {
    match push {
        Some(push) if !push.is_still() => push.ended().await,
        _ => std::future::pending().await,
    }
}
