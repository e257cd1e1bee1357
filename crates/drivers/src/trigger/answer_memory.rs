//! The memory for large responses, which all concurrent runs share.
//!
//! A small response needs none. A larger one is read when memory is free, and one owner gets at most half of it. Until then the
//! response stays with the system, which waits. That time counts neither for the response's duration nor for its timeout.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use model::Project;
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout_at},
};

use crate::shares::{Permit, Shares};

/// The default number of large responses that are held at a time.
const ANSWERS_MAX: usize = 8;
/// The maximum size of a response that is not counted.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// The memory of all responses, as a number of responses of the maximum size. A clone shares the same memory.
#[derive(Clone, Debug)]
pub struct AnswerMemory(Shares<Project>);

/// The memory that one response holds, until it is dropped.
#[derive(Debug)]
pub struct AnswerHold {
    shared: Option<(AnswerMemory, Project)>,
    permit: OnceCell<Permit>,
    wait: Mutex<Wait>,
}

/// How long a response waited for memory.
#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    before: Duration,
    since: Option<Instant>,
}

impl Default for AnswerMemory {
    fn default() -> Self {
        Self::new(ANSWERS_MAX)
    }
}

impl AnswerMemory {
    /// Creates memory for this many responses of the maximum size; two at least.
    pub fn new(answers: usize) -> Self {
        Self(Shares::new(answers))
    }

    /// Returns the hold for a response of this owner; it holds nothing yet.
    pub fn hold(&self, owner: Project) -> AnswerHold {
        AnswerHold { shared: Some((self.clone(), owner)), ..AnswerHold::unlimited() }
    }
}

impl AnswerHold {
    /// Returns a hold without a limit, for a single run.
    pub fn unlimited() -> Self {
        Self { shared: None, permit: OnceCell::new(), wait: Mutex::default() }
    }

    /// Waits until a response of this many bytes may be held.
    pub async fn grow(&self, bytes: usize) {
        let Some((memory, owner)) = self.shared.as_ref().filter(|_| bytes > SMALL_BYTES_MAX) else {
            return;
        };
        if self.permit.initialized() {
            return;
        }
        self.wait().since = Some(Instant::now());
        self.permit.get_or_init(|| memory.0.acquire(owner)).await;
        let mut wait = self.wait();
        *wait = Wait { before: wait.length(), since: None };
    }

    /// Whether the response is large, and counted.
    pub fn is_large(&self) -> bool {
        self.permit.initialized()
    }

    /// Returns how long the response waited for memory.
    pub(super) fn waited(&self) -> Duration {
        self.wait().length()
    }

    /// Waits for `work` until a deadline, which is extended by the time of waiting for memory. Returns none on timeout.
    pub(super) async fn in_time<T>(
        &self,
        deadline: Instant,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let (mut work, before) = (std::pin::pin!(work), self.waited());
        loop {
            let until = deadline + (self.waited() - before);
            if let Ok(done) = timeout_at(until, work.as_mut()).await {
                return Some(done);
            }
            if deadline + (self.waited() - before) <= until {
                return None;
            }
        }
    }

    fn wait(&self) -> MutexGuard<'_, Wait> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wait {
    fn length(self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::Project;
    use tokio::time::{Instant, sleep};

    use super::{AnswerHold, AnswerMemory, SMALL_BYTES_MAX};

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_waits_for_memory_and_its_deadline_with_it() {
        let memory = AnswerMemory::new(2);
        let [alpha, beta]: [Project; 2] =
            ["alpha", "beta"].map(|name| name.parse().expect("a name"));
        let first = memory.hold(alpha.clone());
        first.grow(SMALL_BYTES_MAX + 1).await;
        let (second, other) = (memory.hold(alpha), memory.hold(beta));
        other.grow(usize::MAX).await;
        assert_eq!(other.waited(), Duration::ZERO, "another owner has memory");
        second.grow(SMALL_BYTES_MAX).await;
        assert_eq!(second.waited(), Duration::ZERO, "a small answer needs none");
        let deadline = Instant::now() + 2 * SECOND;
        let answer = async {
            sleep(SECOND).await;
            second.grow(SMALL_BYTES_MAX + 1).await;
            sleep(SECOND / 2).await;
        };
        let ends = async {
            sleep(10 * SECOND).await;
            drop(first);
        };
        let (answered, ()) = tokio::join!(second.in_time(deadline, answer), ends);
        assert_eq!(answered, Some(()), "the wait for memory is not the system's");
        assert_eq!(second.waited(), 9 * SECOND);
        let late = second.in_time(Instant::now() + SECOND, sleep(2 * SECOND)).await;
        assert_eq!(late, None, "what it waited before does not count again");
    }

    #[tokio::test(start_paused = true)]
    async fn where_there_are_no_others_there_is_memory() {
        let hold = AnswerHold::unlimited();
        hold.grow(usize::MAX).await;
        assert_eq!(hold.in_time(Instant::now(), sleep(SECOND)).await, None);
    }
}
