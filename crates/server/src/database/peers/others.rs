//! Which other servers may have received spans of a run that this server does not have.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use db::{AwaitedTrace, Db, DbError, OtherServer};
use drivers::receiver::ReceiverSnapshot;
use model::Project;
use tokio::time::Instant;

use super::{HEARTBEAT, Peers};
use crate::database::{
    announcements::{self, PeerMessage, ProcessId},
    receiver_reports, sharing,
};

/// The maximum number of other servers that are reported.
const OTHERS_MAX: u32 = 16;
/// How long a server has shared everything over the same bus, if its row is left out, at the least: many times what a proof takes.
const SHARED_MIN: Duration = Duration::from_secs(60);
/// The maximum number of servers on one bus that are read for a trace with an external id: as many as there are slots.
const BUS_SERVERS_MAX: u32 = 65_536;
/// How far the clocks of other hosts and our own may diverge over the time of a run: a second, and a hundredth of the time.
const SLACK: Duration = Duration::from_secs(1);
const SLACK_PART: u32 = 100;

/// The time in which spans count that a server may have received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunTimes {
    /// From when on they may have been sent.
    pub(crate) since: Instant,
    /// When the last proof began that all stored spans are here.
    pub(crate) proved: Instant,
}

/// The rows of the others, read after `began`.
#[derive(Clone, Debug)]
pub(super) struct PeerRows {
    began: Instant,
    /// The bus of this server at that time.
    bus: Option<String>,
    /// The time for which servers that are left out have shared everything over it.
    shared_min: Duration,
    others: Arc<[OtherServer]>,
}

/// The names of the other servers that may have received spans of a trace which this server does not have.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherServers {
    /// Servers that had something of the trace in hand after the proof began, or that have lost their bus for now. A later proof may
    /// cover them.
    pub(crate) late: Vec<String>,
    /// Servers on another bus, and servers that are gone.
    pub(crate) apart: Vec<String>,
}

/// The servers that may have received spans of a run, by what they have shared.
#[derive(Debug, Default)]
struct PeerGroups<'a> {
    /// All spans of the trace, since the last proof began.
    sharing: Vec<&'a OtherServer>,
    late: Vec<&'a OtherServer>,
    apart: Vec<&'a OtherServer>,
}

/// A trace with an external id that was announced to all servers on the bus.
#[derive(Debug)]
pub(crate) struct Announcement {
    awaited: AwaitedTrace,
    /// The servers that confirmed it.
    confirmed: HashSet<ProcessId>,
}

impl Peers {
    /// Returns the names of the other servers that may have received spans of a trace since a moment, and that have not shared all of
    /// them with this one since the last proof began; the rows are read after the call.
    ///
    /// A server that could not store something meanwhile names no bus for a moment, since what it reports of that may be stored behind
    /// the marker of the proof. Then it is requested whether that concerns this trace.
    pub(crate) async fn others(
        &self,
        db: &Db,
        run: RunTimes,
        trace: &AwaitedTrace,
    ) -> Result<OtherServers, DbError> {
        let PeerRows { others, bus, .. } = self.read(db, Instant::now(), reach(run.proved)).await?;
        Ok(self.partition((&others, bus.as_deref()), run, trace).await.others())
    }

    /// Does the same for a trace with an external id: of the servers on this bus only those share its spans that confirmed it when
    /// it was announced, or that have known it from their start.
    pub(crate) async fn others_of(
        &self,
        db: &Db,
        run: RunTimes,
        (trace, announcement): (&AwaitedTrace, &Announcement),
    ) -> Result<OtherServers, DbError> {
        let others = db.other_servers(self.0.process, None, BUS_SERVERS_MAX).await?;
        let bus = self.0.bus.0.identity();
        let mut groups = self.partition((&others, bus.as_deref()), run, trace).await;
        let is_confirmed = |other: &&OtherServer| announcement.confirmed.contains(&other.process);
        let sharing = std::mem::take(&mut groups.sharing).into_iter();
        let unconfirmed: Vec<_> = sharing.filter(|it| !is_confirmed(it)).collect();
        let processes = unconfirmed.iter().map(|other| other.process).collect();
        let known = announcements::check(&self.0.bus.0, &announcement.awaited, processes).await;
        let unknown = unconfirmed.into_iter().filter(|other| !known.contains(&other.process));
        groups.apart.extend(unknown);
        Ok(groups.others())
    }

