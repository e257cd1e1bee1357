//! The work of a sender: what is sent when, and what is done about each answer.
//!
//! A batch is read, cut into parts, and ends when all its parts have: only then is it counted and acknowledged. A part
//! that has to be sent again goes back to the head of the queue; one that is refused is cut in two until what is refused
//! stands alone. While the destination fails nothing new is begun, and one part at a time asks whether it is back. What
//! fails with an error of the server itself again and again while others pass is refused, whatever the server calls it.
//!
//! Each signal fails and comes back on its own, since a destination may take one of them only, and has a journal of its own. A
//! journal with both is what an earlier plan left: there, what is read and refused stays open, up to a bound, and from there
//! on the other signal waits as well. Deliberately absent: threads, clocks and sockets.

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

/// How long requests under way may still be answered when the sender ends: a living peer needs less, and each answer
/// that is waited for is a batch that is not sent twice.
const GRACE: Duration = Duration::from_millis(500);
/// How many times a part may fail alone, with others accepted in between, until it is looked at as refused.
const ALONE_MAX: u32 = 3;
/// How many batches, of how many bytes, may be open while one signal of a journal is refused and the other is delivered. Of
/// these the next sender sends again what was delivered.
const OPEN_MAX: usize = 64;
const OPEN_BYTES_MAX: usize = 8 * BATCH_BYTES_MAX;
/// After how many accepted requests a larger one is tried.
const GROW_AFTER: u32 = 16;
/// How long to sleep where only an answer or a word from outside can change anything.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// The work of a sender.
pub(crate) struct DeliveryLoop {
    shared: SenderState,
    control: Arc<Control>,
    /// Of dead letters: their kinds are news once, not after each success.
    notices: Notices,
    throttle: Duration,
    concurrency: usize,
    retry: Retry,
    /// The most bytes of a batch; smaller after the destination has refused one for its size, and then slowly larger
    /// again: it may have been one odd item, or another limit by now.
    bytes_max: usize,
    /// How many requests were accepted since the size of batches last changed.
    fitting: u32,
    /// Parts that are to be sent.
    queue: VecDeque<Part>,
    works: HashMap<u64, Work>,
    next_id: u64,
    under_way: JoinSet<Answer>,
    sent: HashMap<Id, (Part, Instant)>,
    spans: Way,
    logs: Way,
    /// Items that were read and not acknowledged.
    taken: u64,
    /// Whether a further batch would be full.
    is_full: bool,
    is_draining: bool,
    /// When a batch that is not full may go.
    due_at: Instant,
    /// When to look for one even if the journal says nothing.
    look_at: Instant,
}

/// How one signal fares.
#[derive(Default)]
struct Way {
    outage: Option<Outage>,
    /// How many requests were accepted.
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

    /// Works until it is told to stop; then what has not ended is unread again.
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
                // Below the least look the journal wakes at the first item, so that nobody looks in vain.
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

    /// Gives requests under way a moment, then leaves the rest to the next sender.
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

    /// Whether everything that was read has ended, and nothing more was there.
    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.under_way.is_empty()
    }

    fn way(&self, signal: Signal) -> &Way {
        if signal == Signal::Logs { &self.logs } else { &self.spans }
    }

    fn way_mut(&mut self, signal: Signal) -> &mut Way {
        if signal == Signal::Logs { &mut self.logs } else { &mut self.spans }
    }

    /// When something is to be done even if nothing happens.
    fn wake_at(&self, now: Instant) -> Instant {
        let has_room = self.under_way.len() < self.concurrency && self.may_read(now);
        let look_at = if has_room { self.look_at } else { now + SLEEP_MAX };
        let outages = [self.spans.outage, self.logs.outage].into_iter().flatten();
        let resume_at = outages.map(|outage| outage.resume_at).filter(|resume_at| *resume_at > now);
        resume_at.min().map_or(look_at, |resume_at| resume_at.min(look_at))
    }

    /// Whether a part of this signal may be sent: always, or one at a time that asks whether the destination is back.
    fn may_start(&self, signal: Signal, now: Instant) -> bool {
        self.way(signal).outage.is_none_or(|outage| {
            now >= outage.resume_at && self.sent.values().all(|(part, _)| part.signal != signal)
        })
    }

    /// Whether a further batch may be read: there is something to do with it, and not too much is open.
    fn may_read(&self, now: Instant) -> bool {
        let is_wanted = self.may_start(Signal::Spans, now) || self.may_start(Signal::Logs, now);
        let open_bytes = || self.works.values().map(|work| work.batch.bytes()).sum::<usize>();
        let is_little = || self.works.len() < OPEN_MAX && open_bytes() < OPEN_BYTES_MAX;
        is_wanted && (self.queue.is_empty() || is_little())
    }

    /// Starts what may be started.
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
        // Whether the fault is this part's or the server's, another part will tell.
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

    /// Reads a batch into the queue; `false` if there is none.
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
                // Perhaps it is but this part that is refused, in words that do not say so.
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

    /// The destination answered something sensible. Whatever was wrong with this signal when this was sent is over.
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

    /// Notes something, unless it is another sender's turn.
    fn in_turn(&self, note: impl FnOnce(&Tally)) {
        if self.shared.lane.is_turn(self.shared.turn) {
            note(&self.shared.lane.tally);
        }
    }

    /// One more request was accepted: after some, larger ones are tried again.
    fn grow(&mut self) {
        self.fitting += 1;
        if self.fitting >= GROW_AFTER {
            self.fitting = 0;
            self.bytes_max = self.bytes_max.saturating_mul(2).min(BATCH_BYTES_MAX);
        }
    }

    /// Whether a part has failed so often while others passed that the fault must be its own. Only for errors that are
    /// the server's own: OTLP counts them as final, and a Collector answers so to what its own destination refuses.
    fn fails_alone(&self, part: &mut Part, kind: WhyKind) -> bool {
        if !matches!(kind, WhyKind::Status(500) | WhyKind::Grpc(2 | 13)) {
            return false;
        }
        // Of its own signal: the server may have another way for each, and only one of them is broken.
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

    /// Looks in both halves for what is refused; a single item is.
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

    /// Ends a part, and its work with the last one.
    fn settle(&mut self, part: &Part, end: impl FnOnce(&mut Work, &Part)) {
        let work = self.works.get_mut(&part.id).expect("a part's work is open");
        end(work, part);
        if work.open == 0 {
            self.close(part.id);
        }
    }

    /// Counts and acknowledges a batch all of which has ended.
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
            // All of it is fresh, unless the journal has lost some meanwhile: what is counted there is not counted here.
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

/// Waits for a push that is under way; for ever where none is.
async fn pushed(push: &mut Option<Push>) {
    match push {
        Some(push) if !push.is_still() => push.ended().await,
        _ => std::future::pending().await,
    }
}
