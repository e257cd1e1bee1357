//! One request through a system: the spans that it leaves, with their true times.
//!
//! Times are nanoseconds since the trigger was fired, by the one true clock. Deliberately absent: clocks that are wrong,
//! batches and whatever happens to spans on their way.

use model::trace::Kind;

use super::{
    chance::{Dice, between, percent},
    system::{Call, Hop, Label, MS, Node, Peer, Publish, Step, System, What},
};

/// More spans than this are not made; what a run does is then cut short.
const SPANS_MAX: usize = 80;

/// What happened, and what was answered.
pub(super) struct Played<'s> {
    pub(super) spans: Vec<Span<'s>>,
    /// When the answer came; with the status, unless the connection broke.
    pub(super) answer_at: u64,
    pub(super) status: Option<u16>,
    pub(super) crash: Option<Crash>,
}

/// A process that dies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crash {
    pub(super) process: usize,
    pub(super) at: u64,
}

pub(super) struct Span<'s> {
    pub(super) id: u64,
    pub(super) parent: Parent,
    /// The span that it has a link to.
    pub(super) link: Option<usize>,
    /// The CLIENT or PRODUCER span whose other side it is.
    pub(super) caller: Option<usize>,
    pub(super) process: usize,
    pub(super) kind: Kind,
    pub(super) name: &'s str,
    pub(super) value: Option<i64>,
    pub(super) target: Target<'s>,
    pub(super) is_error: bool,
    pub(super) start: u64,
    /// None where its process died before it ended: then it never was.
    pub(super) end: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    Trigger,
    Span(usize),
    /// Something that never sends spans.
    Absent(u64),
}

/// Whom it calls.
#[derive(Clone, Copy)]
pub(super) enum Target<'s> {
    None,
    Database,
    Peer(&'s Peer),
    Queue(&'s str),
}

impl Span<'_> {
    /// How its peer is known.
    pub(super) fn peer(&self) -> Option<String> {
        match self.target {
            Target::Peer(Peer::Service(name)) => Some(name.clone()),
            Target::Peer(Peer::Address(host, port)) => Some(format!("{host}:{port}")),
            Target::Queue(name) => Some(name.to_owned()),
            Target::None | Target::Database | Target::Peer(Peer::Unsaid) => None,
        }
    }

    /// Whether its parent is in another process.
    pub(super) fn is_entry(&self) -> bool {
        matches!(self.kind, Kind::Server | Kind::Consumer)
    }

    /// Whether it speaks of another side that sends spans of its own.
    pub(super) fn is_edge(&self) -> bool {
        matches!(self.kind, Kind::Client | Kind::Producer)
            && !matches!(self.target, Target::Database)
    }
}

/// How a call ended.
enum Served {
    Answered {
        at: u64,
        is_error: bool,
    },
    /// Nobody was there, or no longer.
    Broken {
        at: u64,
    },
}

struct Player<'s, 'd> {
    system: &'s System,
    dice: &'d mut Dice,
    spans: Vec<Span<'s>>,
    crash: Option<Crash>,
}

/// Where a step is done.
#[derive(Clone, Copy)]
struct Inside {
    parent: usize,
    process: usize,
}

/// Plays one request.
pub(super) fn play<'s>(system: &'s System, dice: &mut Dice, crash: Option<Crash>) -> Played<'s> {
    let mut player = Player { system, dice, spans: Vec::new(), crash };
    let parent = match system.root_hop {
        Hop::Gateway => Parent::Absent(player.id()),
        _ => Parent::Trigger,
    };
    let came = Came { parent, link: None, caller: None, kind: Kind::Server };
    let start = player.latency();
    let served = player.serve(&system.root, came, start);
    let (at, status) = match served {
        Served::Answered { at, is_error } => (at, Some(if is_error { 500 } else { 200 })),
        Served::Broken { at } => (at, None),
    };
    // The answer may be faster than the end of the span that gave it.
    let answer_at = at + player.latency() / 2;
    Played { spans: player.spans, answer_at, status, crash }
}

/// How a request or message came to a service.
#[derive(Clone, Copy)]
struct Came {
    parent: Parent,
    link: Option<usize>,
    caller: Option<usize>,
    kind: Kind,
}

