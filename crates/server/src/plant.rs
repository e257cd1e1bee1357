//! Planted faults that tests have to find: one at a time, and only in a build with the feature `planted`.
//!
//! `cargo xtask dogfood --faults` plants each of them and names the test that has to find it. Without the feature the program
//! contains none of this. Deliberately absent: faults that the environment can cause, such as an unavailable database.

/// A planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// The trigger is sent twice.
    SecondTrigger,
    /// A step of a run has no span.
    MissingStep,
    /// The span of a step has another time than the step.
    StepsOutOfOrder,
    /// A list queries each of its items separately.
    NPlusOne,
    /// The caller's credential is in an attribute.
    SecretInAttribute,
    /// The text of a statement is in an attribute that the catalogue does not have.
    UnknownAttribute,
    /// A run does not link to the trace under test.
    DroppedLink,
    /// The span of a failed operation has no error status.
    SwallowedError,
    /// The span of a failed operation has no exception event.
    MissingException,
    /// A run begins its own trace.
    LostContext,
    /// A refused request is executed first.
    RefusedIsServed,
    /// The database is queried before a document is parsed.
    RejectedIsAsked,
    /// A repeated start with the same idempotency key starts a new run.
    KeyIgnored,
    /// Workers are notified twice.
    HintTwice,
    /// The name of a request's span contains its path.
    PathInName,
    /// A change has no row in the audit log.
    AuditForgotten,
    /// A list is slow.
    SlowList,
}

/// All faults, by name.
#[cfg(feature = "planted")]
const ALL: &[(&str, Plant)] = &[
    ("second-trigger", Plant::SecondTrigger),
    ("missing-step", Plant::MissingStep),
    ("steps-out-of-order", Plant::StepsOutOfOrder),
    ("n-plus-one", Plant::NPlusOne),
    ("secret-in-attribute", Plant::SecretInAttribute),
    ("unknown-attribute", Plant::UnknownAttribute),
    ("dropped-link", Plant::DroppedLink),
    ("swallowed-error", Plant::SwallowedError),
    ("missing-exception", Plant::MissingException),
    ("lost-context", Plant::LostContext),
    ("refused-is-served", Plant::RefusedIsServed),
    ("rejected-is-asked", Plant::RejectedIsAsked),
    ("key-ignored", Plant::KeyIgnored),
    ("hint-twice", Plant::HintTwice),
    ("path-in-name", Plant::PathInName),
    ("audit-forgotten", Plant::AuditForgotten),
    ("slow-list", Plant::SlowList),
];

#[cfg(feature = "planted")]
static PLANTED: std::sync::OnceLock<Plant> = std::sync::OnceLock::new();

/// Plants the fault of this name, once for the process; returns whether it exists.
#[cfg(feature = "planted")]
pub fn plant(name: &str) -> bool {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.is_some_and(|(_, plant)| PLANTED.set(*plant).is_ok())
}

/// Whether this fault is planted.
#[cfg(feature = "planted")]
pub(crate) fn is_planted(plant: Plant) -> bool {
    PLANTED.get() == Some(&plant)
}

/// Whether this fault is planted: always false.
#[cfg(not(feature = "planted"))]
pub(crate) const fn is_planted(_: Plant) -> bool {
    false
}
