//! Who follows runs as they go, and how they hear that there is something new.
//!
//! Hints of runs that this process owns wake their followers at once. What another replica writes is found by one question
//! to the record for all runs that are followed, now and then, however many follow them. It is no part of anyone's trace.
//! Deliberately absent: events, which each follower reads for itself.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bus::{Bus, Subject};
use db::Db;
use model::RunId;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use crate::api;

/// Followers at a time: half of the connections that the listener has, so that others are served whoever follows.
pub(crate) const FOLLOWERS_MAX: usize = 256;
/// How often the record is asked for what other replicas have written.
const POLL: Duration = Duration::from_millis(500);

/// All followers of this process.
#[derive(Debug)]
pub(crate) struct Followers {
    /// The last event that is known of each run that is followed.
    runs: Mutex<HashMap<RunId, watch::Sender<i64>>>,
    places: Arc<Semaphore>,
    /// Cancelled when all of them have to end.
    stop: CancellationToken,
}

/// One follower of one run.
#[derive(Debug)]
pub(crate) struct Follower {
    run: RunId,
    followers: Arc<Followers>,
    news: watch::Receiver<i64>,
}

impl Followers {
    pub(crate) fn new(stop: CancellationToken) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(FOLLOWERS_MAX));
        Arc::new(Self { runs: Mutex::default(), places, stop })
    }

    /// A place for one more; none where all are taken.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Follows a run from now on, its events after number `after`.
    pub(crate) fn follow(self: &Arc<Self>, run: RunId, after: i64) -> Follower {
        let mut runs = self.runs();
        let news = runs.entry(run).or_insert_with(|| watch::Sender::new(after)).subscribe();
        drop(runs);
        Follower { run, followers: Arc::clone(self), news }
    }

    /// Wakes followers until told to stop.
    pub(crate) async fn keep(self: Arc<Self>, bus: Arc<impl Bus>, db: Db) {
        let mut hints = bus.hints();
        let mut poll = interval(POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                Some(subject) = hints.next() => self.hear(&subject),
                _ = poll.tick() => self.look(&db).await,
            }
        }
    }

    fn hear(&self, subject: &Subject) {
        if let Some(news) = api::told_of(subject).and_then(|run| self.runs().get(&run).cloned()) {
            // That there is more is known, but not how much.
            news.send_modify(|_| {});
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
                        news.send_if_modified(|known| raise(known, last));
                    }
                }
            }
            // Hints go on, and so does the next look.
            Err(error) => tracing::debug!(%error, "runs that are followed could not be looked at"),
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, watch::Sender<i64>>> {
        // Nothing under the lock fails half way.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower {
    /// Waits until there may be something new.
    pub(crate) async fn news(&mut self) {
        if self.news.changed().await.is_err() {
            // Its sender goes with its last follower.
            std::future::pending::<()>().await;
        }
    }

    /// Notes that all up to number `last` are read, so that no look at the record finds them to be new.
    pub(crate) fn has_read(&self, last: i64) {
        if let Some(news) = self.followers.runs().get(&self.run) {
            news.send_if_modified(|known| {
                raise(known, last);
                false
            });
        }
    }

    /// Waits until all followers have to end.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        self.followers.stop.clone().cancelled_owned()
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

fn raise(known: &mut i64, last: i64) -> bool {
    let is_more = last > *known;
    *known = last.max(*known);
    is_more
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{RunId, Timestamp};
    use tokio_util::sync::CancellationToken;

    use super::{FOLLOWERS_MAX, Followers};
    use crate::api;

    #[tokio::test]
    async fn each_follower_of_a_run_is_woken_and_none_is_left_behind() {
        let followers = Followers::new(CancellationToken::new());
        let id = |random| RunId::new(Timestamp::from_nanos(0), [random; 10]);
        let (one, other) = (id(1), id(2));
        let mut first = followers.follow(one, 0);
        let mut second = followers.follow(one, 3);
        let third = followers.follow(other, 0);
        for subject in [api::run_events(one), api::run_news(one)] {
            followers.hear(&subject);
            first.news().await;
            second.news().await;
        }
        let is_quiet = |follower: &super::Follower| !follower.news.has_changed().unwrap_or(true);
        assert!(is_quiet(&third), "it was not about its run");
        third.has_read(7);
        assert!(is_quiet(&third), "what was read is no news");
        followers.hear(&api::run_stopped(other));
        followers.hear(&api::runs_waiting());
        assert!(is_quiet(&third), "these are for workers");
        drop(first);
        followers.hear(&api::run_events(one));
        second.news().await;
        drop((second, third));
        assert!(followers.runs().is_empty());
        let places: Vec<_> = (0..FOLLOWERS_MAX).map_while(|_| followers.place()).collect();
        assert!(places.len() == FOLLOWERS_MAX && followers.place().is_none());
        drop(places);
        assert!(followers.place().is_some() && Arc::strong_count(&followers) == 1);
    }
}
