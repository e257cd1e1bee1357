//! A TCP load balancer in front of the replicas.
//!
//! It sends each connection to the next replica whose `/readyz` responds with 200, as `docs/operations.md` recommends, and if there is
//! none to the next replica that accepts it. An open connection stays where it is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

/// The time between two probes.
const PROBE_EVERY: Duration = Duration::from_millis(500);
/// How long a probe may take: longer than the server waits for its database.
const PROBE_MAX: Duration = Duration::from_millis(2_500);
/// How long a connection to a replica may take.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// The connections at a time.
const CONNECTIONS_MAX: usize = 4_096;

/// The ports of a replica.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplicaPorts {
    /// The API and the probes.
    pub(super) http: u16,
    /// OTLP.
    pub(super) otlp: u16,
}

/// A balancer for the API and for OTLP, until it is dropped.
#[derive(Debug)]
pub(super) struct Balancer {
    /// The port for the API.
    pub(super) http: u16,
    /// The port for OTLP.
    pub(super) otlp: u16,
    _tasks: JoinSet<()>,
}

/// The replicas, and which of them are ready.
#[derive(Debug)]
struct ReplicaPool {
    replicas: Vec<(ReplicaPorts, AtomicBool)>,
    next: AtomicUsize,
}

impl Balancer {
    /// Starts the balancer.
    pub(super) async fn start(replicas: &[ReplicaPorts]) -> Result<Self> {
        let replicas = replicas.iter().map(|ports| (*ports, AtomicBool::new(true))).collect();
        let pool = Arc::new(ReplicaPool { replicas, next: AtomicUsize::new(0) });
        let mut tasks = JoinSet::new();
        for at in 0..pool.replicas.len() {
            tasks.spawn(probe(Arc::clone(&pool), at));
        }
        let mut ports = [0, 0];
        let kinds: [fn(&ReplicaPorts) -> u16; 2] = [|it| it.http, |it| it.otlp];
        for (port, of) in ports.iter_mut().zip(kinds) {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            *port = listener.local_addr()?.port();
            tasks.spawn(serve(listener, Arc::clone(&pool), of));
        }
        Ok(Self { http: ports[0], otlp: ports[1], _tasks: tasks })
    }
}

async fn serve(listener: TcpListener, pool: Arc<ReplicaPool>, of: fn(&ReplicaPorts) -> u16) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        let Ok((mut client, _)) = listener.accept().await else { continue };
        let pool = Arc::clone(&pool);
        connections.spawn(async move {
            if let Some(mut replica) = pool.connect(of).await {
                let _delayed = (client.set_nodelay(true), replica.set_nodelay(true));
                // Either side may end a connection at any time.
                let _ended = copy_bidirectional(&mut client, &mut replica).await;
            }
        });
    }
}

async fn probe(pool: Arc<ReplicaPool>, at: usize) {
    let (ports, is_ready) = &pool.replicas[at];
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build();
    let Ok(client) = client else { return };
    let url = format!("http://127.0.0.1:{}/readyz", ports.http);
    loop {
        let answer = timeout(PROBE_MAX, client.get(&url).send()).await;
        let answered = answer.is_ok_and(|answer| answer.is_ok_and(|it| it.status() == 200));
        is_ready.store(answered, Ordering::Relaxed);
        sleep(PROBE_EVERY).await;
    }
}

impl ReplicaPool {
    /// Connects to the next replica: to one that is ready, if there is one.
    async fn connect(&self, of: fn(&ReplicaPorts) -> u16) -> Option<TcpStream> {
        let (first, count) = (self.next.fetch_add(1, Ordering::Relaxed), self.replicas.len());
        let in_turn = (0..count).map(|offset| &self.replicas[(first + offset) % count]);
        let (ready, unready): (Vec<_>, Vec<_>) =
            in_turn.partition(|(_, is_ready)| is_ready.load(Ordering::Relaxed));
        for (ports, _) in ready.into_iter().chain(unready) {
            let connect = TcpStream::connect(("127.0.0.1", of(ports)));
            if let Ok(Ok(stream)) = timeout(CONNECT_MAX, connect).await {
                return Some(stream);
            }
        }
        None
    }
}
