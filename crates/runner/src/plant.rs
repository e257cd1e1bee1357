//! Planted faults that the proof of settling must find: one at a time, and only in a build with the feature `planted`.
//!
//! `cargo xtask prove settle --faults` plants each of them and must find it. Without the feature the program contains no part
//! of this.

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// A call without its other side does not keep the trace open.
    EdgesOff,
    /// One run is enough to shorten a wait or a linger.
    LearnsEarly,
    /// A verdict does not linger.
    LingerOff,
    /// A trace that started at a call does not count as a lost context.
    DoubtsOff,
    /// Absence is concluded as of now, whatever the answers of a trace store cover.
    WatermarkNow,
}

/// All faults, by name.
#[cfg(feature = "planted")]
const ALL: &[(&str, Plant)] = &[
    ("edges-off", Plant::EdgesOff),
    ("learns-early", Plant::LearnsEarly),
    ("linger-off", Plant::LingerOff),
    ("doubts-off", Plant::DoubtsOff),
    ("watermark-now", Plant::WatermarkNow),
];

#[cfg(feature = "planted")]
static PLANTED: std::sync::OnceLock<Plant> = std::sync::OnceLock::new();

/// Returns the names of all faults.
#[cfg(feature = "planted")]
pub fn plants() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// Plants the fault of this name, once for the process, and returns whether it exists.
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
