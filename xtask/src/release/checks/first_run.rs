//! What every channel must lead to: the first minute of the README, the manual, completions and the web page.

use std::time::Duration;

use anyhow::Result;

use super::root::{Root, User};

/// The first green run: the demo shop, its test, a run that passes.
const GREEN: &str = include_str!("green.sh");
/// A fault of the shop makes the run fail; the manual, the completions and the page are there.
const USE: &str = include_str!("use.sh");

/// Who runs the program, and how a shell finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) user: User,
    /// Lines of the shell that set `PATH`, or none.
    pub(crate) before: &'static str,
    /// The prefix whose `share` has the manual, if the channel installs it.
    pub(crate) manual: &'static str,
    /// The prefix whose `share` has completions, if the channel installs them.
    pub(crate) completions: &'static str,
}

/// Makes the first run and uses everything else; returns how long the first green run took.
pub(crate) fn make(root: &Root<'_>, place: Place) -> Result<Duration> {
    let Place { user, before, manual, completions } = place;
    let green_in = root.run(user, &format!("{before}\n{GREEN}"))?;
    root.run(user, &format!("{before}\nmanual={manual}\ncompletions={completions}\n{USE}"))?;
    Ok(green_in)
}
