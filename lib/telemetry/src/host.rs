//! What a program hands to its telemetry: clock, chance, a name, and an ear for what goes wrong.
//!
//! Deliberately absent: the environment and files. They are read by the caller and come as a plan.

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

/// What a program hands to its telemetry.
#[derive(Clone)]
pub struct Host {
    /// How requests name their sender: `program/1.2.3`.
    pub user_agent: String,
    /// Attributes of the resource beside `service.name`, which each exporter has of its own.
    pub resource: Vec<KeyValue>,
    /// Which instrumentation scopes, and which targets of the `tracing` bridge, are exported: those that begin with
    /// one of these. Empty is all.
    pub scopes: Vec<String>,
    /// The crates of the program, by their names in targets of the `tracing` bridge. Of all other crates, only warnings and errors
    /// are exported: what libraries log below that is for those who debug them, and may quote values. Empty is all crates.
    pub crates: Vec<String>,
    /// Hears what goes wrong and when it is over, once for each change. Called on threads of telemetry's own, where nothing is
    /// recorded: it may log, and the log will not be exported.
    pub notice: Arc<dyn Fn(&Notice<'_>) + Send + Sync>,
    /// The monotonic clock.
    pub now: fn() -> Instant,
    /// The wall clock.
    pub wall: fn() -> SystemTime,
    /// Chance, for jitter.
    pub random: fn() -> u64,
}

/// Something that a person should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice<'a> {
    /// The exporter that it is about.
    pub exporter: &'a str,
    /// What it is about.
    pub topic: Topic,
    /// Whether it is over; otherwise it has begun.
    pub is_over: bool,
    /// What happened and what to do.
    pub message: &'a str,
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Whether it gets through to its destination.
    Delivery,
    /// How full its buffer is.
    Buffer,
    /// Whether its full buffer holds the program.
    Hold,
    /// Whether it drops.
    Drops,
    /// Whether its buffer can be written.
    Disk,
    /// What its destination refused for good.
    Refusal,
}

impl Topic {
    /// The word for it.
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
    /// A program of this name on the system's clock, with nobody to hear notices.
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

    /// The resource of all signals, but for `service.name`.
    pub(crate) fn resource(&self) -> ResourceBuilder {
        Resource::builder_empty()
            .with_detector(Box::new(TelemetryResourceDetector))
            .with_attributes([
                KeyValue::new("telemetry.distro.name", env!("CARGO_PKG_NAME")),
                KeyValue::new("telemetry.distro.version", env!("CARGO_PKG_VERSION")),
            ])
            .with_attributes(self.resource.iter().cloned())
    }

    /// Whether this scope or target is exported.
    pub(crate) fn exports(scopes: &[String], name: &str) -> bool {
        scopes.is_empty() || scopes.iter().any(|scope| name.starts_with(scope.as_str()))
    }

    /// Whether this target of the `tracing` bridge is in a crate of the program.
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

/// Nothing that this thread does from now on is recorded: no span, no log. For threads that must not wait, since a full
/// buffer holds whoever ends a span.
pub fn suppress_this_thread() {
    thread_local! {
        static SUPPRESSED: RefCell<Option<ContextGuard>> = const { RefCell::new(None) };
    }
    let guard = Context::enter_telemetry_suppressed_scope();
    SUPPRESSED.with(|kept| *kept.borrow_mut() = Some(guard));
}