    /// Separates the servers that may have received spans of a run by what they have shared over this bus.
    async fn partition<'a>(
        &self,
        (rows, bus): (&'a [OtherServer], Option<&str>),
        run: RunTimes,
        trace: &AwaitedTrace,
    ) -> PeerGroups<'a> {
        let until_now = reach(run.proved);
        let is_shared = |it: &&OtherServer| {
            bus.is_some() && it.bus.as_deref() == bus && it.shared_for > until_now
        };
        let (sharing, others): (Vec<_>, Vec<_>) = were_there(rows, run.since).partition(is_shared);
        let mut groups = PeerGroups { sharing, ..PeerGroups::default() };
        // A server that is gone answers nothing.
        let present = others.iter().filter(|other| other.gone_for.is_zero());
        let present: HashSet<_> = present.map(|other| other.process).collect();
        let Some(bus) = bus.filter(|_| !present.is_empty()) else {
            groups.apart = others;
            return groups;
        };
        let answers = sharing::request(&self.0.bus.0, trace, &present).await;
        let until_now = reach(run.proved);
        for other in others {
            let may_return = other.bus.is_none() && other.gone_for.is_zero();
            let group = match answers.get(&other.process).filter(|it| it.bus == bus) {
                Some(answer) if answer.shared_for > until_now => &mut groups.sharing,
                Some(_) => &mut groups.late,
                None if may_return => &mut groups.late,
                None => &mut groups.apart,
            };
            group.push(other);
        }
        groups
    }

    /// Announces a trace with an external id to the servers on this bus.
    pub(crate) async fn announce(
        &self,
        db: &Db,
        awaited: AwaitedTrace,
    ) -> Result<Announcement, DbError> {
        let others = db.other_servers(self.0.process, None, BUS_SERVERS_MAX).await?;
        let own = self.0.bus.0.identity();
        let on_bus = others
            .iter()
            .filter(|other| other.gone_for.is_zero() && own.is_some() && other.bus == own);
        let to = on_bus.map(|other| other.process).collect();
        let confirmed = announcements::announce(&self.0.bus.0, &awaited, to).await;
        Ok(Announcement { awaited, confirmed })
    }

    /// Adds what the receivers of all servers on this bus have seen to what this server has.
    pub(crate) async fn seen(
        &self,
        db: &Db,
        project: &Project,
        own: ReceiverSnapshot,
    ) -> ReceiverSnapshot {
        let (bus, _) = &self.0.bus;
        if !bus.is_shared() {
            return own;
        }
        let others = self.ingests(db).await;
        let message = PeerMessage::Seen { project: project.clone() };
        let message = serde_json::to_vec(&message).unwrap_or_default();
        let is_enough = |answers: &[Vec<u8>]| receiver_reports::have_answered(answers, others);
        let answers = bus.gather(&message, receiver_reports::ANSWER_MAX, is_enough).await;
        let is_own_one = self.0.roles.ingest;
        receiver_reports::merged(own, &answers, (others + usize::from(is_own_one), is_own_one))
    }

    /// Returns the number of other servers on this bus that receive spans, as it was some seconds ago.
    async fn ingests(&self, db: &Db) -> usize {
        let mut ingests = self.0.ingests.lock().await;
        if let Some((at, number)) = *ingests
            && at.elapsed() < HEARTBEAT
        {
            return number;
        }
        let own = self.0.bus.0.identity();
        let others = db.other_servers(self.0.process, None, BUS_SERVERS_MAX).await;
        let others = others.unwrap_or_default();
        let are_there = others.iter().filter(|it| it.gone_for.is_zero() && it.bus == own);
        let number = are_there.count();
        *ingests = Some((Instant::now(), number));
        number
    }

    /// Returns rows that were read after `asked`. Callers that wait for a read in progress share the next one.
    /// Leaves out servers that have shared everything for twice the time.
    async fn read(&self, db: &Db, asked: Instant, time: Duration) -> Result<PeerRows, DbError> {
        let mut read = self.0.read.lock().await;
        let shared_min = (2 * time).max(SHARED_MIN);
        let is_enough = |known: &&PeerRows| known.began > asked && known.shared_min >= 2 * time;
        if let Some(known) = read.as_ref().filter(is_enough) {
            return Ok(known.clone());
        }
        let (began, bus) = (Instant::now(), self.0.bus.0.identity());
        let apart_from = bus.as_deref().map(|bus| (bus, shared_min));
        let others = db.other_servers(self.0.process, apart_from, OTHERS_MAX).await?.into();
        Ok(read.insert(PeerRows { began, bus, shared_min, others }).clone())
    }
}

impl PeerGroups<'_> {
    fn others(&self) -> OtherServers {
        OtherServers { late: names(&self.late), apart: names(&self.apart) }
    }
}

/// Returns the servers that may have received spans since a moment.
fn were_there(others: &[OtherServer], since: Instant) -> impl Iterator<Item = &OtherServer> {
    // Measured after the rows were read, so that the duration of that is on the safe side.
    let reach = reach(since);
    others.iter().filter(move |other| other.gone_for <= reach)
}

/// Returns the time since a moment, by the clocks of other hosts.
fn reach(since: Instant) -> Duration {
    let elapsed = since.elapsed();
    elapsed + elapsed / SLACK_PART + SLACK
}

/// Returns the names of servers. Of a server that was started again there are two rows.
fn names(others: &[&OtherServer]) -> Vec<String> {
    others.iter().map(|other| other.name.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}
