//! Computes bounds of the offset between the clocks of two hosts, from causality alone.
//!
//! A parent starts before its child, and a server span lies inside the client span that called it and waited for it.
//! Each such pair across hosts bounds the offset between their clocks from one side or from both; offsets add up along
//! a chain of hosts. A client that failed may have given up before its server ended, so it bounds from one side only.
//! If the bounds contradict each other (a clock that was set during the trace), the offset is unknown.
//!
//! The host of a span is `host.id`, else `host.name`, else `k8s.node.name` of its resource, else the resource itself.

use std::collections::HashMap;

use model::trace::{Kind, Resource, ResourceIx, Span, SpanIx, StatusCode};

use super::{
    span_time::{end_of, start_of, time_lack},
    world::EvalContext,
};
use crate::value::{Value, show_duration};

/// The hosts of a trace, and the offsets of their clocks.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// The host of each span, by the number of the span.
    hosts: Vec<u32>,
    names: Vec<String>,
    offsets: Offsets,
}

/// The known offsets between hosts.
#[derive(Debug)]
enum Offsets {
    /// All pairs, by the first host, then by the second.
    All(Vec<Offset>),
    /// The upper bound of the offset to add, for hosts that call each other directly.
    Direct(HashMap<(u32, u32), i128>),
}

/// The offset that converts a time of one host to a time of another: between the two bounds, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    pub(crate) low: i128,
    pub(crate) high: i128,
}

/// The number of hosts beyond which only hosts that call each other directly are compared.
const HOSTS_MAX: usize = 256;

/// Larger than the difference of any two timestamps.
const FAR: i128 = 1 << 80;

const HOST_KEYS: [&str; 3] = ["host.id", "host.name", "k8s.node.name"];

impl Offset {
    pub(crate) const NONE: Self = Self { low: 0, high: 0 };
    const UNKNOWN: Self = Self { low: -FAR, high: FAR };

    /// Returns an offset with these bounds; unknown if they contradict each other.
    fn between(low: i128, high: i128) -> Self {
        if low > high { Self::UNKNOWN } else { Self { low, high } }
    }

    /// Whether both bounds are known.
    pub(crate) fn is_bounded(self) -> bool {
        -FAR < self.low && self.high < FAR
    }

    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }
}

impl Clocks {
    pub(crate) fn of(world: &EvalContext<'_>) -> Self {
        let (hosts, names) = hosts(world);
        let mut bounds = HashMap::new();
        let mut bound = |from: u32, to: u32, nanos: i128| {
            let known = bounds.entry((from, to)).or_insert(nanos);
            *known = nanos.min(*known);
        };
        for called in world.trace.spans() {
            let Some(above) = world.tree.parent(called.ix()) else { continue };
            let (parent, child) = (hosts[above.number()], hosts[called.ix().number()]);
            if parent == child {
                continue;
            }
            let caller = world.trace.span(above);
            if let (Some(start), Some(earlier)) = (start_of(called), start_of(caller)) {
                bound(child, parent, i128::from(start) - i128::from(earlier));
            }
            if has_waited(caller, called)
                && let (Some(end), Some(earlier)) = (end_of(caller), end_of(called))
            {
                bound(parent, child, i128::from(end) - i128::from(earlier));
            }
        }
        let offsets = match names.len() <= HOSTS_MAX {
            true => Offsets::All(tightest(&bounds, names.len())),
            false => Offsets::Direct(bounds),
        };
        Self { hosts, names, offsets }
    }

