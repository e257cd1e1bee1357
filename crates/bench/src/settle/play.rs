//! One request through a system: the spans that it leaves, with their true times.
//!
//! Times are nanoseconds since the trigger was fired, by the one true clock. Deliberately absent: wrong clocks, batches and the
//! transport of spans.

use model::trace::Kind;

use super::{
    chance::{Dice, between, percent},
    system::{
        Hop, Label, Late, MS, Node, Peer, Publish, SECOND, System, SystemCall, SystemStep, What,
    },
};

/// The upper bound of spans; a longer run is cut short.
const SPANS_MAX: usize = 80;

/// The true events, and the response.
pub(super) struct SimulatedRun<'s> {
    pub(super) spans: Vec<SimulatedSpan<'s>>,
    /// When the response arrived; with the status, unless the connection broke.
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

pub(super) struct SimulatedSpan<'s> {
    pub(super) id: u64,
    pub(super) parent: Parent,
    /// The span that it links to.
    pub(super) link: Option<usize>,
    /// The CLIENT or PRODUCER span on the other side.
    pub(super) caller: Option<usize>,
    pub(super) process: usize,
    pub(super) kind: Kind,
    pub(super) name: &'s str,
    pub(super) value: Option<i64>,
    pub(super) target: CallTarget<'s>,
    /// The path of a request, or the source of a message.
    pub(super) place: Option<&'s str>,
    pub(super) is_error: bool,
    /// Whether it has an exception event.
    pub(super) has_exception: bool,
    /// Whether its SDK dropped its attributes and events.
    pub(super) is_dropping: bool,
    /// Whether it is a client that did not wait for its server.
    pub(super) has_given_up: bool,
    /// Zero for the trace of the run; else the trace of a callee that did not get the context.
    pub(super) trace: u64,
    pub(super) start: u64,
    /// None where its process died before it ended: then the span was never recorded.
    pub(super) end: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    Trigger,
    Span(usize),
    /// A parent that never sends spans.
    Absent(u64),
    /// No known parent, as the context was lost; this is the true one.
    Lost(usize),
}

/// The callee.
#[derive(Clone, Copy)]
pub(super) enum CallTarget<'s> {
    None,
    Database,
    Peer(&'s Peer),
    Queue(&'s str),
}

impl SimulatedSpan<'_> {
    /// Returns the name of its peer.
    pub(super) fn peer(&self) -> Option<String> {
        match self.target {
            CallTarget::Peer(Peer::Service(name)) => Some(name.clone()),
            CallTarget::Peer(Peer::Address(host, port)) => Some(format!("{host}:{port}")),
            CallTarget::Queue(name) => Some(name.to_owned()),
            CallTarget::None | CallTarget::Database | CallTarget::Peer(Peer::Unsaid) => None,
        }
    }

    /// Whether its parent is in another process.
    pub(super) fn is_entry(&self) -> bool {
        matches!(self.kind, Kind::Server | Kind::Consumer)
    }

    /// Whether it is the inner call of another one.
    pub(super) fn is_inner_of(&self, outer: usize) -> bool {
        self.parent == Parent::Span(outer) && self.is_edge()
    }

    /// Whether it names another side that sends its own spans.
    pub(super) fn is_edge(&self) -> bool {
        matches!(self.kind, Kind::Client | Kind::Producer)
            && !matches!(self.target, CallTarget::Database)
    }
}

/// The end of a call.
enum CallEnd {
    Answered {
        at: u64,
        is_error: bool,
    },
    /// The callee was down, or died meanwhile.
    Broken {
        at: u64,
    },
}

/// Returns the path of a node: the part of its name behind the method.
fn path(node: &Node) -> &str {
    node.name.split_once(' ').map_or(&node.name, |(_, path)| path)
}

/// A call from its client's view.
struct Exchange {
    end: u64,
    is_error: bool,
    has_given_up: bool,
}

struct Player<'s, 'd> {
    system: &'s System,
    dice: &'d mut Dice,
    spans: Vec<SimulatedSpan<'s>>,
    crash: Option<Crash>,
}

/// The span and the process of a step.
#[derive(Clone, Copy)]
struct Inside {
    parent: usize,
    process: usize,
}

