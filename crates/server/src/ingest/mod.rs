//! Ingest of spans: from the OTLP receiver to the bus.
//!
//! The trace id decides whether a span belongs to a run: it was minted here, or a run waits for it. A sender reaches only runs
//! of its projects. All other spans are counted and discarded: they reach neither the bus nor its journal. Ingest is never
//! traced, so that telemetry about telemetry cannot loop.

pub(crate) mod announcements;
pub(crate) mod error;
pub(crate) mod interests;
mod journal_key;
pub(crate) mod overview;

use std::{fs, net::SocketAddr, path::PathBuf, pin::pin, sync::Arc};

use bus::{Bus, Channel, HELD_MAX, Local, Nats, PublishError, Signal};
use db::Db;
use drivers::receiver::{self, Gate, Sender, Sink, SinkError, Tls};
use model::{KeyRing, Project, TraceId, World};
use otlp::Batch;
use tokio::time::timeout;

use crate::{
    config::{self, Config, OtlpTls},
    database::{
        identity::{Identity, identity},
        keys::Keys,
        peers::Peers,
    },
    span_bus::SpanBus,
};
use error::IngestError;
use interests::{Interests, channel, own_channel};

/// The maximum age of a trace id in seconds: runs end long before, and an old id is a replay.
const EPOCH_AGE_MAX: u32 = 24 * 60 * 60;
/// How far the clock of the worker that minted an id may be ahead, in seconds. As far as behind: spans that are discarded here because
/// of a clock would be taken for absent there.
const EPOCH_AHEAD_MAX: u32 = EPOCH_AGE_MAX;

/// Accepts spans of runs, and discards all others.
#[derive(Debug)]
pub(crate) struct Ingest {
    pub(crate) bus: Arc<SpanBus>,
    /// The keys of trace ids. Until they are known, spans cannot be assigned to runs, and senders have to keep their spans.
    pub(crate) keys: Keys,
    pub(crate) interests: Interests,
    /// The other servers, which conclude nothing from absence while they know that this server accepts spans.
    pub(crate) peers: Peers,
    /// Where other servers learn of spans that were refused while NATS is away.
    pub(crate) db: Option<Db>,
    pub(crate) world: World,
}

/// The settings of the receiver and the span journal.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    addresses: Vec<SocketAddr>,
    tls: Option<OtlpTls>,
    directory: PathBuf,
    limits: config::Limits,
    /// The keys that encrypt spans on disk; if empty, a key file beside the spans is used.
    keys: Vec<[u8; 32]>,
    /// The bus over which servers share spans, if there is one.
    nats: Option<config::Nats>,
}

