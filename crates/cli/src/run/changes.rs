//! `--watch`: waits until one of the files changes.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::{
    sync::mpsc::{self, Receiver},
    time::{sleep, timeout},
};

/// How long no file may change before a change is reported: editors write a file in several steps.
const SETTLED: Duration = Duration::from_millis(80);
/// The upper bound for that wait while changes continue.
const SETTLED_MAX: Duration = Duration::from_secs(2);

/// The files and folders that are watched.
#[derive(Debug)]
pub(super) struct FileWatcher {
    changed: Receiver<()>,
    /// Watches until it is dropped.
    _watcher: RecommendedWatcher,
}

impl FileWatcher {
    /// Watches these files, and the YAML files below these folders.
    pub(super) fn watch(paths: &[PathBuf]) -> notify::Result<Self> {
        // One notification is enough, however many files changed.
        let (tell, changed) = mpsc::channel(1);
        let watched = WatchedPaths::new(paths);
        let folders = watched.folders.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // An event with an error may concern our files.
            if event.map_or(true, |event| watched.is_meant(&event)) {
                let _full = tell.try_send(());
            }
        })?;
        for (folder, mode) in folders {
            watcher.watch(&folder, mode)?;
        }
        Ok(Self { changed, _watcher: watcher })
    }

    /// Waits for the next change, until the files are stable.
    pub(super) async fn next(&mut self) {
        if self.changed.recv().await.is_none() {
            return std::future::pending().await;
        }
        let settled = async {
            while timeout(SETTLED, self.changed.recv()).await.is_ok_and(|it| it.is_some()) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        // Continuous changes are reported too.
        let _still_writing = timeout(SETTLED_MAX, settled).await;
    }
}

/// The watched paths, and the filter for their events.
struct WatchedPaths {
    folders: Vec<(PathBuf, RecursiveMode)>,
    /// The given files: their folders are watched, since editors replace a file by a new one.
    files: BTreeSet<PathBuf>,
    /// The given folders: every YAML file below them is included.
    roots: Vec<PathBuf>,
}

impl WatchedPaths {
    fn new(paths: &[PathBuf]) -> Self {
        let (mut folders, mut files, mut roots) = (Vec::new(), BTreeSet::new(), Vec::new());
        for path in paths {
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            if path.is_dir() {
                folders.push((path.clone(), RecursiveMode::Recursive));
                roots.push(path);
            } else {
                let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
                if folders.iter().all(|(known, _)| *known != folder) {
                    folders.push((folder, RecursiveMode::NonRecursive));
                }
                files.insert(path);
            }
        }
        Self { folders, files, roots }
    }

    fn is_meant(&self, event: &Event) -> bool {
        if matches!(event.kind, EventKind::Access(_)) {
            return false;
        }
        event.paths.iter().any(|path| {
            let is_below = self.roots.iter().any(|root| path.starts_with(root));
            self.files.contains(path) || (is_below && crate::documents::is_yaml(path))
        })
    }
}
