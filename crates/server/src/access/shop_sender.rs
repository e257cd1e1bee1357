//! The token of the demo shop of this process, where senders of spans have to authenticate.
//!
//! It exists in memory only, for one process, and the receiver alone accepts it: the API refuses it as any invalid token. It reaches the
//! runs of the projects whose editors have opened the shop here, and no others. Deliberately absent: its end; the shop is part of
//! this process, and no other program has the token.

use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use model::{Project, Role, Secret, World};

use super::{
    Caller,
    token::{self, Hash, PREFIX},
};

/// The maximum number of projects for which the shop sends spans.
const PROJECTS_MAX: usize = 64;

/// The token of the shop, once it is needed.
#[derive(Debug, Default)]
pub(crate) struct ShopSender(Mutex<Option<ShopToken>>);

#[derive(Debug)]
struct ShopToken {
    shown: Secret,
    hash: Hash,
    projects: Vec<Project>,
}

impl ShopSender {
    /// Lets the shop send spans for a project. Returns false if there are as many projects as there may be.
    pub(crate) fn admit(&self, project: &Project, world: World) -> bool {
        let mut token = self.lock();
        let token = token.get_or_insert_with(|| ShopToken::new(world));
        if token.projects.contains(project) {
            return true;
        }
        let has_room = token.projects.len() < PROJECTS_MAX;
        if has_room {
            token.projects.push(project.clone());
        }
        has_room
    }

    /// Returns the token; `None` before the first project is admitted.
    pub(crate) fn token(&self) -> Option<Secret> {
        self.lock().as_ref().map(|token| token.shown.clone())
    }

    /// Returns the shop as a sender of spans, if this is its token.
    pub(super) fn caller(&self, shown: &str) -> Option<Caller> {
        let hash = token::hash(shown)?;
        let token = self.lock();
        let token = token.as_ref().filter(|token| token.hash == hash)?;
        Some(Caller {
            name: "the demo shop".to_owned(),
            role: Role::Ingest,
            projects: Some(token.projects.clone()),
            token: None,
            person: None,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<ShopToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShopToken {
    fn new(world: World) -> Self {
        let shown = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(world.random::<32>()));
        let hash = token::hash(&shown).expect("it has the form of a token");
        Self { shown: Secret::new(shown), hash, projects: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use model::{Project, Role, Timestamp, World};

    use super::{PROJECTS_MAX, ShopSender};

    fn project(number: usize) -> Project {
        format!("p{number}").parse().expect("a name")
    }

    #[test]
    fn the_token_reaches_the_projects_that_opened_the_shop_and_no_others() {
        let world = World::new(|| Timestamp::from_nanos(0), || [9; 32]);
        let sender = ShopSender::default();
        assert!(sender.token().is_none());
        assert!(sender.admit(&project(1), world) && sender.admit(&project(1), world));
        let token = sender.token().expect("there is one");
        assert!(!format!("{sender:?}").contains(token.expose()), "it is shown nowhere");
        let caller = sender.caller(token.expose()).expect("it is the token");
        assert_eq!((caller.role, caller.projects), (Role::Ingest, Some(vec![project(1)])));
        assert_eq!(sender.caller(&token.expose().replace("qtt_", "qtt-")), None);
        assert_eq!(sender.caller("qtt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), None);
        for number in 2..=PROJECTS_MAX {
            assert!(sender.admit(&project(number), world), "{number}");
        }
        assert!(!sender.admit(&project(0), world), "there is no room");
        assert!(sender.admit(&project(1), world), "it is admitted already");
        let caller = sender.caller(token.expose()).expect("it is the token");
        assert_eq!(caller.projects.map(|it| it.len()), Some(PROJECTS_MAX));
    }
}