impl Settings {
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            // Both ports accept both protocols; there are two for senders that expect OTLP's default ports.
            addresses: match config.roles.ingest {
                true => vec![config.listen.otlp_grpc, config.listen.otlp_http],
                false => Vec::new(),
            },
            tls: config.tls.otlp.clone(),
            directory: config.data_directory.join("spans"),
            limits: config.limits,
            keys: config.secrets.keys.iter().map(|key| *key.expose()).collect(),
            nats: config.nats.clone(),
        }
    }

    /// Returns the number of streams of a shared bus; zero if there is none.
    pub(crate) fn streams(&self) -> u16 {
        self.nats.as_ref().map_or(0, |nats| nats.limits.streams)
    }

    /// Opens the bus, and returns it with the identity of the server.
    pub(crate) async fn open_bus(
        &self,
        world: World,
    ) -> Result<(Arc<SpanBus>, Identity), IngestError> {
        let limits = bus::Limits {
            trace_bytes_max: self.limits.trace_bytes_max,
            trace_spans_max: self.limits.trace_spans_max as u64,
            ..bus::Limits::default()
        };
        match &self.nats {
            None => self.open_local(limits, world).await,
            Some(nats) => {
                let bus = SpanBus::Shared(Box::new(Nats::new(options(nats, limits))));
                Ok((Arc::new(bus), identity(None, world)))
            }
        }
    }

    /// Opens the bus of one process, replays its journal, and logs the result.
    async fn open_local(
        &self,
        limits: bus::Limits,
        world: World,
    ) -> Result<(Arc<SpanBus>, Identity), IngestError> {
        // An export is the largest possible batch.
        let batch_bytes_max = receiver::Config::new(Vec::new()).message_bytes_max;
        let (directory, keys) = (self.directory.clone(), self.keys.clone());
        let open = move || {
            let keys = journal_key::keys(&directory, keys, world)?;
            let options = bus::Options { directory, limits, batch_bytes_max, keys };
            let bus = Local::open(options, world.now())?;
            let identity = identity(bus.folder(), world);
            Ok::<_, IngestError>((bus, identity))
        };
        let (bus, identity) = tokio::task::spawn_blocking(open).await??;
        let bus::ReplaySummary { traces, spans, damaged_bytes, left_out_spans } = bus.replayed();
        if traces > 0 {
            tracing::info!(traces, spans, "spans were found that a server before this one kept");
        }
        if damaged_bytes > 0 || left_out_spans > 0 {
            tracing::warn!(
                directory = %self.directory.display(), damaged_bytes, left_out_spans,
                "the journal of spans was damaged, and what could not be read is left out: runs that were in flight \
                 conclude nothing from absence"
            );
        }
        Ok((Arc::new(SpanBus::Local(Box::new(bus))), identity))
    }

    /// Returns the receiver's configuration: addresses, TLS, gate, and how many large exports it decodes at a time.
    pub(crate) fn receiver(
        &self,
        gate: Option<Gate>,
        decoders: usize,
    ) -> Result<receiver::Config, IngestError> {
        let tls = self.tls.as_ref().map(read_tls).transpose()?;
        let usual = receiver::Config::new(self.addresses.clone());
        Ok(receiver::Config { tls, gate, decoders, gives_way: true, ..usual })
    }
}

fn options(nats: &config::Nats, limits: bus::Limits) -> bus::NatsOptions {
    bus::NatsOptions {
        servers: nats.servers.clone(),
        login: nats.login.clone(),
        ca: nats.ca.clone(),
        prefix: nats.prefix.clone(),
        limits,
        stream: nats.limits,
        is_synced: nats.is_synced,
    }
}

fn read_tls(files: &OtlpTls) -> Result<Tls, IngestError> {
    let read = |path: &PathBuf| {
        fs::read(path).map_err(|reason| IngestError::TlsFile { path: path.clone(), reason })
    };
    let (certificate, key) = (read(&files.identity.cert)?, read(&files.identity.key)?);
    Ok(match &files.client_ca {
        None => Tls::from_pem(&certificate, &key)?,
        Some(ca) => Tls::with_clients(&certificate, &key, &read(ca)?)?,
    })
}

impl Ingest {
    /// Records that other servers cannot take the absence of spans for granted that this server has.
    async fn stop_sharing(&self) {
        if let Some(db) = &self.db {
            self.peers.stop_sharing(db).await;
        }
    }

    /// Refuses spans while other servers may not know that this server accepts them, except for runs that this server has
    /// subscribed to from their beginning: no other server draws conclusions about these.
    fn refuse_uncounted(&self, batches: &[bus::Batch]) -> Result<(), SinkError> {
        if batches.iter().all(|batch| self.bus.doubt(batch.channel).is_none()) {
            return Ok(());
        }
        for batch in batches {
            self.bus.lose(self.world.now(), batch.channel);
        }
        Err(SinkError::Unavailable(
            "the server's row in the database could not be renewed in time".to_owned(),
        ))
    }
}

impl Ingest {
    /// Whether an id was minted recently, for a run that this sender reaches.
    fn is_minted(&self, keys: &KeyRing, id: &TraceId, sender: &Sender) -> bool {
        let Some(minted) = keys.verify(id) else { return false };
        // Epoch seconds wrap in 2106, and so does their difference.
        let now = (self.world.now().as_secs() & u64::from(u32::MAX)) as u32;
        let is_of_now = now.wrapping_sub(minted) <= EPOCH_AGE_MAX
            || minted.wrapping_sub(now) <= EPOCH_AHEAD_MAX;
        is_of_now
            && sender.projects().is_none_or(|projects| projects.iter().any(|it| keys.is_of(it, id)))
    }

