//! The compute pool: judging, masking, decoding and encoding of large values.
//!
//! This work takes long and must not block the threads that serve requests. The pool therefore runs it on separate threads, N
//! at a time. One owner gets at most half of the permits, and waiting owners are served in turn: the load of one owner does not
//! stop the others. On a server the compute threads have a lower priority than the threads that serve requests, if there are
//! not enough cores for both.
//!
//! Deliberately absent: a bound on the duration of a task. Judging has its own bound, counted in steps.

use drivers::{priority::give_way, shares::Shares};
use lang::Cancel;
use model::Project;

/// A pool of compute threads. A clone shares the same pool.
#[derive(Clone, Debug)]
pub struct Pool {
    places: Shares<Project>,
    gives_way: bool,
}

/// The share of one owner in a pool.
#[derive(Clone, Debug)]
pub struct Share(Option<(Pool, Project)>);

impl Pool {
    /// Creates a pool with this many threads; two at least.
    pub fn new(threads: usize) -> Self {
        Self { places: Shares::new(threads), gives_way: false }
    }

    /// The same pool, with threads of a lower priority than all others of this process. They are the blocking threads of the
    /// runtime: other blocking work there must be short.
    #[must_use]
    pub fn giving_way(self) -> Self {
        Self { gives_way: true, ..self }
    }

    /// Returns the share of an owner.
    pub fn share(&self, owner: Project) -> Share {
        Share(Some((self.clone(), owner)))
    }
}

impl Share {
    /// A share without permits: the caller computes inline and waits. For simulations, in which no other task waits.
    pub fn inline() -> Self {
        Self(None)
    }

    /// Runs work as soon as a permit is free. If the future is dropped while it waits, the work never starts; if it is dropped
    /// later, the work is cancelled and releases its permit when it ends.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let Some((pool, owner)) = &self.0 else { return work() };
        let permit = pool.places.acquire(owner).await;
        let gives_way = pool.gives_way;
        let cancel = CancelOnDrop::default();
        let cancelled = cancel.0.clone();
        let done = tokio::task::spawn_blocking(move || {
            // The permit moves into the work, which continues if no task waits for it any more.
            let _permit = permit;
            if gives_way {
                give_way();
            }
            cancelled.run(work)
        });
        match done.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

/// Cancels on drop, whether or not any work is left to cancel.
#[derive(Default)]
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
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

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_thread_that_gives_way_adds_to_the_nice_value_of_the_process() {
        use rustix::process::{getpriority_process, setpriority_process};

        let nice = || getpriority_process(None).expect("a thread has one");
        // Like a process that was started with `nice -n 3`: a thread inherits the value of the thread that starts it.
        let begin = (nice() + 3).min(19);
        setpriority_process(None, begin).expect("a higher value is allowed");
        let equal = Pool::new(2);
        assert_eq!(equal.share(project("alpha")).run(nice).await, begin);
        let pool = equal.giving_way();
        for _ in 0..3 {
            assert_eq!(
                pool.share(project("alpha")).run(nice).await,
                (begin + 5).min(19),
                "once for each thread"
            );
        }
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
                    // It ends when the sender is dropped.
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
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_cancelled() {
        let pool = Pool::new(2);
        let alpha = pool.share(project("alpha"));
        let endless = || {
            while !lang::is_cancelled() {
                std::hint::spin_loop();
            }
        };
        let given_up = timeout(Duration::from_millis(50), alpha.run(endless)).await;
        assert!(given_up.is_err(), "it ends by itself only when it is cancelled");
        let next = timeout(Duration::from_secs(10), alpha.run(lang::is_cancelled)).await;
        assert_eq!(next, Ok(false), "its place is free, and what comes next is not cancelled");
    }

    #[tokio::test]
    async fn a_panic_gives_its_place_back_and_is_told() {
        let pool = Pool::new(2);
        let broken = pool.share(project("alpha"));
        let mut told = JoinSet::new();
        told.spawn(async move { broken.run(|| panic!("a bug")).await });
        let told = told.join_next().await.expect("one was begun");
        assert!(told.expect_err("it is told").is_panic());
        assert_eq!(pool.share(project("alpha")).run(|| 7).await, 7, "its thread is free again");
    }
}
