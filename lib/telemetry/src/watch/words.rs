//! How amounts are said.

use std::time::Duration;

use super::Snapshot;

/// What is kept where.
pub(super) fn kept(snapshot: &Snapshot) -> String {
    let items = items(snapshot.counts.queued);
    match &snapshot.folder {
        Some(folder) => format!("{items} in `{}`", folder.display()),
        None => format!("{items} in memory"),
    }
}

pub(super) fn items(count: u64) -> String {
    if count == 1 { "1 item".to_owned() } else { format!("{count} items") }
}

pub(super) fn spoken(duration: Duration) -> String {
    match duration.as_secs() {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..120 => format!("{} s", duration.as_secs()),
        seconds => format!("{} min", seconds / 60),
    }
}
