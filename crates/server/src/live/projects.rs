//! The followers of projects, which are notified when a run is accepted or ends. A notification means that something changed, and does not name it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::Project;
use tokio::sync::watch;

/// All followers of projects of this process. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectFollowers(Arc<Mutex<HashMap<Project, watch::Sender<u64>>>>);

/// One follower of one project.
#[derive(Debug)]
pub(crate) struct ProjectFollower {
    project: Project,
    followers: ProjectFollowers,
    changes: watch::Receiver<u64>,
}

impl ProjectFollowers {
    /// Follows a project from now on.
    pub(crate) fn follow(&self, project: Project) -> ProjectFollower {
        let mut projects = self.lock();
        let changes = projects.entry(project.clone()).or_insert_with(|| watch::Sender::new(0));
        let changes = changes.subscribe();
        drop(projects);
        ProjectFollower { project, followers: self.clone(), changes }
    }

    /// Notifies the followers of a project.
    pub(crate) fn notify(&self, project: &Project) {
        if let Some(changes) = self.lock().get(project) {
            changes.send_modify(|changes| *changes += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Project, watch::Sender<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProjectFollower {
    /// Waits until something has changed since the last time.
    pub(crate) async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            // The sender is dropped with its last follower.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for ProjectFollower {
    fn drop(&mut self) {
        let mut projects = self.followers.lock();
        if projects.get(&self.project).is_some_and(|changes| changes.receiver_count() <= 1) {
            projects.remove(&self.project);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::Project;
    use tokio::time::timeout;

    use super::{ProjectFollower, ProjectFollowers};

    async fn is_notified(follower: &mut ProjectFollower) -> bool {
        timeout(Duration::from_millis(20), follower.changed()).await.is_ok()
    }

    #[tokio::test]
    async fn changes_of_a_project_reach_its_followers_alone_and_none_is_left_behind() {
        let followers = ProjectFollowers::default();
        let [alpha, beta]: [Project; 2] =
            ["alpha", "beta"].map(|name| name.parse().expect("a name"));
        let mut first = followers.follow(alpha.clone());
        let mut second = followers.follow(alpha.clone());
        let mut other = followers.follow(beta.clone());
        followers.notify(&alpha);
        followers.notify(&alpha);
        assert!(is_notified(&mut first).await && is_notified(&mut second).await);
        assert!(!is_notified(&mut first).await, "two changes at once are one");
        assert!(!is_notified(&mut other).await);
        drop(first);
        followers.notify(&alpha);
        assert!(is_notified(&mut second).await);
        drop((second, other));
        assert!(followers.lock().is_empty());
        followers.notify(&beta);
    }
}
