//! Inspects the processes of the command: their environment variables, to diagnose why they send no spans, and where they listen.
//!
//! It reads `/proc`, which only Linux has; elsewhere it finds nothing. Deliberately absent: processes that have left the
//! process group, and those that a container engine or a service manager started for the command.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Read,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use runner::diagnosis::Process;
use rustix::process::Pid;

use crate::sockets;

/// The upper bounds for inspected processes, and for the bytes of the variables of each.
const PROCESSES_MAX: usize = 64;
const VARIABLES_BYTES_MAX: u64 = 1 << 20;

/// Returns the processes of this group, which was started with these changes to our environment.
pub(super) fn processes(group: Pid, changed: &[(String, Option<String>)]) -> Vec<Process> {
    let set: Vec<(String, String)> =
        changed.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    members(group).filter_map(|folder| look(&folder, &set)).take(PROCESSES_MAX).collect()
}

/// Returns the addresses of this machine on which the processes of this group accept connections.
pub(super) fn listening(group: Pid) -> BTreeSet<SocketAddr> {
    sockets::local_addresses(&members(group).take(PROCESSES_MAX).collect::<Vec<_>>())
}

/// Returns the folders of the processes of this group.
fn members(group: Pid) -> impl Iterator<Item = PathBuf> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let folders = folders.map(|folder| folder.path());
    folders.filter(move |folder| group_of(folder) == Some(group.as_raw_nonzero().get()))
}

/// Returns the group of a process, which follows its name, state and parent. A name may contain any character, and ends
/// with the last parenthesis.
fn group_of(folder: &Path) -> Option<i32> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

fn look(folder: &Path, set: &[(String, String)]) -> Option<Process> {
    let name = fs::read_to_string(folder.join("comm")).ok()?;
    let mut variables = Vec::new();
    let file = File::open(folder.join("environ")).ok()?;
    file.take(VARIABLES_BYTES_MAX).read_to_end(&mut variables).ok()?;
    // A zombie process has none.
    if variables.is_empty() {
        return None;
    }
    let variables = String::from_utf8_lossy(&variables);
    let has = variables.split('\0').filter_map(|line| line.split_once('='));
    Some(Process::new(name.trim_end(), set, has))
}