    /// Returns the bus channels for the spans of a trace from this sender, with the projects of the runs that have them. The project
    /// of a sender for all projects is not known.
    fn channels(&self, id: TraceId, sender: &Sender) -> Vec<(Channel, Option<Project>)> {
        let Some(keys) = self.keys.get() else { return Vec::new() };
        let minted = self.is_minted(keys, &id, sender).then(|| {
            let owner = sender.projects().and_then(|of| of.iter().find(|it| keys.is_of(it, &id)));
            (own_channel(keys, id), owner.cloned())
        });
        let external =
            self.interests.of(&id, sender).into_iter().map(|waiter| {
                (channel(keys, &waiter.project, id, waiter.slot), Some(waiter.project))
            });
        minted.into_iter().chain(external).collect()
    }
}

impl Sink for Ingest {
    fn wants(&self, id: &TraceId, sender: &Sender) -> bool {
        let Some(keys) = self.keys.get() else { return true };
        self.is_minted(keys, id, sender) || !self.interests.of(id, sender).is_empty()
    }

    fn lost(&self, trace_id: &TraceId, sender: &Sender) {
        for (channel, _) in self.channels(*trace_id, sender) {
            self.bus.lose(self.world.now(), channel);
        }
    }

    fn logged(&self, trace_id: &TraceId, sender: &Sender) {
        for (channel, _) in self.channels(*trace_id, sender) {
            self.bus.log(channel);
        }
    }

    fn lost_unread(&self, sender: &Sender, what: receiver::LostSignal) {
        let signal = match what {
            receiver::LostSignal::Spans => Signal::Spans,
            receiver::LostSignal::Logs => Signal::Logs,
        };
        self.bus.lose_unread(signal, sender.projects());
    }

    async fn flush(&self) -> Result<(), SinkError> {
        self.bus.flush().await.map_err(|refused| SinkError::Unavailable(refused.to_string()))
    }

