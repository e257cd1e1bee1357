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

/// How long nothing may change before a change counts: editors write a file in several steps.
const SETTLED: Duration = Duration::from_millis(80);
/// How long changes may go on before one counts all the same.
const SETTLED_MAX: Duration = Duration::from_secs(2);

/// The files and folders that are watched.
#[derive(Debug)]
pub(super) struct FileWatcher {
    changed: Receiver<()>,
    /// Ends with us.
    _watcher: RecommendedWatcher,
}

impl FileWatcher {
    /// Watches these files, and the YAML files below these folders.
    pub(super) fn watch(paths: &[PathBuf]) -> notify::Result<Self> {
        // One note that something changed is enough, however much did.
        let (tell, changed) = mpsc::channel(1);
        let watched = WatchedPaths::new(paths);
        let folders = watched.folders.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // An event that could not be told may have been ours.
            if event.map_or(true, |event| watched.is_meant(&event)) {
                let _full = tell.try_send(());
            }
        })?;
        for (folder, mode) in folders {
            watcher.watch(&folder, mode)?;
        }
        Ok(Self { changed, _watcher: watcher })
    }

    /// Waits for the next change, until nothing changes any more.
    pub(super) async fn next(&mut self) {
        if self.changed.recv().await.is_none() {
            return std::future::pending().await;
        }
        let settled = async {
            while timeout(SETTLED, self.changed.recv()).await.is_ok_and(|it| it.is_some()) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        // Whoever writes all the time is served as well.
        let _still_writing = timeout(SETTLED_MAX, settled).await;
    }
}

/// What is watched, and what of it counts.
struct WatchedPaths {
    folders: Vec<(PathBuf, RecursiveMode)>,
    /// Files that were named: their folders are watched, since editors put new files into their places.
    files: BTreeSet<PathBuf>,
    /// Folders that were named: every YAML file below counts.
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
