//! Where things are computed: judging, masking, reading and writing of what is large.
//!
//! It takes long, and nobody who answers may wait for it: so it is done on threads of its own, so many at a time. Of these one
//! owner has half at the most, and whoever waits is served in turn: however much one computes, others go on.
//!
//! Deliberately absent: a bound on how long something takes. What is judged has its own, counted in steps.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use model::Project;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many places there are at least, so that no owner ever has all.
const PLACES_MIN: usize = 2;

/// Places to compute. A clone is the same.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Places>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _own: Option<OwnedSemaphorePermit>,
    _place: Option<OwnedSemaphorePermit>,
}

/// What one owner has of them.
#[derive(Clone, Debug)]
pub struct Share(Option<(Pool, Project)>);

#[derive(Debug)]
struct Places {
    all: Arc<Semaphore>,
    /// How many of them one owner has at the most.
    share: usize,
    /// Those who compute now, or wait for it.
    owners: Mutex<HashMap<Project, Weak<Semaphore>>>,
}

impl Pool {
    /// So many places; two at least.
    pub fn new(places: usize) -> Self {
        let places = places.max(PLACES_MIN);
        Self(Arc::new(Places {
            all: Arc::new(Semaphore::new(places)),
            share: places / 2,
            owners: Mutex::default(),
        }))
    }

    /// Waits for a place of an owner.
    pub async fn place(&self, owner: &Project) -> Place {
        // Neither is ever closed.
        let own = self.0.own(owner).acquire_owned().await.ok();
        Place { _own: own, _place: Arc::clone(&self.0.all).acquire_owned().await.ok() }
    }

    /// The places of an owner.
    pub fn share(&self, owner: Project) -> Share {
        Share(Some((self.clone(), owner)))
    }
}

impl Share {
    /// No places: what is computed holds whoever asks for it. For simulations, in which nobody else waits.
    pub fn inline() -> Self {
        Self(None)
    }

    /// Computes something as soon as there is a place. Dropped while it waits, it is never begun; dropped later, its place is
    /// free when it ends.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let Some((pool, owner)) = &self.0 else { return work() };
        let place = pool.place(owner).await;
        let done = tokio::task::spawn_blocking(move || {
            // It goes with the work, which goes on if nobody waits for it any more.
            let _place = place;
            work()
        });
        match done.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is being shut down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Places {
    /// The places of one owner.
    fn own(&self, owner: &Project) -> Arc<Semaphore> {
        let mut owners = self.owners();
        if let Some(own) = owners.get(owner).and_then(Weak::upgrade) {
            return own;
        }
        owners.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(self.share));
        owners.insert(owner.clone(), Arc::downgrade(&own));
        own
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<Project, Weak<Semaphore>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc, Mutex,
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
        time::Duration,
    };

    use model::Project;
    use tokio::{task::JoinSet, time::timeout};

    use super::Pool;

    fn project(name: &str) -> Project {
        name.parse().expect("a name")
    }

    #[tokio::test]
    async fn one_owner_leaves_places_to_others() {
        let pool = Pool::new(4);
        let (go, gate) = mpsc::channel::<()>();
        let (gate, running) = (Arc::new(Mutex::new(gate)), Arc::new(AtomicUsize::new(0)));
        let mut hogs = JoinSet::new();
        for _ in 0..20 {
            let (pool, gate, running) = (pool.clone(), Arc::clone(&gate), Arc::clone(&running));
            hogs.spawn(async move {
                let work = move || {
                    running.fetch_add(1, Ordering::SeqCst);
                    // It ends when the sender is gone.
                    let _gone = gate.lock().expect("no panic").recv();
                };
                pool.share(project("alpha")).run(work).await;
            });
        }
        while running.load(Ordering::SeqCst) < 1 {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            let beta = pool.share(project("beta"));
            let computed = timeout(Duration::from_secs(10), beta.run(|| 7)).await;
            assert_eq!(computed, Ok(7), "another one computes");
        }
        assert!(running.load(Ordering::SeqCst) <= 2, "half of the places");
        drop(go);
        while hogs.join_next().await.is_some() {}
        assert_eq!(running.load(Ordering::SeqCst), 20);
        assert_eq!(pool.0.all.available_permits(), 4);
    }

    #[tokio::test]
    async fn a_panic_gives_its_place_back_and_is_told() {
        let pool = Pool::new(2);
        let broken = pool.share(project("alpha"));
        let mut told = JoinSet::new();
        told.spawn(async move { broken.run(|| panic!("a bug")).await });
        let told = told.join_next().await.expect("one was begun");
        assert!(told.expect_err("it is told").is_panic());
        assert_eq!(pool.0.all.available_permits(), 2);
    }
}