    async fn accept(&self, batches: Vec<Batch>, sender: &Sender) -> Result<(), SinkError> {
        if self.keys.get().is_none() {
            return Err(SinkError::Unavailable("the server is not ready".to_owned()));
        }
        let projects: Option<Arc<[Project]>> =
            sender.projects().map(|projects| projects.iter().cloned().collect());
        let batches = batches.into_iter().flat_map(|Batch { trace_id, spans, bytes }| {
            let channels = self.channels(trace_id, sender).into_iter();
            let projects = projects.clone();
            channels.map(move |(channel, owner)| bus::Batch {
                channel,
                spans,
                bytes: bytes.clone(),
                projects: projects.clone(),
                owner,
            })
        });
        let batches: Vec<_> = batches.collect();
        // Over a shared bus, servers receive the spans of each other.
        if !self.bus.is_shared() && !self.peers.is_counted() {
            self.refuse_uncounted(&batches)?;
        }
        let mut publishing = pin!(self.bus.publish(self.world.now(), batches));
        let published = match timeout(HELD_MAX, &mut publishing).await {
            Ok(published) => published,
            // They may be stored behind the marker of a run that is judged now.
            Err(_) => tokio::join!(publishing, self.stop_sharing()).0,
        };
        // The same is true of the notice about their loss.
        if let Err(PublishError::Away { .. } | PublishError::Full { .. }) = published {
            self.stop_sharing().await;
        }
        published.map_err(|refused| match refused {
            PublishError::Full { .. } => SinkError::Full(refused.to_string()),
            PublishError::Journal { .. } | PublishError::Away { .. } | PublishError::Closed => {
                SinkError::Unavailable(refused.to_string())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc, time::Duration};

    use bus::{Bus, Channel, Doubt, Limits, Local, Next, Options, SealKeys, Signal};
    use db::AwaitedTrace;
    use drivers::receiver::{
        LostSignal, Sender, Sink, SinkError,
        conformance::{Facts, conforms},
    };
    use model::{Key, KeyRing, Project, Timestamp, TraceId, World};

    use super::{Batch, Ingest, Interests, Keys, Peers, SpanBus, own_channel};

    const NOW: u64 = 1_800_000_000;

    fn ingest() -> (Ingest, tempfile::TempDir) {
        let limits = Limits { trace_bytes_max: 100_000, ..Limits::default() };
        let directory = tempfile::tempdir().expect("a directory");
        let keys = SealKeys::new([1; 32], Vec::new(), [2; 16]);
        let folder = directory.path().to_owned();
        let options = Options { directory: folder, limits, batch_bytes_max: 1 << 20, keys };
        let bus = Local::open(options, Timestamp::from_nanos(0)).expect("it is there");
        let bus = Arc::new(SpanBus::Local(Box::new(bus)));
        let world = World::new(|| Timestamp::from_nanos(NOW * 1_000_000_000), || [0; 32]);
        let ingest = Ingest {
            bus: Arc::clone(&bus),
            keys: KeyRing::new(Key::from_bytes([1; 16]), Vec::new()).into(),
            interests: Interests::default(),
            peers: Peers::counted(Duration::from_secs(600), bus, world),
            db: None,
            world,
        };
        (ingest, directory)
    }

    fn own(ingest: &Ingest, trace: TraceId) -> Channel {
        own_channel(ingest.keys.of_open(), trace)
    }

    fn awaited(project: Project, trace: TraceId) -> AwaitedTrace {
        AwaitedTrace { project, trace, slot: None }
    }

    /// Returns how many batches of a trace are lost.
    fn lost(ingest: &Ingest, trace: TraceId) -> u64 {
        match ingest.bus.doubt(own(ingest, trace)) {
            Some(Doubt::Lost(batches)) => batches,
            _ => 0,
        }
    }

    fn minted(ingest: &Ingest, seconds: u64) -> TraceId {
        let at = Timestamp::from_nanos(seconds * 1_000_000_000);
        ingest.keys.of_open().mint(&Project::default(), at, [2; 5])
    }

    #[tokio::test]
    async fn the_bus_is_a_sink() {
        let (ingest, _directory) = ingest();
        let facts = Facts {
            wanted: minted(&ingest, NOW),
            foreign: TraceId::from_random([5; 16]),
            too_many_bytes: 100_001,
        };
        let mut subscription =
            ingest.bus.subscribe(own(&ingest, facts.wanted), &Project::default());
        conforms(
            &ingest,
            facts,
            async |batches| {
                let mut held = Vec::new();
                for _ in 0..batches {
                    held.extend(subscription.next().await);
                }
                held
            },
            || lost(&ingest, facts.wanted) + ingest.bus.unread(Signal::Spans, &Project::default()),
        )
        .await;
    }

    #[test]
    fn an_id_that_a_run_waits_for_is_wanted() {
        let (ingest, _directory) = ingest();
        let foreign = TraceId::from_random([5; 16]);
        let interest = ingest.interests.register(awaited(Project::default(), foreign));
        assert!(ingest.wants(&foreign, &Sender::of_all()));
        drop(interest);
        assert!(!ingest.wants(&foreign, &Sender::of_all()));
    }

    #[tokio::test]
    async fn a_sender_reaches_the_runs_of_its_projects_alone() {
        let (ingest, _directory) = ingest();
        let name = |name: &str| name.parse::<Project>().expect("a name");
        let (alpha, beta) = (name("alpha"), name("beta"));
        let [of_alpha, of_beta] = [&alpha, &beta].map(|project| Sender::of([project.clone()]));
        let at = Timestamp::from_nanos(NOW * 1_000_000_000);
        let betas = ingest.keys.of_open().mint(&beta, at, [3; 5]);
        assert!(ingest.wants(&betas, &of_beta) && ingest.wants(&betas, &Sender::of_all()));
        assert!(!ingest.wants(&betas, &of_alpha));
        // A test of alpha that names the id of beta's run gets the spans that alpha sends, and none of them reach beta.
        let _interest = ingest.interests.register(awaited(alpha.clone(), betas));
        let channel = super::channel(ingest.keys.of_open(), &alpha, betas, None);
        let [mut stolen, mut own] = [(channel, &alpha), (own(&ingest, betas), &beta)]
            .map(|(channel, project)| ingest.bus.subscribe(channel, project));
        let batch = |text: &'static str| Batch { trace_id: betas, spans: 1, bytes: text.into() };
        ingest.accept(vec![batch("of beta")], &of_beta).await.expect("taken");
        ingest.accept(vec![batch("of alpha")], &of_alpha).await.expect("taken");
        ingest.accept(vec![batch("of beta again")], &of_beta).await.expect("taken");
        assert_eq!(stolen.next().await.as_deref(), Some(&b"of alpha"[..]));
        assert_eq!(own.next().await.as_deref(), Some(&b"of beta"[..]));
        assert_eq!(own.next().await.as_deref(), Some(&b"of beta again"[..]));
        ingest.lost_unread(&of_alpha, LostSignal::Spans);
        assert_eq!(
            (ingest.bus.unread(Signal::Spans, &alpha), ingest.bus.unread(Signal::Spans, &beta)),
            (1, 0)
        );
        ingest.lost_unread(&Sender::of_all(), LostSignal::Spans);
        ingest.lost_unread(&of_beta, LostSignal::Logs);
        assert_eq!(
            (ingest.bus.unread(Signal::Spans, &alpha), ingest.bus.unread(Signal::Spans, &beta)),
            (2, 1)
        );
        assert_eq!(
            (ingest.bus.unread(Signal::Logs, &alpha), ingest.bus.unread(Signal::Logs, &beta)),
            (0, 1)
        );
    }

    #[tokio::test]
    async fn before_the_database_is_there_senders_keep_their_spans() {
        let (known, _directory) = ingest();
        let ingest = Ingest { keys: Keys::default(), ..known };
        assert!(ingest.wants(&TraceId::from_random([5; 16]), &Sender::of_all()));
        let refused =
            ingest.accept(Vec::new(), &Sender::of_all()).await.expect_err("refused for now");
        assert!(refused.to_string().contains("is not ready"), "{refused}");
    }

    #[tokio::test]
    async fn a_journal_that_cannot_be_written_is_no_full_one() {
        let (ingest, directory) = ingest();
        // The folder is deleted, and another journal creates it again.
        let folder = directory.path().join("0");
        fs::remove_dir_all(&folder).expect("it is there");
        fs::create_dir(&folder).expect("writable");
        fs::write(folder.join("lock"), "").expect("writable");
        let batch = Batch { trace_id: minted(&ingest, NOW), spans: 1, bytes: "spans".into() };
        let refused = ingest.accept(vec![batch], &Sender::of_all()).await.expect_err("not kept");
        assert!(matches!(refused, SinkError::Unavailable(_)), "{refused}");
    }

    #[tokio::test]
    async fn what_others_do_not_know_to_be_taken_here_is_refused() {
        let (counted, _directory) = ingest();
        let ingest = Ingest {
            peers: Peers::counted(Duration::ZERO, Arc::clone(&counted.bus), counted.world),
            ..counted
        };
        let (ours, other) = (minted(&ingest, NOW), minted(&ingest, NOW - 1));
        let batch = |trace_id| Batch { trace_id, spans: 1, bytes: vec![1, 2, 3].into() };
        let (_subscription, all) =
            (ingest.bus.subscribe(own(&ingest, ours), &Project::default()), Sender::of_all());
        ingest.bus.expect(own(&ingest, ours));
        // No other server draws conclusions about a run that this server has subscribed to.
        ingest.accept(vec![batch(ours)], &all).await.expect("taken");
        let both = vec![batch(ours), batch(other)];
        let refused = ingest.accept(both, &all).await.expect_err("refused");
        assert!(refused.to_string().contains("row"), "{refused}");
        assert_eq!(lost(&ingest, ours), 1, "it was refused with the other");
    }

    #[test]
    fn ids_from_another_time_are_not_wanted() {
        let (ingest, _directory) = ingest();
        let cases = [
            (NOW - 24 * 60 * 60, true),
            (NOW - 24 * 60 * 60 - 1, false),
            (NOW + 24 * 60 * 60, true),
            (NOW + 24 * 60 * 60 + 1, false),
            (0, false),
        ];
        for (seconds, wanted) in cases {
            let id = minted(&ingest, seconds);
            assert_eq!(ingest.wants(&id, &Sender::of_all()), wanted, "{seconds}");
        }
    }
}
