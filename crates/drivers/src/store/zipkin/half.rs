//! Merges the reports of one side of a span: several parts, in any order, and repetitions.

use super::report::{Endpoint, Report};

/// All that one service reported about a span. Client and server of a shared id are two halves.
#[derive(Debug)]
pub(super) struct SpanHalf {
    pub(super) report: Report,
    /// Whether two reports of its end contradict each other.
    pub(super) has_two_ends: bool,
}

/// Returns the halves, ordered by id, the client of a shared id first.
pub(super) fn merge(mut reports: Vec<Report>) -> Vec<SpanHalf> {
    // A report with a duration is the last about its span, so its values override those of others. The order of the answer must not matter.
    reports.sort_by(|one, other| {
        let key = |it: &Report| (it.id, it.shared, it.duration.is_none(), it.service().is_none());
        key(one).cmp(&key(other)).then_with(|| one.cmp(other))
    });
    let mut halves: Vec<SpanHalf> = Vec::new();
    for report in reports {
        let of_id = halves.iter_mut().rev().take_while(|half| half.report.id == report.id);
        match of_id.filter(|half| half.is_same_side(&report)).last() {
            Some(half) => half.add(report),
            None => halves.push(SpanHalf { report, has_two_ends: false }),
        }
    }
    halves
}

impl SpanHalf {
    /// Whether nothing speaks against a report being of the same service.
    fn is_same_side(&self, other: &Report) -> bool {
        let own = &self.report;
        let is_same_endpoint = match (&own.local_endpoint, &other.local_endpoint) {
            (Some(own), Some(other)) => {
                agree(own.service_name.as_ref(), other.service_name.as_ref())
                    && agree(own.ipv4.as_ref(), other.ipv4.as_ref())
                    && agree(own.ipv6.as_ref(), other.ipv6.as_ref())
                    && agree(own.port, other.port)
            }
            _ => true,
        };
        own.shared == other.shared && is_same_endpoint && agree(own.kind, other.kind)
    }

    /// Adds what is not known yet.
    fn add(&mut self, other: Report) {
        let own = &mut self.report;
        let ends = own.duration.is_some() && other.duration.is_some();
        let is_same_time = own.duration == other.duration && agree(own.timestamp, other.timestamp);
        self.has_two_ends |= ends && !is_same_time;
        own.parent_id = own.parent_id.or(other.parent_id);
        own.kind = own.kind.or(other.kind);
        own.timestamp = own.timestamp.or(other.timestamp);
        own.duration = own.duration.or(other.duration);
        own.debug |= other.debug;
        fill(&mut own.name, other.name);
        fill_endpoint(&mut own.local_endpoint, other.local_endpoint);
        fill_endpoint(&mut own.remote_endpoint, other.remote_endpoint);
        for (key, value) in other.tags {
            own.tags.entry(key).or_insert(value);
        }
        own.annotations.extend(other.annotations);
        own.annotations.sort();
        own.annotations.dedup();
    }
}

/// Whether two values are not known to differ.
fn agree<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one == other)
}

fn fill<T>(own: &mut Option<T>, other: Option<T>) {
    if own.is_none() {
        *own = other;
    }
}

fn fill_endpoint(own: &mut Option<Endpoint>, other: Option<Endpoint>) {
    let Some(other) = other else { return };
    let own = own.get_or_insert_default();
    fill(&mut own.service_name, other.service_name);
    fill(&mut own.ipv4, other.ipv4);
    fill(&mut own.ipv6, other.ipv6);
    fill(&mut own.port, other.port);
}
