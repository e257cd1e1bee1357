//! A randomly generated system: services, their processes, and the work of a request.
//!
//! A system is used for several runs, so that the learned profile of one run serves the next. Deliberately absent: the events of
//! a single run (`play`) and the transport of spans (`travel`).

use std::time::Duration;

use super::{
    chance::{Dice, between, percent},
    trouble::{Exports, Troubles},
};

pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000 * MS;

/// The names of the tested batch delays; in `mixed` systems, processes have different ones.
pub(super) const CLASSES: [&str; 5] = ["1 ms", "100 ms", "1 s", "5 s", "mixed"];

const DEPTH_MAX: usize = 5;

/// The bounds of generated systems.
#[derive(Clone, Copy)]
pub(super) struct Size {
    services_max: usize,
    delays: [u64; 4],
    /// The longest waiting time of a message, or of work after the response.
    wait_max: u64,
    /// The upper bound of a clock's skew.
    skew_max: u64,
    /// The timeout of a run.
    timeout: Duration,
    /// How often we start the system ourselves, and how often a test declares `flush`, in percent.
    started: usize,
    pub(super) flush: usize,
}

/// For a virtual clock.
pub(super) const LARGE: Size = Size {
    services_max: 12,
    delays: [MS, 100 * MS, SECOND, 5 * SECOND],
    wait_max: 10 * SECOND,
    skew_max: 300 * SECOND,
    timeout: Duration::from_secs(30),
    started: 20,
    flush: 15,
};

/// For real time, in which few runs may take the six seconds that an unknown peer requires.
pub(super) const SMALL: Size = Size {
    services_max: 3,
    delays: [MS, 20 * MS, 80 * MS, 200 * MS],
    wait_max: 300 * MS,
    skew_max: 200 * MS,
    timeout: Duration::from_secs(8),
    started: 60,
    flush: 30,
};

/// A system under test.
pub(super) struct System {
    pub(super) services: Vec<Service>,
    pub(super) processes: Vec<Process>,
    /// The node that responds to the trigger.
    pub(super) root: Node,
    /// Whether a proxy is in front of it that creates a span and never sends it.
    pub(super) root_hop: Hop,
    /// The index into [`CLASSES`].
    pub(super) class: usize,
    /// The batch delay that marked processes were configured with, if we started any.
    pub(super) started: Option<Duration>,
    /// Whether it can be requested to flush.
    pub(super) drains: bool,
    pub(super) troubles: Troubles,
    pub(super) size: Size,
}

pub(super) struct Service {
    pub(super) name: String,
    /// Its processes.
    pub(super) processes: Vec<usize>,
    /// The part of its spans that it sends.
    pub(super) exports: Exports,
    /// Whether it drops attributes and events.
    pub(super) drops: bool,
    /// Whether its server spans report the address under which it was called.
    pub(super) says_address: bool,
}

pub(super) struct Process {
    pub(super) service: usize,
    /// How it reports its identity.
    pub(super) identity: Identity,
    pub(super) batch: Batch,
    /// How far its clock is ahead, in nanoseconds.
    pub(super) skew: i64,
    /// Whether it carries the marker of processes that we started.
    pub(super) is_marked: bool,
    /// Whether its SDK reports which parents are remote.
    pub(super) tells_remote: bool,
    /// Whether it sends its spans to another server.
    pub(super) is_elsewhere: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Identity {
    Instance(u64),
    HostAndPid(u64, u64),
    /// None; then it is the only process of its service.
    Unsaid,
}

/// The batch configuration of a process.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    pub(super) delay: u64,
    /// Whether it exports at fixed times; else a delay after the first queued span.
    pub(super) is_periodic: bool,
}

/// The work of a service for one request or message.
pub(super) struct Node {
    pub(super) service: usize,
    pub(super) name: String,
    pub(super) value: Option<i64>,
    /// How often it fails, in percent.
    pub(super) fails: usize,
    pub(super) steps: Vec<SystemStep>,
}

/// A step; steps run in sequence.
pub(super) struct SystemStep {
    pub(super) what: What,
    /// How often it runs at all, in percent.
    pub(super) chance: usize,
    /// How many times it runs, minimum and maximum.
    pub(super) times: (usize, usize),
}

pub(super) enum What {
    Internal {
        label: Label,
        steps: Vec<SystemStep>,
    },
    Database(Label),
    /// A call to a peer that never sends spans.
    Outside {
        label: Label,
        peer: Peer,
    },
    Call(SystemCall),
    Publish(Publish),
    /// Slow work while the caller waits.
    Slow {
        label: Label,
        time: u64,
    },
    Late(Late),
}

/// Work that ends after the response, and that no span announces.
pub(super) struct Late {
    pub(super) label: Label,
    /// The delay after its start request.
    pub(super) after: u64,
    /// Whether its span begins with the start request, and not with the work.
    pub(super) is_held: bool,
    /// How often it fails, in percent.
    pub(super) fails: usize,
    pub(super) steps: Vec<SystemStep>,
}

