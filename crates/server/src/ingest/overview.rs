//! What a sender has to know of the receiver, and which services have sent spans lately: for a person who connects a system.
//!
//! The receiver keeps recent exports of spans that belong to no run, for the diagnosis of runs. This reads the newest of them, of all
//! servers on the bus, and counts their spans by service. Deliberately absent: a counter of its own in the receiver, which would cost
//! every span something; so these numbers are those of recent exports, and no totals.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use db::Db;
use drivers::receiver::{AnsweredServers, Foreign, ReceiverSnapshot, ReceiverStats};
use model::Project;
use runner::Share;
use tokio::time::Instant;

use crate::{
    config::{Config, Listen},
    database::peers::Peers,
};

/// How old an export may be that counts.
pub(crate) const RECENT: Duration = Duration::from_secs(300);
/// The maximum bytes of exports that are read, the newest first.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// The maximum number of services.
pub(crate) const SERVICES_MAX: usize = 64;
/// The maximum number of refusals.
const REFUSALS_MAX: usize = 5;
/// For how long the same answer is given to all callers of a project.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// The maximum number of projects with an answer.
const PROJECTS_MAX: usize = 64;
/// The instrumentation scope of the server's own telemetry, which is no evidence of another system.
const OWN_SCOPE: &[u8] = b"qualitytrace";

/// Reads what receivers have seen. Clones share the answers.
#[derive(Clone, Debug)]
pub(crate) struct ReceiverOverview(Arc<OverviewState>);

#[derive(Debug)]
struct OverviewState {
    endpoint: Option<SenderEndpoint>,
    is_token_required: bool,
    peers: Peers,
    stats: ReceiverStats,
    answers: Mutex<HashMap<Project, (Instant, Arc<SeenServices>)>>,
}

/// What senders have to do, by the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderTerms {
    is_tls: bool,
    is_token_required: bool,
    /// Whether this process receives spans.
    receives: bool,
}

/// Where senders reach this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderEndpoint {
    /// The address; `None` if the server listens on all of them.
    pub(crate) host: Option<IpAddr>,
    pub(crate) grpc_port: u16,
    pub(crate) http_port: u16,
    pub(crate) is_tls: bool,
}

/// The services that have sent spans lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenServices {
    /// The one that was seen last first.
    pub(crate) services: Vec<SeenService>,
    /// Whether there are more of them.
    pub(crate) has_more: bool,
    /// The newest refusals of senders, the newest first.
    pub(crate) refusals: Vec<(Instant, String)>,
    /// How many servers answered, if there are several.
    pub(crate) servers: Option<AnsweredServers>,
}

/// A service that has sent spans lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenService {
    /// Its `service.name`, if it has one.
    pub(crate) name: Option<String>,
    /// Its spans in the exports that were read.
    pub(crate) spans: u64,
    /// When the last of them arrived.
    pub(crate) last: Instant,
}

impl SenderTerms {
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            is_tls: config.tls.otlp.is_some(),
            is_token_required: config.access.ingest_required,
            receives: config.roles.ingest,
        }
    }
}

impl ReceiverOverview {
    /// `listen` has the actual addresses.
    pub(crate) fn new(
        terms: SenderTerms,
        listen: Listen,
        (peers, stats): (Peers, ReceiverStats),
    ) -> Self {
        let SenderTerms { is_tls, is_token_required, receives } = terms;
        let ip = listen.otlp_grpc.ip();
        let endpoint = SenderEndpoint {
            host: Some(ip).filter(|ip| !ip.is_unspecified()),
            grpc_port: listen.otlp_grpc.port(),
            http_port: listen.otlp_http.port(),
            is_tls,
        };
        let endpoint = receives.then_some(endpoint);
        let answers = Mutex::default();
        Self(Arc::new(OverviewState { endpoint, is_token_required, peers, stats, answers }))
    }

    /// Returns where senders reach this process; `None` if it receives no spans.
    pub(crate) fn endpoint(&self) -> Option<SenderEndpoint> {
        self.0.endpoint
    }

    /// Whether senders need a token.
    pub(crate) fn is_token_required(&self) -> bool {
        self.0.is_token_required
    }

    /// Returns the number of other servers on this database that receive spans.
    pub(crate) async fn other_servers(&self, db: &Db) -> Result<usize, db::DbError> {
        let others = db.other_servers(self.0.peers.process(), None, SERVICES_MAX as u32).await?;
        Ok(others.iter().filter(|other| other.gone_for.is_zero()).count())
    }