    /// Returns the number of hosts.
    pub(crate) fn hosts(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn host_of(&self, span: SpanIx) -> u32 {
        self.hosts[span.number()]
    }

    /// Returns the offset to add to a time of `other` to get a time on the clock of `host`.
    pub(crate) fn offset(&self, host: u32, other: u32) -> Offset {
        match &self.offsets {
            _ if host == other => Offset::NONE,
            Offsets::All(offsets) => offsets[host as usize * self.names.len() + other as usize],
            Offsets::Direct(bounds) => {
                let bound = |from, to| bounds.get(&(from, to)).copied().unwrap_or(FAR);
                Offset::between(-bound(other, host), bound(host, other))
            }
        }
    }

    /// Describes why a comparison of times on two hosts is open.
    pub(crate) fn doubt(&self, host: u32, other: u32) -> String {
        let name = |host: u32| crate::value::shorten(&self.names[host as usize]).into_owned();
        let (names, offset) = ((name(host), name(other)), self.offset(host, other));
        let clocks = format!("the clocks of `{}` and `{}`", names.0, names.1);
        match (offset.low > -FAR, offset.high < FAR) {
            (true, true) => {
                let (low, high) = (show_duration(offset.low), show_duration(offset.high));
                format!("{clocks} may differ by {low} to {high}")
            }
            (true, false) => {
                format!("{clocks} may differ by {} or more", show_duration(offset.low))
            }
            (false, true) => {
                format!("{clocks} may differ by {} or less", show_duration(offset.high))
            }
            (false, false) => format!("{clocks} cannot be compared"),
        }
    }
}

/// Whether a client waited until its server ended. It did not if it failed, since it may have given up, nor if the
/// server took longer, such as a server that continues after a stream or a response.
fn has_waited(client: Span<'_>, server: Span<'_>) -> bool {
    let is_failed =
        client.status() == StatusCode::Error || client.attributes().get("error.type").is_some();
    (client.kind(), server.kind()) == (Kind::Client, Kind::Server)
        && !is_failed
        && time_lack(client).is_none()
        && time_lack(server).is_none()
        && server.duration() <= client.duration()
}

/// Returns the tightest bounds along any chain of hosts. An offset that depends on a contradiction is unknown.
fn tightest(bounds: &HashMap<(u32, u32), i128>, hosts: usize) -> Vec<Offset> {
    let mut far = vec![FAR; hosts * hosts];
    for ((from, to), nanos) in bounds {
        far[*from as usize * hosts + *to as usize] = *nanos;
    }
    for via in 0..hosts {
        for from in 0..hosts {
            let first = far[from * hosts + via];
            if first >= FAR {
                continue;
            }
            for to in 0..hosts {
                let second = far[via * hosts + to];
                // Around a contradiction the bounds decrease without limit. They are not used, but must not overflow.
                let through = if second >= FAR { FAR } else { (first + second).max(-FAR) };
                let known = &mut far[from * hosts + to];
                *known = through.min(*known);
            }
        }
    }
    let at = |from: usize, to: usize| far[from * hosts + to];
    let broken: Vec<_> = (0..hosts).filter(|host| at(*host, *host) < 0).collect();
    let is_broken = |from: usize, to: usize| {
        broken.iter().any(|via| at(from, *via) < FAR && at(*via, to) < FAR)
    };
    let offset = |from: usize, to: usize| match is_broken(from, to) || is_broken(to, from) {
        true => Offset::UNKNOWN,
        false => Offset::between(-at(to, from), at(from, to)),
    };
    (0..hosts)
        .flat_map(|from| (0..hosts).map(move |to| (from, to)))
        .map(|(a, b)| offset(a, b))
        .collect()
}

fn hosts(world: &EvalContext<'_>) -> (Vec<u32>, Vec<String>) {
    let mut by_resource: HashMap<ResourceIx, u32> = HashMap::new();
    let mut by_name: HashMap<String, u32> = HashMap::new();
    let mut names = Vec::new();
    let mut host = |ix: ResourceIx, resource: Resource<'_>| {
        *by_resource.entry(ix).or_insert_with(|| {
            let new = |names: &mut Vec<String>, name: String| {
                names.push(name);
                names.len() as u32 - 1
            };
            let attribute = |key: &str| {
                resource.attributes().get(key).map(|value| Value::from(value).text().into_owned())
            };
            match HOST_KEYS.iter().find_map(|key| attribute(key)) {
                Some(name) => *by_name.entry(name.clone()).or_insert_with(|| new(&mut names, name)),
                None => {
                    let service = attribute("service.name");
                    new(&mut names, service.unwrap_or_else(|| "an unnamed resource".to_owned()))
                }
            }
        })
    };
    let mut last = None;
    let hosts = world
        .trace
        .spans()
        .map(|span| match last {
            Some((resource, host)) if resource == span.resource_ix() => host,
            _ => {
                let host = host(span.resource_ix(), span.resource());
                last = Some((span.resource_ix(), host));
                host
            }
        })
        .collect();
    (hosts, names)
}
