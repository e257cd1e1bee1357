//! Faults for tests to find: one at a time, and only in a build with the feature `planted`.
//!
//! `cargo xtask dogfood --faults` plants each of them and names the test that has to find it. Without the feature nothing of
//! this is in the program. Deliberately absent: faults that the world can show by itself, such as a database that is away.

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// The trigger is sent twice.
    SecondTrigger,
    /// A step of a run has no span.
    MissingStep,
    /// The span of a step tells another time than the step had.
    StepsOutOfOrder,
    /// A list asks for each of its items alone.
    NPlusOne,
    /// What the caller showed is in an attribute.
    SecretInAttribute,
    /// The text of a statement is in an attribute that the catalogue does not have.
    UnknownAttribute,
    /// A run does not link to the trace under test.
    DroppedLink,
    /// What failed looks as if it had not.
    SwallowedError,
    /// What failed does not say how.
    MissingException,
    /// A run begins a trace of its own.
    LostContext,
    /// Who is refused is served first.
    RefusedIsServed,
    /// A document is looked up before it is read.
    RejectedIsAsked,
    /// A repeated start is a new one.
    KeyIgnored,
    /// Workers are told twice.
    HintTwice,
    /// The span of a request is named by its path.
    PathInName,
    /// A change is not noted.
    AuditForgotten,
    /// A list takes its time.
    SlowList,
}

/// All of them, by the names that they are chosen by.
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

/// Plants the fault of this name, once for the whole process, and tells whether there is one.
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

/// Whether this fault is planted: never.
#[cfg(not(feature = "planted"))]
pub(crate) const fn is_planted(_: Plant) -> bool {
    false
}