    /// Returns the services whose spans reach a project. `share` computes.
    pub(crate) async fn seen(&self, db: &Db, project: &Project, share: Share) -> Arc<SeenServices> {
        let fresh = |(at, _): &&(Instant, _)| at.elapsed() < FRESH_FOR;
        let known = self.answers().get(project).filter(fresh).map(|(_, seen)| Arc::clone(seen));
        if let Some(known) = known {
            return known;
        }
        let own = self.0.stats.seen(project);
        let snapshot = self.0.peers.seen(db, project, own).await;
        let seen = Arc::new(share.run(move || counted(snapshot, Instant::now())).await);
        let mut answers = self.answers();
        if answers.len() >= PROJECTS_MAX {
            answers.retain(|_, (at, _)| at.elapsed() < FRESH_FOR);
        }
        if answers.len() < PROJECTS_MAX {
            answers.insert(project.clone(), (Instant::now(), Arc::clone(&seen)));
        }
        seen
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<Project, (Instant, Arc<SeenServices>)>> {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the spans of recent exports by service.
fn counted(snapshot: ReceiverSnapshot, now: Instant) -> SeenServices {
    let mut room = BYTES_MAX;
    let recent = snapshot.foreign.iter().rev().take_while(|export| {
        let is_recent = now.saturating_duration_since(export.at) <= RECENT;
        let is_fit = export.bytes.len() <= room;
        room = room.saturating_sub(export.bytes.len());
        is_recent && is_fit
    });
    let mut services: HashMap<Option<String>, (u64, Instant)> = HashMap::new();
    for Foreign { at, bytes } in recent {
        // The receiver counted an export that cannot be decoded as foreign. It is no evidence.
        let Ok(counts) = otlp::count_by_service(bytes, |scope| scope == OWN_SCOPE) else {
            continue;
        };
        for count in counts {
            // The newest export comes first.
            let (spans, _) = services.entry(count.service).or_insert((0, *at));
            *spans += count.spans;
        }
    }
    let mut services: Vec<_> = services
        .into_iter()
        .map(|(name, (spans, last))| SeenService { name, spans, last })
        .collect();
    services.sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.name.cmp(&b.name)));
    let has_more = services.len() > SERVICES_MAX;
    services.truncate(SERVICES_MAX);
    let refusals = snapshot.refusals.into_iter().rev();
    let refusals = refusals.filter(|it| now.saturating_duration_since(it.at) <= RECENT);
    let refusals = refusals.take(REFUSALS_MAX).map(|it| (it.at, it.what)).collect();
    SeenServices { services, has_more, refusals, servers: snapshot.servers }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use drivers::receiver::{Foreign, ReceiverSnapshot, Refusal};
    use otlp::proto::Message;
    use tokio::time::Instant;

    use super::{BYTES_MAX, RECENT, SERVICES_MAX, counted};

    /// Returns an export of a service with so many empty spans.
    fn export(service: &str, spans: usize) -> Vec<u8> {
        let mut message = Message::default();
        message.message(1, |of_resource| {
            of_resource.message(1, |resource| {
                resource.message(1, |attribute| {
                    attribute.bytes(1, b"service.name");
                    attribute.message(2, |value| {
                        value.bytes(1, service.as_bytes());
                    });
                });
            });
            of_resource.message(2, |of_scope| {
                for _ in 0..spans {
                    of_scope.bytes(2, b"");
                }
            });
        });
        message.bytes
    }

    fn snapshot(exports: Vec<(Instant, Vec<u8>)>) -> ReceiverSnapshot {
        let foreign = exports.into_iter().map(|(at, bytes)| Foreign { at, bytes: bytes.into() });
        ReceiverSnapshot { foreign: foreign.collect(), ..ReceiverSnapshot::default() }
    }

    #[test]
    fn services_are_those_of_recent_exports_the_newest_first() {
        let long_ago = Instant::now();
        let (before, now) = (long_ago + RECENT, long_ago + 2 * RECENT);
        let mut seen = snapshot(vec![
            (long_ago, export("gone", 1)),
            (before, export("cart", 2)),
            (before + Duration::from_secs(1), b"\xff\xff".to_vec()),
            (before + Duration::from_secs(2), export("web", 1)),
            (now, export("cart", 3)),
        ]);
        let what = |number| Refusal { at: now, what: format!("{number}") };
        seen.refusals = (0..9).map(what).collect();
        let found = counted(seen, now);
        let services: Vec<_> = found
            .services
            .iter()
            .map(|it| (it.name.as_deref().unwrap_or("-"), it.spans, it.last))
            .collect();
        assert_eq!(services, [("cart", 5, now), ("web", 1, before + Duration::from_secs(2))]);
        assert!(!found.has_more);
        let refusals: Vec<_> = found.refusals.iter().map(|(_, what)| what.as_str()).collect();
        assert_eq!(refusals, ["8", "7", "6", "5", "4"]);
    }

    #[test]
    fn what_is_read_is_bounded() {
        let now = Instant::now();
        let many = (0..=SERVICES_MAX).map(|number| (now, export(&format!("s{number:03}"), 1)));
        let found = counted(snapshot(many.collect()), now);
        assert!(found.has_more);
        assert_eq!(found.services.len(), SERVICES_MAX);
        let large = (now, vec![0; BYTES_MAX]);
        let found = counted(snapshot(vec![(now, export("old", 1)), large]), now);
        assert_eq!(found.services, [], "the newest export takes all the room");
    }
}
