//! How amounts are said.

use std::time::Duration;

use super::Look;

/// What is kept where.
pub(super) fn kept(look: &Look) -> String {
    let items = items(look.counts.queued);
    match &look.folder {
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