pub(super) struct Label {
    pub(super) name: String,
    pub(super) value: Option<i64>,
}

pub(super) struct SystemCall {
    pub(super) label: Label,
    pub(super) peer: Peer,
    pub(super) hop: Hop,
    pub(super) to: Node,
    /// How often the context is lost, and how often the client gives up, in percent.
    pub(super) loses: usize,
    pub(super) gives_up: usize,
}

pub(super) struct Publish {
    pub(super) label: Label,
    pub(super) destination: String,
    /// The consumers of the message.
    pub(super) to: Vec<Node>,
    /// Whether the consumer's span links to the producer's, which is not its parent.
    pub(super) is_linked: bool,
    /// The longest waiting time of a message.
    pub(super) wait: u64,
    /// How often the context is lost, in percent.
    pub(super) loses: usize,
}

/// How a call gets from one service to another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hop {
    Direct,
    /// Through a proxy that creates a span and never sends it.
    Gateway,
    /// One CLIENT span within another: a library over a library.
    Layered,
    /// Without a CLIENT span: the context is propagated manually.
    Bare,
}

/// How a call names its callee.
pub(super) enum Peer {
    Service(String),
    Address(String, u16),
    Unsaid,
}

impl System {
    pub(super) fn draw(dice: &mut Dice, size: Size) -> Self {
        let class = dice.below(CLASSES.len());
        let budget = 1 + dice.below(size.services_max);
        // Real processes send all their spans, to the only receiver.
        let troubles = match size.services_max == SMALL.services_max {
            true => Troubles::default(),
            false => Troubles::draw(dice),
        };
        let mut draft = Draft { dice, size, troubles, budget, services: 0, nodes: 0 };
        let root = draft.node(0);
        let root_hop = if percent(draft.dice, 4) { Hop::Gateway } else { Hop::Direct };
        let services = draft.services;
        let started =
            percent(dice, size.started).then(|| Duration::from_millis(between(dice, 1, 100)));
        let mut system = Self {
            services: Vec::new(),
            processes: Vec::new(),
            root,
            root_hop,
            class,
            started,
            drains: percent(dice, 4),
            troubles,
            size,
        };
        for number in 0..services {
            system.people(number, services, dice);
        }
        system
    }

    /// Creates the processes of a service.
    fn people(&mut self, number: usize, services: usize, dice: &mut Dice) {
        let count = if percent(dice, 25) { 2 } else { 1 };
        let delays = self.size.delays;
        let delay = delays.get(self.class).copied();
        let delay = delay.unwrap_or_else(|| delays[dice.below(delays.len())]);
        let is_periodic = percent(dice, 70);
        let is_marked = self.started.is_some() && percent(dice, 80);
        let tells_remote = percent(dice, 50) || self.is_real();
        let delay = match self.started {
            Some(set) if is_marked => set.as_nanos() as u64,
            _ => delay,
        };
        let mut service = Service {
            name: format!("s{number}"),
            processes: Vec::new(),
            exports: Exports::draw(&self.troubles, number, services, dice),
            drops: self.troubles.drops && percent(dice, 60),
            says_address: percent(dice, 60),
        };
        for _ in 0..count {
            service.processes.push(self.processes.len());
            let identity = match dice.below(3) {
                0 => Identity::Instance(dice.next()),
                1 => Identity::HostAndPid(between(dice, 1, 4), between(dice, 2, 60_000)),
                _ if count == 1 => Identity::Unsaid,
                _ => Identity::Instance(dice.next()),
            };
            let batch = Batch { delay, is_periodic };
            // Processes that we started run on our machine.
            let skew = if is_marked { 0 } else { skew(dice, self.size.skew_max) };
            self.processes.push(Process {
                service: number,
                identity,
                batch,
                skew,
                is_marked,
                tells_remote,
                is_elsewhere: self.troubles.has_second_receiver && percent(dice, 40),
            });
        }
        self.services.push(service);
    }

    /// The timeout of a run.
    pub(super) fn timeout(&self) -> Duration {
        self.size.timeout
    }

    /// Whether it is played in real time.
    pub(super) fn is_real(&self) -> bool {
        self.size.services_max == SMALL.services_max
    }

    pub(super) fn service_of(&self, process: usize) -> &Service {
        &self.services[self.processes[process].service]
    }
}

fn skew(dice: &mut Dice, most: u64) -> i64 {
    let size = match dice.below(10) {
        0..6 => 0,
        6 | 7 => between(dice, 0, 20 * MS),
        8 => between(dice, 0, 3 * SECOND),
        _ => between(dice, 0, 300 * SECOND),
    };
    let size = size.min(most) as i64;
    if percent(dice, 50) { size } else { -size }
}

/// A system under construction.
struct Draft<'d> {
    dice: &'d mut Dice,
    size: Size,
    troubles: Troubles,
    /// The number of services that may still be created.
    budget: usize,
    services: usize,
    nodes: usize,
}