impl<'s> Player<'s, '_> {
    fn id(&mut self) -> u64 {
        self.dice.next() | 1
    }

    fn latency(&mut self) -> u64 {
        between(self.dice, MS / 10, 2 * MS)
    }

    fn work(&mut self) -> u64 {
        match self.dice.below(40) {
            0 => between(self.dice, 20 * MS, 400 * MS),
            _ => between(self.dice, MS / 50, 3 * MS),
        }
    }

    fn is_down(&self, process: usize, at: u64) -> bool {
        self.crash.is_some_and(|crash| crash.process == process && crash.at <= at)
    }

    fn open(&mut self, inside: Inside, kind: Kind, label: &'s Label, start: u64) -> usize {
        let id = self.id();
        self.spans.push(Span {
            id,
            parent: Parent::Span(inside.parent),
            link: None,
            caller: None,
            process: inside.process,
            kind,
            name: &label.name,
            value: label.value,
            target: Target::None,
            is_error: false,
            start,
            end: None,
        });
        self.spans.len() - 1
    }

    /// Ends a span, if its process lives to see it.
    fn close(&mut self, span: usize, end: u64) {
        if !self.is_down(self.spans[span].process, end) {
            self.spans[span].end = Some(end);
        }
        // Now and then something is not as it usually is.
        if percent(self.dice, 2) {
            self.spans[span].value = Some(9);
        }
    }

    fn serve(&mut self, node: &'s Node, came: Came, start: u64) -> Served {
        let processes = &self.system.services[node.service].processes;
        let process = processes[self.dice.below(processes.len())];
        if self.is_down(process, start) {
            return Served::Broken { at: start + self.latency() };
        }
        let id = self.id();
        self.spans.push(Span {
            id,
            parent: came.parent,
            link: came.link,
            caller: came.caller,
            process,
            kind: came.kind,
            name: &node.name,
            value: node.value,
            target: Target::None,
            is_error: false,
            start,
            end: None,
        });
        let me = self.spans.len() - 1;
        let worked = start + self.work();
        let at = self.steps(&node.steps, Inside { parent: me, process }, worked);
        let end = at + self.work();
        if let Some(crash) = self.crash.filter(|_| self.is_down(process, end)) {
            return Served::Broken { at: crash.at.max(start) + self.latency() };
        }
        let is_error = percent(self.dice, node.fails);
        self.spans[me].is_error = is_error;
        self.close(me, end);
        Served::Answered { at: end, is_error }
    }

    fn steps(&mut self, steps: &'s [Step], inside: Inside, mut at: u64) -> u64 {
        for step in steps {
            if !percent(self.dice, step.chance) {
                continue;
            }
            let times = between(self.dice, step.times.0 as u64, step.times.1 as u64);
            for _ in 0..times {
                if self.spans.len() < SPANS_MAX && !self.is_down(inside.process, at) {
                    at = self.step(&step.what, inside, at);
                }
            }
        }
        at
    }

    fn step(&mut self, what: &'s What, inside: Inside, at: u64) -> u64 {
        match what {
            What::Internal { label, steps } => {
                let me = self.open(inside, Kind::Internal, label, at);
                let worked = at + self.work();
                let at = self.steps(steps, Inside { parent: me, ..inside }, worked);
                let end = at + self.work();
                self.close(me, end);
                end
            }
            What::Database(label) => {
                let me = self.open(inside, Kind::Client, label, at);
                self.spans[me].target = Target::Database;
                let end = at + self.work();
                self.close(me, end);
                end
            }
            What::Outside { label, peer } => {
                let me = self.open(inside, Kind::Client, label, at);
                self.spans[me].target = Target::Peer(peer);
                self.spans[me].is_error = percent(self.dice, 3);
                let end = at + self.work();
                self.close(me, end);
                end
            }
            What::Late { label, after } => {
                let me = self.open(inside, Kind::Internal, label, at);
                self.close(me, at + after);
                at
            }
            What::Call(call) => self.call(call, inside, at),
            What::Publish(publish) => self.publish(publish, inside, at),
        }
    }

    fn call(&mut self, call: &'s Call, inside: Inside, at: u64) -> u64 {
        if call.hop == Hop::Bare {
            let parent = Parent::Span(inside.parent);
            let came = Came { parent, link: None, caller: None, kind: Kind::Server };
            let start = at + self.latency();
            return match self.serve(&call.to, came, start) {
                Served::Answered { at, .. } | Served::Broken { at } => at,
            };
        }
        let outer = self.open(inside, Kind::Client, &call.label, at);
        self.spans[outer].target = Target::Peer(&call.peer);
        let inner = match call.hop {
            Hop::Layered => {
                let inner =
                    self.open(Inside { parent: outer, ..inside }, Kind::Client, &call.label, at);
                self.spans[inner].target = Target::Peer(&call.peer);
                Some(inner)
            }
            _ => None,
        };
        let (end, is_error) = self.exchange(call, inner.unwrap_or(outer), at);
        for client in inner.into_iter().chain([outer]) {
            self.spans[client].is_error = is_error;
            self.close(client, end);
        }
        end
    }

    /// What goes over the wire for a call, and when the caller has its answer.
    fn exchange(&mut self, call: &'s Call, client: usize, at: u64) -> (u64, bool) {
        if percent(self.dice, 1) {
            // Refused: nobody hears of it.
            return (at + self.latency(), true);
        }
        let parent = match call.hop {
            Hop::Gateway => Parent::Absent(self.id()),
            _ => Parent::Span(client),
        };
        let came = Came { parent, link: None, caller: Some(client), kind: Kind::Server };
        let start = at + self.latency();
        let served = self.serve(&call.to, came, start);
        let (answered, is_error) = match served {
            Served::Answered { at, is_error } => (at + self.latency(), is_error),
            Served::Broken { at } => (at, true),
        };
        let patience = start + between(self.dice, MS, 20 * MS);
        match percent(self.dice, 1) && patience < answered {
            // The caller gives up, and the other side goes on.
            true => (patience, true),
            false => (answered, is_error),
        }
    }

    fn publish(&mut self, publish: &'s Publish, inside: Inside, at: u64) -> u64 {
        let me = self.open(inside, Kind::Producer, &publish.label, at);
        self.spans[me].target = Target::Queue(&publish.destination);
        let end = at + self.latency();
        self.close(me, end);
        for node in &publish.to {
            let parent = Parent::Span(if publish.is_linked { inside.parent } else { me });
            let link = publish.is_linked.then_some(me);
            let came = Came { parent, link, caller: Some(me), kind: Kind::Consumer };
            let start = end + between(self.dice, MS / 10, publish.wait);
            // A consumer that is down gets the message later, which is another story.
            let _ = self.serve(node, came, start);
        }
        end
    }
}
