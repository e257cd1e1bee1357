//! Formats amounts for notices.

use std::{path::PathBuf, time::Duration};

use super::Snapshot;

/// Describes how many items are buffered, and where.
pub(super) fn kept(snapshot: &Snapshot) -> String {
    let items = items(snapshot.counts.queued);
    let name = |(folder, _): &(PathBuf, u64)| format!("`{}`", folder.display());
    let with_items: Vec<_> =
        snapshot.folders.iter().filter(|(_, items)| *items > 0).map(name).collect();
    match (with_items.is_empty(), snapshot.folders.first()) {
        (_, None) => format!("{items} in memory"),
        (true, Some(first)) => format!("{items} in {}", name(first)),
        (false, _) => format!("{items} in {}", with_items.join(" and ")),
    }
}

pub(crate) fn items(count: u64) -> String {
    if count == 1 { "1 item".to_owned() } else { format!("{count} items") }
}

pub(super) fn spoken(duration: Duration) -> String {
    match duration.as_secs() {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..120 => format!("{} s", duration.as_secs()),
        seconds => format!("{} min", seconds / 60),
    }
}
