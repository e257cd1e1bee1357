//! `buffer`: how much data an exporter buffers until it is delivered, where, and with which durability.

use std::{
    path::{Component, Path, PathBuf, absolute},
    time::Duration,
};

use source::{Fields, Item, parse_duration};

use super::{
    Context,
    duration::{SPAN, written},
};
use crate::plan::{Buffer, Durability};

/// One batch has to fit.
const MEMORY_MIN: u64 = 1024 * 1024;
/// Some segments have to fit.
const DISK_MIN: u64 = 1024 * 1024;
const SIZE_MAX: u64 = 1 << 50;

/// The folder in the program's own directory in which exporters may buffer.
const FOLDER: &str = "telemetry";

const DURABILITIES: &[(&str, Durability)] = &[
    ("memory", Durability::Memory),
    ("process", Durability::Process),
    ("write-through", Durability::WriteThrough),
    ("host", Durability::Host),
];

/// Reads the table under `buffer`, or returns the defaults.
pub(super) fn buffer(fields: &mut Fields<'_>, context: &Context<'_>) -> Buffer {
    let mut fields = fields.section("buffer");
    let mut buffer = Buffer { directory: context.defaults.directory.clone(), ..Buffer::default() };
    let size = |item: Option<Item<'_>>, least| item.and_then(|item| item.size(least..=SIZE_MAX));
    buffer.memory = size(fields.take("memory"), MEMORY_MIN).unwrap_or(buffer.memory);
    buffer.disk = size(fields.take("disk"), DISK_MIN).unwrap_or(buffer.disk);
    let directory = fields.take("directory").and_then(|item| directory(&item, context));
    buffer.directory = directory.or(buffer.directory);
    buffer.hold = fields.take("on-full").and_then(|item| hold(&item)).unwrap_or(buffer.hold);
    let durability = fields.take("durability").and_then(|item| {
        let durability = item.choice(DURABILITIES)?;
        if durability != Durability::Memory && buffer.directory.is_none() {
            let message = format!("`{}` needs a directory to write to", item.path);
            let mistake = context.found.error(item.node.span, message);
            context.found.push(mistake.help("add `directory` beside it, or take `memory`"));
        }
        Some(durability)
    });
    fields.finish();
    buffer.durability = durability.unwrap_or(match buffer.directory {
        Some(_) => Durability::Process,
        None => Durability::Memory,
    });
    buffer
}

/// Parses `block` or `block-timeout(5s)`.
fn hold(item: &Item<'_>) -> Option<Option<Duration>> {
    let text = item.string()?;
    let inside = |text: &str| {
        let inside = text.strip_prefix("block-timeout(")?.strip_suffix(')')?;
        parse_duration(inside.trim()).filter(|hold| SPAN.contains(hold))
    };
    let hold = if text == "block" { Some(None) } else { inside(text).map(Some) };
    if hold.is_none() {
        let (least, most) = (written(*SPAN.start()), written(*SPAN.end()));
        item.misfit(&format!("`block` or `block-timeout(d)` with d from {least} to {most}"));
    }
    hold
}

/// Reads the buffer's directory. In the program's own directory, only one folder is for exporters.
fn directory(item: &Item<'_>, context: &Context<'_>) -> Option<PathBuf> {
    let directory = path(item)?;
    let Some(own) = &context.defaults.own_directory else { return Some(directory) };
    let target = resolve(&directory);
    let is_below = |folder: &Path| target.starts_with(resolve(folder));
    let allowed = own.join(FOLDER);
    if is_below(own) && !is_below(&allowed) {
        let message = format!("`{}` is where this program stores its own files", item.path);
        let error = context.found.error(item.node.span, message);
        let help =
            format!("write `{}`, or a folder outside of `{}`", allowed.display(), own.display());
        context.found.push(error.help(help));
        return None;
    }
    Some(directory)
}

/// Returns the absolute path, without links and `..`, as far as it exists.
fn resolve(path: &Path) -> PathBuf {
    let absolute = absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut resolved = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            part => resolved.push(part),
        }
        resolved = resolved.canonicalize().unwrap_or(resolved);
    }
    resolved
}

/// Reads a value as a path.
pub(super) fn path(item: &Item<'_>) -> Option<PathBuf> {
    let text = item.string()?;
    if text.is_empty() || text.contains('\0') {
        item.misfit("a path");
        return None;
    }
    Some(PathBuf::from(text))
}