impl Draft<'_> {
    fn node(&mut self, depth: usize) -> Node {
        // A service may be called from several nodes, for different work.
        let is_known = self.services > 0 && percent(self.dice, 15);
        let service = match is_known {
            true => self.dice.below(self.services),
            false => self.services,
        };
        if !is_known {
            self.budget = self.budget.saturating_sub(1);
            self.services += 1;
        }
        self.nodes += 1;
        let count = 1 + self.dice.below(4);
        Node {
            service,
            name: format!("GET /s{service}/{}", self.nodes),
            value: self.value(),
            fails: if self.dice.once_in(8) { 30 } else { 1 },
            steps: (0..count).map(|_| self.step(depth)).collect(),
        }
    }

    fn value(&mut self) -> Option<i64> {
        (!percent(self.dice, 10)).then(|| between(self.dice, 1, 3) as i64)
    }

    fn label(&mut self, names: &[&str]) -> Label {
        Label { name: self.dice.pick(names).to_owned(), value: self.value() }
    }

    fn step(&mut self, depth: usize) -> SystemStep {
        let chance = if percent(self.dice, 70) { 100 } else { 20 + self.dice.below(80) };
        let times = match self.dice.below(8) {
            0 => (1, 4),
            1 => (2, 2),
            _ => (1, 1),
        };
        SystemStep { what: self.what(depth), chance, times }
    }

    fn what(&mut self, depth: usize) -> What {
        let may_call = self.budget > 0 && depth < DEPTH_MAX;
        match self.dice.below(100) {
            0..45 if may_call => What::Call(self.call(depth)),
            45..57 if may_call => What::Publish(self.publish(depth)),
            57..72 => What::Database(self.label(&["select", "insert"])),
            72..78 => {
                let label = self.label(&["POST", "lookup"]);
                What::Outside { label, peer: self.outside() }
            }
            78..83 => What::Late(self.late(depth)),
            83..85 => {
                let time = between(self.dice, 20 * MS, 3 * SECOND).min(self.size.wait_max);
                What::Slow { label: self.label(&["wait", "retry"]), time }
            }
            _ => {
                let label = self.label(&["compute", "render", "check"]);
                let count = if depth < DEPTH_MAX { self.dice.below(3) } else { 0 };
                let steps = (0..count).map(|_| self.step(depth + 1)).collect();
                What::Internal { label, steps }
            }
        }
    }

    /// Generates late work: from a millisecond to ten seconds late, each magnitude with the same probability.
    fn late(&mut self, depth: usize) -> Late {
        let most = match self.dice.below(4) {
            0 => 15 * MS,
            1 => 150 * MS,
            2 => 1_500 * MS,
            _ => 10 * SECOND,
        };
        let after = between(self.dice, most / 15, most).min(self.size.wait_max);
        let count = if depth < DEPTH_MAX { self.dice.below(5).saturating_sub(2) } else { 0 };
        Late {
            label: self.label(&["audit", "cleanup"]),
            after,
            is_held: percent(self.dice, 50),
            fails: if percent(self.dice, 30) { 20 } else { 1 },
            steps: (0..count).map(|_| self.step(depth + 1)).collect(),
        }
    }

    fn outside(&mut self) -> Peer {
        let number = self.dice.below(3);
        match self.dice.below(10) {
            0 => Peer::Unsaid,
            1..4 => Peer::Service(format!("outside-{number}")),
            _ => Peer::Address(format!("outside-{number}.test"), 443),
        }
    }

    fn call(&mut self, depth: usize) -> SystemCall {
        let hop = match self.dice.below(100) {
            0..3 => Hop::Gateway,
            3..6 => Hop::Layered,
            6..8 => Hop::Bare,
            _ => Hop::Direct,
        };
        let label = self.label(&["GET", "call"]);
        let to = self.node(depth + 1);
        let peer = match (hop, self.dice.below(20)) {
            (Hop::Gateway, _) => Peer::Address("gateway.test".to_owned(), 8080),
            (_, 0) => Peer::Unsaid,
            (_, 1..6) => Peer::Service(format!("s{}", to.service)),
            _ => Peer::Address(format!("s{}.test", to.service), 8080),
        };
        let (loses, gives_up) = match hop {
            // The proxy or the manual code has the context.
            Hop::Gateway | Hop::Bare => (0, 1),
            _ => (self.troubles.loses(self.dice), self.troubles.gives_up(self.dice)),
        };
        SystemCall { label, peer, hop, to, loses, gives_up }
    }

    fn publish(&mut self, depth: usize) -> Publish {
        let label = self.label(&["send", "publish"]);
        let count = if percent(self.dice, 15) { 2 } else { 1 };
        let to: Vec<_> = (0..count).map(|_| self.node(depth + 1)).collect();
        let wait = match self.dice.below(10) {
            0..5 => 20 * MS,
            5..9 => 2 * SECOND,
            _ => 10 * SECOND,
        };
        let wait = wait.min(self.size.wait_max);
        let destination = format!("queue-{}", self.services);
        let is_linked = percent(self.dice, 20);
        let loses = self.troubles.loses(self.dice);
        Publish { label, destination, to, is_linked, wait, loses }
    }
}
