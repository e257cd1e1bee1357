//! The dependencies that a program passes to its telemetry: clocks, a random number source, a name, and a callback for
//! notices.
//!
//! Deliberately absent: the environment and files. The caller reads them and passes them as a plan.

use std::{
    cell::RefCell,
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::{Instant, SystemTime},
};

use opentelemetry::{Context, ContextGuard, KeyValue};
use opentelemetry_sdk::{
    Resource,
    resource::{ResourceBuilder, TelemetryResourceDetector},
};

/// The dependencies that a program passes to its telemetry.
#[derive(Clone)]
pub struct Host {
    /// The `User-Agent` of requests: `program/1.2.3`.
    pub user_agent: String,
    /// Attributes of the resource beside `service.name`, which each exporter sets itself.
    pub resource: Vec<KeyValue>,
    /// The prefixes of instrumentation scopes, and of targets of the `tracing` bridge, that are exported. Empty exports
    /// all.
    pub scopes: Vec<String>,
    /// The crates of the program, by their names in targets of the `tracing` bridge. For all other crates, only
    /// warnings and errors are exported: lower levels of libraries are for debugging the libraries, and may quote
    /// values. Empty means all crates.
    pub crates: Vec<String>,
    /// The callback for notices about failures and recoveries, called once for each change. It is called on telemetry's
    /// own threads, which record no telemetry: it may log, and the log will not be exported.
    pub notice: Arc<dyn Fn(&Notice<'_>) + Send + Sync>,
    /// The monotonic clock.
    pub now: fn() -> Instant,
    /// The wall clock.
    pub wall: fn() -> SystemTime,
    /// The random number source, for jitter.
    pub random: fn() -> u64,
}

/// A message for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice<'a> {
    /// The exporter that the notice is about.
    pub exporter: &'a str,
    /// The topic of the notice.
    pub topic: Topic,
    /// Whether the condition is over; otherwise it has begun.
    pub is_over: bool,
    /// The message: what happened and what to do.
    pub message: &'a str,
}

/// The topic of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Whether the exporter delivers to its destination.
    Delivery,
    /// How full its buffer is.
    Buffer,
    /// Whether its full buffer blocks the program.
    Hold,
    /// Whether it drops items.
    Drops,
    /// Whether its buffer can be written.
    Disk,
    /// Items that its destination rejected permanently.
    Refusal,
}

impl Topic {
    /// The name of the topic.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivery => "delivery",
            Self::Buffer => "buffer",
            Self::Hold => "hold",
            Self::Drops => "drops",
            Self::Disk => "disk",
            Self::Refusal => "refusal",
        }
    }
}

impl Host {
    /// A host with this name, the system clocks, and a callback that discards notices.
    #[expect(clippy::disallowed_methods, reason = "the clock of programs that hand down none")]
    pub fn new(user_agent: impl Into<String>) -> Self {
        Self {
            user_agent: user_agent.into(),
            resource: Vec::new(),
            scopes: Vec::new(),
            crates: Vec::new(),
            notice: Arc::new(|_| {}),
            now: Instant::now,
            wall: SystemTime::now,
            random: || RandomState::new().build_hasher().finish(),
        }
    }

    /// The resource of all signals, without `service.name`.
    pub(crate) fn resource(&self) -> ResourceBuilder {
        Resource::builder_empty()
            .with_detector(Box::new(TelemetryResourceDetector))
            .with_attributes([
                KeyValue::new("telemetry.distro.name", env!("CARGO_PKG_NAME")),
                KeyValue::new("telemetry.distro.version", env!("CARGO_PKG_VERSION")),
            ])
            .with_attributes(self.resource.iter().cloned())
    }

    /// Returns whether this scope or target is exported.
    pub(crate) fn exports(scopes: &[String], name: &str) -> bool {
        scopes.is_empty() || scopes.iter().any(|scope| name.starts_with(scope.as_str()))
    }

    /// Returns whether this target of the `tracing` bridge is in a crate of the program.
    #[cfg(feature = "tracing")]
    pub(crate) fn is_own(crates: &[String], target: &str) -> bool {
        let (name, _) = target.split_once("::").unwrap_or((target, ""));
        crates.is_empty() || crates.iter().any(|own| own == name)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("user_agent", &self.user_agent)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .field("crates", &self.crates)
            .finish_non_exhaustive()
    }
}

/// Disables telemetry on this thread from now on: no span and no log is recorded. For threads that must not block,
/// because a full buffer blocks every thread that ends a span.
pub fn suppress_this_thread() {
    thread_local! {
        static SUPPRESSED: RefCell<Option<ContextGuard>> = const { RefCell::new(None) };
    }
    let guard = Context::enter_telemetry_suppressed_scope();
    SUPPRESSED.with(|kept| *kept.borrow_mut() = Some(guard));
}
