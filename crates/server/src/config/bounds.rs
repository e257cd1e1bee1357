//! `workers`, `retention` and `server.limits`: limits of concurrency, time and size.

use std::{ops::RangeInclusive, time::Duration};

use db::PartitionPeriod;
use source::{Fields, Item};

/// The settings of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// The maximum number of active runs.
    pub runs_max: usize,
    /// How long a lease on a run lasts without renewal.
    pub lease: Duration,
    /// How often a worker polls the database for runs without a notification.
    pub poll: Duration,
    /// The maximum number of active runs against one host, of all servers on this database.
    pub host_max: u32,
    /// The timeout of a run, and the upper bound for a timeout that a run sets itself.
    pub timeout: Duration,
}

/// The retention of stored data; `None` means forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The runs with their verdicts and events.
    pub runs: Option<Duration>,
    /// The traces of runs.
    pub traces: Option<Duration>,
    /// The audit log.
    pub audit: Option<Duration>,
    /// The period of the tables that hold runs and traces.
    pub partition: PartitionPeriod,
}

/// The limits for requests and traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of a request body in bytes.
    pub body_bytes_max: usize,
    /// The maximum number of requests a second of one caller.
    pub requests_per_second_max: u32,
    /// The maximum number of requests a second of all callers of one project.
    pub project_requests_per_second_max: u32,
    /// The maximum number of queued runs, of all servers.
    pub queued_runs_max: u32,
    /// The maximum number of OTLP bytes of a run's trace.
    pub trace_bytes_max: usize,
    /// The maximum number of spans of a run's trace.
    pub trace_spans_max: usize,
}

impl Default for Workers {
    fn default() -> Self {
        Self {
            runs_max: 64,
            lease: Duration::from_secs(10),
            poll: Duration::from_secs(1),
            host_max: 32,
            timeout: Duration::from_secs(10 * 60),
        }
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for Retention {
    fn default() -> Self {
        Self {
            runs: Some(400 * DAY),
            traces: Some(30 * DAY),
            audit: Some(400 * DAY),
            partition: PartitionPeriod::Month,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 1 << 20,
            requests_per_second_max: 200,
            project_requests_per_second_max: 400,
            queued_runs_max: 100_000,
            trace_bytes_max: 64 << 20,
            trace_spans_max: 1_000_000,
        }
    }
}

pub(super) fn workers(mut fields: Fields<'_>) -> Workers {
    // A lease is renewed at a third of it: below three seconds a slow disk would make workers lose runs.
    const LEASE: RangeInclusive<Duration> = Duration::from_secs(3)..=Duration::from_secs(600);
    const POLL: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(60);
    const TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=DAY;
    let default = Workers::default();
    let workers = Workers {
        runs_max: fields.integer("runs", 1..=10_000).unwrap_or(default.runs_max),
        lease: duration(&mut fields, "lease", LEASE).unwrap_or(default.lease),
        poll: duration(&mut fields, "poll", POLL).unwrap_or(default.poll),
        host_max: fields.integer("perHost", 1..=10_000).unwrap_or(default.host_max),
        timeout: duration(&mut fields, "timeout", TIMEOUT).unwrap_or(default.timeout),
    };
    fields.finish();
    workers
}

pub(super) fn retention(mut fields: Fields<'_>) -> Retention {
    const PERIODS: &[(&str, PartitionPeriod)] =
        &[("month", PartitionPeriod::Month), ("day", PartitionPeriod::Day)];
    let partition = fields.choice("partition", PERIODS).unwrap_or_default();
    let mut kept = |key: &str, default: Option<Duration>| {
        fields.take(key).and_then(|item| days(&item)).unwrap_or(default)
    };
    let default = Retention::default();
    let retention = Retention {
        runs: kept("runs", default.runs),
        traces: kept("traces", default.traces),
        audit: kept("audit", default.audit),
        partition,
    };
    fields.finish();
    retention
}

pub(super) fn limits(mut fields: Fields<'_>) -> Limits {
    const BODY: RangeInclusive<u64> = 1 << 10..=64 << 20;
    // A trace is stored compressed in one row, and read as a whole.
    const TRACE: RangeInclusive<u64> = 1 << 20..=256 << 20;
    let default = Limits::default();
    let mut size = |key: &str, range: RangeInclusive<u64>, default: usize| {
        let size = fields.take(key).and_then(|item| item.size(range));
        size.map_or(default, |size| usize::try_from(size).unwrap_or(usize::MAX))
    };
    let body_bytes_max = size("bodyBytes", BODY, default.body_bytes_max);
    let trace_bytes_max = size("traceBytes", TRACE, default.trace_bytes_max);
    let requests = fields.integer("requestsPerSecond", 1..=1_000_000);
    let project_requests = fields.integer("projectRequestsPerSecond", 1..=1_000_000);
    let queued = fields.integer("queuedRuns", 1..=10_000_000);
    let spans = fields.integer("spansPerTrace", 1..=10_000_000);
    fields.finish();
    Limits {
        body_bytes_max,
        trace_bytes_max,
        requests_per_second_max: requests.unwrap_or(default.requests_per_second_max),
        project_requests_per_second_max: project_requests
            .unwrap_or(default.project_requests_per_second_max),
        queued_runs_max: queued.unwrap_or(default.queued_runs_max),
        trace_spans_max: spans.unwrap_or(default.trace_spans_max),
    }
}

fn duration(
    fields: &mut Fields<'_>,
    key: &str,
    range: RangeInclusive<Duration>,
) -> Option<Duration> {
    let item = fields.take(key)?;
    let duration = item.duration()?;
    let fits = range.contains(&duration);
    if !fits {
        item.misfit(&format!("a duration from {:?} to {:?}", range.start(), range.end()));
    }
    fits.then_some(duration)
}

/// Parses `90d` or `forever`. Retention is in days, since history is dropped by whole partitions.
fn days(item: &Item<'_>) -> Option<Option<Duration>> {
    /// A hundred years.
    const DAYS_MAX: u32 = 36_500;
    let text = item.text()?.text.as_str();
    if text == "forever" {
        return Some(None);
    }
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    let days = days.filter(|days| (1..=DAYS_MAX).contains(days));
    if days.is_none() {
        item.misfit("days such as `90d`, or `forever`");
    }
    days.map(|days| Some(DAY * days))
}
