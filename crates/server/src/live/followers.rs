//! The followers of active runs, and how they are notified of new events.
//!
//! Notifications of runs that this process owns wake their followers at once. For the events that other replicas write, one
//! periodic query covers all followed runs, however many followers they have. It is in no request's trace.
//! Deliberately absent: events, which each follower reads itself.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bus::{Bus, Subject};
use db::Db;
use drivers::shares::{Permit, Shares};
use model::{Project, RunId, TokenId};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use super::projects::ProjectFollowers;
use crate::subjects;

/// The maximum number of followers: a quarter of the listener's connections, so that other requests are always served. Runs of one
/// project get half of them.
const FOLLOWERS_MAX: usize = 256;
/// The maximum number of followers of one token or one session.
const OF_CALLER_MAX: usize = 64;
/// How often the database is polled for the events of other replicas.
const POLL: Duration = Duration::from_millis(500);

/// All followers of this process.
#[derive(Debug)]
pub(crate) struct Followers {
    /// The state of each followed run.
    runs: Mutex<HashMap<RunId, watch::Sender<News>>>,
    /// The followers of projects, which share the permits with those of runs.
    pub(crate) projects: ProjectFollowers,
    of_projects: Shares<Project>,
    of_callers: Shares<TokenId>,
    /// Cancelled when all followers have to end.
    stop: CancellationToken,
}

/// The permit of a follower; released when dropped.
#[derive(Debug)]
pub(crate) struct FollowerPlace {
    _of_project: Permit,
    _of_caller: Option<Permit>,
}

/// The state of a run, shared by all its followers: each tracks itself what it has read.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    /// The number of notifications. A notification means that there are more events, but not how many.
    hints: u64,
    /// The number of its last event at the last query.
    last: i64,
}

/// One follower of one run.
#[derive(Debug)]
pub(crate) struct Follower {
    run: RunId,
    followers: Arc<Followers>,
    news: watch::Receiver<News>,
    /// The number of notifications that it has handled.
    heard: u64,
}

impl Followers {
    pub(crate) fn new(stop: CancellationToken) -> Arc<Self> {
        let of_projects = Shares::new(FOLLOWERS_MAX);
        let of_callers = Shares::with_share(FOLLOWERS_MAX, OF_CALLER_MAX);
        let (runs, projects) = (Mutex::default(), ProjectFollowers::default());
        Arc::new(Self { runs, projects, of_projects, of_callers, stop })
    }

    /// Returns a permit for one more follower; `None` if all are taken, or all of this project or this caller. With authentication
    /// off, callers are not distinguished.
    pub(crate) fn place(
        &self,
        project: &Project,
        caller: Option<TokenId>,
    ) -> Option<FollowerPlace> {
        let of_caller = match caller {
            Some(caller) => Some(self.of_callers.try_acquire(&caller)?),
            None => None,
        };
        let of_project = self.of_projects.try_acquire(project)?;
        Some(FollowerPlace { _of_project: of_project, _of_caller: of_caller })
    }

    /// Follows a run from now on.
    pub(crate) fn follow(self: &Arc<Self>, run: RunId) -> Follower {
        let mut runs = self.runs();
        let news =
            runs.entry(run).or_insert_with(|| watch::Sender::new(News::default())).subscribe();
        drop(runs);
        let heard = news.borrow().hints;
        Follower { run, followers: Arc::clone(self), news, heard }
    }

