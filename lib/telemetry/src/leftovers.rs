//! Undelivered items that earlier configurations left on disk, and that no exporter sends.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    exporter::{LOGS, RunningExporter},
    host::{Host, Notice, Topic},
    watch::words,
};

/// Reports each folder beside those of the exporters that contains undelivered items.
pub(crate) fn report(running: &[RunningExporter], host: &Host) {
    let used: HashSet<PathBuf> = running.iter().filter_map(RunningExporter::folder).collect();
    let directories: HashSet<&Path> = used.iter().filter_map(|folder| folder.parent()).collect();
    for directory in directories {
        // If the directory cannot be listed, the exporter that cannot write there reports it.
        let found = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut unused: Vec<_> =
            found.map(|entry| entry.path()).filter(|path| !used.contains(path)).collect();
        unused.sort();
        unused.iter().for_each(|folder| report_folder(folder, host));
    }
}

fn report_folder(folder: &Path, host: &Host) {
    let items = journal::left_items(folder).unwrap_or(0);
    let Some(name) = folder.file_name().and_then(|name| name.to_str()).filter(|_| items > 0) else {
        return;
    };
    let exporter = name.strip_suffix(LOGS).unwrap_or(name);
    let signal = if exporter == name { "what it had" } else { "logs" };
    let message = format!(
        "`{}` has {} to deliver, and no exporter of this configuration sends what is there: an exporter of this name and \
         `directory` that sends {signal} delivers it; if it is not needed, delete the folder",
        folder.display(),
        words::items(items)
    );
    let message = message.as_str();
    (host.notice)(&Notice { exporter, topic: Topic::Delivery, is_over: false, message });
}