/// Plays one request.
pub(super) fn play<'s>(
    system: &'s System,
    dice: &mut Dice,
    crash: Option<Crash>,
) -> SimulatedRun<'s> {
    let mut player = Player { system, dice, spans: Vec::new(), crash };
    let parent = match system.root_hop {
        Hop::Gateway => Parent::Absent(player.id()),
        _ => Parent::Trigger,
    };
    let place = Some(path(&system.root));
    let came =
        ServiceEntry { parent, link: None, caller: None, kind: Kind::Server, trace: 0, place };
    let start = player.latency();
    let served = player.serve(&system.root, came, start);
    let (at, status) = match served {
        CallEnd::Answered { at, is_error } => (at, Some(if is_error { 500 } else { 200 })),
        CallEnd::Broken { at } => (at, None),
    };
    // The response may arrive before the span of its service ends.
    let answer_at = at + player.latency() / 2;
    SimulatedRun { spans: player.spans, answer_at, status, crash }
}

/// How a request or message reached a service.
#[derive(Clone, Copy)]
struct ServiceEntry<'s> {
    parent: Parent,
    link: Option<usize>,
    caller: Option<usize>,
    kind: Kind,
    trace: u64,
    /// The path, or the source of the message.
    place: Option<&'s str>,
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
        let trace = self.spans[inside.parent].trace;
        let parent = Parent::Span(inside.parent);
        let came = ServiceEntry { parent, link: None, caller: None, kind, trace, place: None };
        self.push(came, inside.process, (&label.name, label.value), start)
    }

    fn push(
        &mut self,
        came: ServiceEntry<'s>,
        process: usize,
        (name, value): (&'s str, Option<i64>),
        start: u64,
    ) -> usize {
        let id = self.id();
        let is_dropping = self.system.service_of(process).drops && percent(self.dice, 30);
        self.spans.push(SimulatedSpan {
            id,
            parent: came.parent,
            link: came.link,
            caller: came.caller,
            process,
            kind: came.kind,
            name,
            value,
            target: CallTarget::None,
            place: came.place,
            is_error: false,
            has_exception: false,
            is_dropping,
            has_given_up: false,
            trace: came.trace,
            start,
            end: None,
        });
        self.spans.len() - 1
    }

    /// Ends a span, if its process is still alive.
    fn close(&mut self, span: usize, end: u64) {
        if !self.is_down(self.spans[span].process, end) {
            self.spans[span].end = Some(end);
        }
        // Occasionally a value is unusual.
        if percent(self.dice, 2) {
            self.spans[span].value = Some(9);
        }
        let chance = if self.spans[span].is_error { 70 } else { 1 };
        self.spans[span].has_exception = percent(self.dice, chance);
    }

    fn serve(&mut self, node: &'s Node, came: ServiceEntry<'s>, start: u64) -> CallEnd {
        let processes = &self.system.services[node.service].processes;
        let process = processes[self.dice.below(processes.len())];
        if self.is_down(process, start) {
            return CallEnd::Broken { at: start + self.latency() };
        }
        let me = self.push(came, process, (&node.name, node.value), start);
        let worked = start + self.work();
        let at = self.steps(&node.steps, Inside { parent: me, process }, worked);
        let end = at + self.work();
        if let Some(crash) = self.crash.filter(|_| self.is_down(process, end)) {
            return CallEnd::Broken { at: crash.at.max(start) + self.latency() };
        }
        let is_error = percent(self.dice, node.fails);
        self.spans[me].is_error = is_error;
        self.close(me, end);
        CallEnd::Answered { at: end, is_error }
    }

    fn steps(&mut self, steps: &'s [SystemStep], inside: Inside, mut at: u64) -> u64 {
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
                self.spans[me].target = CallTarget::Database;
                let end = at + self.work();
                self.close(me, end);
                end
            }
            What::Outside { label, peer } => {
                let me = self.open(inside, Kind::Client, label, at);
                self.spans[me].target = CallTarget::Peer(peer);
                self.spans[me].is_error = percent(self.dice, 3);
                let end = at + self.work();
                self.close(me, end);
                end
            }
            What::Slow { label, time } => {
                let me = self.open(inside, Kind::Internal, label, at);
                self.close(me, at + time);
                at + time
            }
            What::Late(late) => {
                self.late(late, inside, at);
                at
            }
            What::Call(call) => self.call(call, inside, at),
            What::Publish(publish) => self.publish(publish, inside, at),
        }
    }

    /// Does work that no caller waits for.
    fn late(&mut self, late: &'s Late, inside: Inside, at: u64) {
        let begins = at + late.after;
        if self.is_down(inside.process, begins) {
            return;
        }
        let start = if late.is_held { at } else { begins };
        let me = self.open(inside, Kind::Internal, &late.label, start);
        let end = self.steps(&late.steps, Inside { parent: me, ..inside }, begins) + self.work();
        self.spans[me].is_error = percent(self.dice, late.fails);
        self.close(me, end);
    }

    fn call(&mut self, call: &'s SystemCall, inside: Inside, at: u64) -> u64 {
        if call.hop == Hop::Bare {
            let (parent, trace) = (Parent::Span(inside.parent), self.spans[inside.parent].trace);
            let place = Some(path(&call.to));
            let came =
                ServiceEntry { parent, link: None, caller: None, kind: Kind::Server, trace, place };
            let start = at + self.latency();
            return match self.serve(&call.to, came, start) {
                CallEnd::Answered { at, .. } | CallEnd::Broken { at } => at,
            };
        }
        let outer = self.open(inside, Kind::Client, &call.label, at);
        self.spans[outer].target = CallTarget::Peer(&call.peer);
        let inner = match call.hop {
            Hop::Layered => {
                let inner =
                    self.open(Inside { parent: outer, ..inside }, Kind::Client, &call.label, at);
                self.spans[inner].target = CallTarget::Peer(&call.peer);
                Some(inner)
            }
            _ => None,
        };
        let exchange = self.exchange(call, inner.unwrap_or(outer), at);
        let Exchange { end, is_error, has_given_up } = exchange;
        for client in inner.into_iter().chain([outer]) {
            self.spans[client].is_error = is_error;
            self.spans[client].has_given_up = has_given_up;
            self.spans[client].place = Some(path(&call.to));
            self.close(client, end);
        }
        end
    }

    /// Plays the network exchange of a call.
    fn exchange(&mut self, call: &'s SystemCall, client: usize, at: u64) -> Exchange {
        if percent(self.dice, 1) {
            // Refused: the callee does not see it.
            let end = at + self.latency();
            return Exchange { end, is_error: true, has_given_up: false };
        }
        let (parent, trace) = match call.hop {
            Hop::Gateway => (Parent::Absent(self.id()), self.spans[client].trace),
            _ => self.passed_on(client, call.loses),
        };
        let (caller, kind, place) = (Some(client), Kind::Server, Some(path(&call.to)));
        let came = ServiceEntry { parent, link: None, caller, kind, trace, place };
        let start = at + self.latency();
        let served = self.serve(&call.to, came, start);
        let (answered, is_error) = match served {
            CallEnd::Answered { at, is_error } => (at + self.latency(), is_error),
            CallEnd::Broken { at } => (at, true),
        };
        let patience = match percent(self.dice, 80) {
            true => between(self.dice, MS, 20 * MS),
            false => between(self.dice, 20 * MS, SECOND),
        };
        let patience = start + patience;
        match percent(self.dice, call.gives_up) && patience < answered {
            // The caller gives up, and the other side continues.
            true => Exchange { end: patience, is_error: true, has_given_up: true },
            false => Exchange { end: answered, is_error, has_given_up: false },
        }
    }

    /// Returns the parent and the trace for the other side of a call or message.
    fn passed_on(&mut self, caller: usize, loses: usize) -> (Parent, u64) {
        match percent(self.dice, loses) {
            true => (Parent::Lost(caller), self.id()),
            false => (Parent::Span(caller), self.spans[caller].trace),
        }
    }

    fn publish(&mut self, publish: &'s Publish, inside: Inside, at: u64) -> u64 {
        let me = self.open(inside, Kind::Producer, &publish.label, at);
        self.spans[me].target = CallTarget::Queue(&publish.destination);
        let end = at + self.latency();
        self.close(me, end);
        for node in &publish.to {
            let (mut parent, trace) = self.passed_on(me, publish.loses);
            let mut link = None;
            if publish.is_linked && parent == Parent::Span(me) {
                (parent, link) = (Parent::Span(inside.parent), Some(me));
            }
            let (caller, place) = (Some(me), Some(publish.destination.as_str()));
            let came = ServiceEntry { parent, link, caller, kind: Kind::Consumer, trace, place };
            let start = end + between(self.dice, MS / 10, publish.wait);
            // A consumer that is down gets the message later, which is out of scope.
            let _ = self.serve(node, came, start);
        }
        end
    }
}