    /// Wakes followers until the server stops.
    pub(crate) async fn keep(self: Arc<Self>, bus: Arc<impl Bus>, db: Db) {
        let mut hints = bus.hints();
        let mut poll = interval(POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                Some(subject) = hints.next() => self.wake_followers(&subject),
                _ = poll.tick() => self.look(&db).await,
            }
        }
    }

    /// Waits until all followers have to end.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        self.stop.clone().cancelled_owned()
    }

    fn wake_followers(&self, subject: &Subject) {
        if let Some(project) = subjects::project_with_news(subject) {
            return self.projects.notify(&project);
        }
        if let Some(news) =
            subjects::run_with_news(subject).and_then(|run| self.runs().get(&run).cloned())
        {
            news.send_modify(|news| news.hints += 1);
        }
    }

    async fn look(&self, db: &Db) {
        let runs: Vec<RunId> = self.runs().keys().copied().collect();
        if runs.is_empty() {
            return;
        }
        match db.events_last(&runs).await {
            Ok(known) => {
                let runs = self.runs();
                for (run, last) in known {
                    if let Some(news) = runs.get(&run) {
                        news.send_if_modified(|news| {
                            let is_more = last > news.last;
                            news.last = last.max(news.last);
                            is_more
                        });
                    }
                }
            }
            // Notifications still arrive, and the next poll tries again.
            Err(error) => tracing::debug!(%error, "runs that are followed could not be looked at"),
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, watch::Sender<News>>> {
        // No code under the lock panics halfway.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower {
    /// Waits until there may be new events for a follower that has read up to number `after`.
    pub(crate) async fn news(&mut self, after: i64) {
        loop {
            let news = *self.news.borrow_and_update();
            if news.hints != self.heard || news.last > after {
                self.heard = news.hints;
                return;
            }
            if self.news.changed().await.is_err() {
                // The sender is dropped with its last follower.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until all followers have to end.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        self.followers.stopped()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut runs = self.followers.runs();
        if runs.get(&self.run).is_some_and(|news| news.receiver_count() <= 1) {
            runs.remove(&self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use model::{Project, RunId, Timestamp, TokenId};
    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;

    use super::{FOLLOWERS_MAX, Follower, Followers, OF_CALLER_MAX};
    use crate::subjects;

    fn id(random: u8) -> RunId {
        RunId::new(Timestamp::from_nanos(0), [random; 10])
    }

    /// Sets the result of a database query.
    fn seen(followers: &Followers, run: RunId, last: i64) {
        let runs = followers.runs();
        runs[&run].send_modify(|news| news.last = last);
    }

    async fn is_quiet(follower: &mut Follower, after: i64) -> bool {
        timeout(Duration::from_millis(20), follower.news(after)).await.is_err()
    }

    #[tokio::test]
    async fn each_follower_of_a_run_is_woken_and_none_is_left_behind() {
        let followers = Followers::new(CancellationToken::new());
        let (one, other) = (id(1), id(2));
        let mut first = followers.follow(one);
        let mut second = followers.follow(one);
        let mut third = followers.follow(other);
        for subject in [subjects::run_events(one), subjects::run_news(one)] {
            followers.wake_followers(&subject);
            first.news(0).await;
            second.news(3).await;
        }
        assert!(is_quiet(&mut third, 0).await, "it was not about its run");
        followers.wake_followers(&subjects::run_stopped(other));
        followers.wake_followers(&subjects::runs_waiting());
        assert!(is_quiet(&mut third, 0).await, "these are for workers");
        drop(first);
        followers.wake_followers(&subjects::run_events(one));
        second.news(3).await;
        drop((second, third));
        assert!(followers.runs().is_empty());
        assert_eq!(Arc::strong_count(&followers), 1);
    }

    #[tokio::test]
    async fn one_caller_and_one_project_leave_places_for_others() {
        let followers = Followers::new(CancellationToken::new());
        let [alpha, beta]: [Project; 2] =
            ["alpha", "beta"].map(|name| name.parse().expect("a name"));
        let token = |byte| Some(TokenId::new(Timestamp::from_nanos(0), [byte; 10]));
        let take = |project: &Project, caller| -> Vec<_> {
            (0..FOLLOWERS_MAX).map_while(|_| followers.place(project, caller)).collect()
        };
        let viewer = take(&alpha, token(1));
        assert_eq!(viewer.len(), OF_CALLER_MAX);
        let others = take(&alpha, token(2)).into_iter().chain(take(&alpha, token(3)));
        let others: Vec<_> = others.collect();
        assert_eq!(viewer.len() + others.len(), FOLLOWERS_MAX / 2, "the share of a project");
        assert_eq!(take(&beta, token(4)).len(), OF_CALLER_MAX);
        assert_eq!(take(&beta, None).len(), FOLLOWERS_MAX / 2);
        drop(viewer);
        assert_eq!(take(&alpha, token(1)).len(), OF_CALLER_MAX);
    }

    #[tokio::test]
    async fn what_one_has_read_is_news_for_another() {
        let followers = Followers::new(CancellationToken::new());
        let run = id(1);
        // Far ahead of the run, which any caller may request.
        let mut ahead = followers.follow(run);
        let mut behind = followers.follow(run);
        seen(&followers, run, 5);
        behind.news(4).await;
        assert!(is_quiet(&mut behind, 5).await, "it has read all");
        assert!(is_quiet(&mut ahead, 9_000).await, "there is nothing for it");
        let mut late = followers.follow(run);
        late.news(4).await;
        assert!(is_quiet(&mut late, 5).await);
        seen(&followers, run, 6);
        late.news(5).await;
        behind.news(5).await;
    }
}
