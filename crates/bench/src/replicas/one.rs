//! One server beside Postgres and a system under test: runs arrive at a fixed rate, whether or not the server keeps up, and the queue
//! must not grow. Before that, how many runs a server accepts that does nothing else.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    ReplicaExtent, at_most, percentile, progress, row,
    shop::{ReplicaShop, SHOP_TESTS, WRONG},
    stand::{ReplicaStand, end},
};
use crate::{
    parts::{Api, answer},
    table::Row,
};

/// The rate of the goal.
const RUNS_A_MINUTE: f64 = 10_000.0;
/// Starts that may be under way: below the limit of connections from one address.
const UNDER_WAY_MAX: usize = 400;
/// Clients that start runs one after the other, where acceptance alone is measured.
const CLIENTS: usize = 64;
const DELAY: Duration = Duration::from_millis(20);
const SETTLE: &str = "timeout: 60s, flush: 100ms";
/// How often the queue is read.
const LOOK: Duration = Duration::from_millis(250);
const SERVER: &str = "workers: {runs: 512, perHost: 512}";

/// The load: starts a second, how many windows, and how long each is.
struct ArrivalRate {
    a_second: f64,
    windows: usize,
    window: Duration,
}

/// What happened within one window.
#[derive(Debug, Default)]
struct LoadWindow {
    /// Milliseconds from when a start was due until its response.
    accepted: Vec<f64>,
    refused: usize,
    /// Queued runs, each time that the queue was read.
    queue: Vec<f64>,
}

pub(super) async fn measure(binary: &Path, extent: ReplicaExtent) -> Result<Vec<Row>> {
    let stand = ReplicaStand::start(binary, extent).await?;
    let mut rows = acceptance(&stand, extent).await?;
    let rate = RUNS_A_MINUTE / 60.0;
    let arrivals = extent.pick(
        ArrivalRate { a_second: rate, windows: 10, window: Duration::from_secs(60) },
        ArrivalRate { a_second: rate, windows: 6, window: Duration::from_secs(5) },
        ArrivalRate { a_second: 10.0, windows: 3, window: Duration::from_secs(3) },
    );
    rows.extend(steady(&stand, &arrivals).await?);
    Ok(rows)
}

/// Measures how many runs a process accepts that only serves the API.
async fn acceptance(stand: &ReplicaStand, extent: ReplicaExtent) -> Result<Vec<Row>> {
    let lasts = extent.pick(10, 3, 1);
    stand.create_database("acceptance").await?;
    let server = stand.serve_alone("acceptance", "server: {roles: [api]}").await?;
    let shop = ReplicaShop::start(0, DELAY).await?;
    let api = Api::new(&server.api)?;
    shop.apply(&api, SETTLE).await?;
    // Connections are opened before.
    starts(&api, Duration::from_millis(500)).await?;
    let (before, statements) = (stand.cpu(&[&server])?, stand.statements("acceptance").await?);
    let (began, accepted) = (Instant::now(), starts(&api, Duration::from_secs(lasts)).await?);
    let took = began.elapsed().as_secs_f64();
    let [server_ms, postgres_ms, _] = stand.cpu(&[&server])?.spent(before, accepted);
    let statements = stand.statements("acceptance").await? - statements;
    end(vec![server]).await?;
    Ok(vec![
        row("one: accepted by a process with the API alone", accepted as f64 / took, "runs/s"),
        row("one: statements for each", statements as f64 / accepted as f64, ""),
        row("one: CPU of the server for each", server_ms, "ms"),
        row("one: CPU of Postgres for each", postgres_ms, "ms"),
    ])
}

/// Starts runs from many clients for some time, and returns how many.
async fn starts(api: &Api, lasts: Duration) -> Result<usize> {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (api, is_over) = (api.clone(), Arc::clone(&is_over));
        clients.spawn(async move {
            let mut started = 0;
            while !is_over.load(Ordering::Relaxed) {
                api.start("present", &json!({})).await?;
                started += 1;
            }
            anyhow::Ok(started)
        });
    }
    sleep(lasts).await;
    is_over.store(true, Ordering::Relaxed);
    let mut all = 0;
    while let Some(started) = clients.join_next().await {
        all += started??;
    }
    Ok(all)
}

/// Starts runs at a fixed rate.
async fn steady(stand: &ReplicaStand, arrivals: &ArrivalRate) -> Result<Vec<Row>> {
    stand.create_database("steady").await?;
    let server = stand.serve_alone("steady", SERVER).await?;
    let shop = ReplicaShop::start(server.otlp_grpc, DELAY).await?;
    let api = Api::new(&server.api)?;
    shop.apply(&api, SETTLE).await?;
    for (test, ..) in SHOP_TESTS.iter().cycle().take(4 * SHOP_TESTS.len()) {
        api.start(test, &json!({})).await?;
    }
    stand.all_ended("steady").await?;
    let before = stand.cpu(&[&server])?;
    let began = Instant::now();
    let mut windows = Vec::new();
    for number in 0..arrivals.windows {
        let window = load(stand, &api, arrivals, began, number).await?;
        progress(&window.line(number));
        windows.push(window);
    }
    let ended = Instant::now();
    stand.all_ended("steady").await?;
    let rest = ended.elapsed().as_secs_f64();
    let runs: usize = windows.iter().map(|it| it.accepted.len()).sum();
    let cpu = stand.cpu(&[&server])?.spent(before, runs);
    let wrong = stand.count("steady", WRONG).await?;
    let stored = stand.count("steady", "select count(*) from runs").await?;
    ensure!(stored as usize == runs + 4 * SHOP_TESTS.len(), "{stored} runs are stored, not {runs}");
    end(vec![server]).await?;
    Ok(steady_rows(arrivals, &windows, (wrong, cpu, rest)))
}

/// Starts the runs of a window when each is due, and reads the queue meanwhile.
async fn load(
    stand: &ReplicaStand,
    api: &Api,
    arrivals: &ArrivalRate,
    began: Instant,
    number: usize,
) -> Result<LoadWindow> {
    let due = |turn: usize| began + Duration::from_secs_f64(turn as f64 / arrivals.a_second);
    let of_window = |windows: usize| {
        (arrivals.a_second * arrivals.window.as_secs_f64() * windows as f64) as usize
    };
    let (mut window, mut starts) = (LoadWindow::default(), JoinSet::new());
    let mut looked = Instant::now();
    let mut connection = stand.connect("steady").await?;
    for turn in of_window(number)..of_window(number + 1) {
        let due = due(turn);
        sleep_until(due).await;
        let (test, ..) = SHOP_TESTS[turn % SHOP_TESTS.len()];
        let start = api.request(Method::POST, &format!("/api/v1/tests/{test}/runs"));
        starts.spawn(async move {
            let (status, _) = answer(start.body("{}")).await?;
            anyhow::Ok((status, due.elapsed().as_secs_f64() * 1e3))
        });
        while starts.len() >= UNDER_WAY_MAX
            && let Some(started) = starts.join_next().await
        {
            window.add(started??);
        }
        while let Some(started) = starts.try_join_next() {
            window.add(started??);
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            let queued = sqlx::query_scalar("select count(*) from open_runs where epoch = 0");
            let queued: i64 = queued.fetch_one(&mut connection).await?;
            window.queue.push(queued as f64);
        }
    }
    while let Some(started) = starts.join_next().await {
        window.add(started??);
    }
    Ok(window)
}

impl LoadWindow {
    fn add(&mut self, (status, took): (u16, f64)) {
        match status {
            202 => self.accepted.push(took),
            _ => self.refused += 1,
        }
    }

    fn queued(&self) -> f64 {
        self.queue.iter().sum::<f64>() / self.queue.len() as f64
    }

    fn line(&self, number: usize) -> String {
        format!(
            "one: window {}: {} accepted, {} refused, queue {:.1} (at most {:.0}), accept p50 {:.1} ms, p99 {:.1} ms",
            number + 1,
            self.accepted.len(),
            self.refused,
            self.queued(),
            self.queue.iter().copied().fold(0.0, f64::max),
            percentile(&self.accepted, 0.5),
            percentile(&self.accepted, 0.99),
        )
    }
}

fn steady_rows(
    arrivals: &ArrivalRate,
    windows: &[LoadWindow],
    (wrong, [server, postgres, _], rest): (i64, [f64; 3], f64),
) -> Vec<Row> {
    let accepted: Vec<f64> = windows.iter().flat_map(|it| it.accepted.iter().copied()).collect();
    let refused: usize = windows.iter().map(|it| it.refused).sum();
    let queued: Vec<f64> = windows.iter().map(LoadWindow::queued).collect();
    let (second, last) = (queued.get(1), queued.last());
    let grown = last.zip(second).map_or(f64::NAN, |(last, second)| last - second);
    let minutes = arrivals.window.as_secs_f64() * windows.len() as f64 / 60.0;
    let mut rows = vec![
        row("one: runs started a minute", accepted.len() as f64 / minutes, "runs"),
        row("one: for", minutes, "min"),
        at_most(0.0, row("one: verdicts that are not right", wrong as f64, "runs")),
        at_most(0.0, row("one: starts that were refused", refused as f64, "runs")),
    ];
    for (number, window) in windows.iter().enumerate() {
        let name = format!("one: queue in window {}, mean", number + 1);
        rows.push(row(&name, window.queued(), "runs"));
    }
    rows.extend([
        // A queue that does not grow differs by less than what arrives in a second.
        at_most(arrivals.a_second, row("one: queue, last window less the second", grown, "runs")),
        row("one: due to accepted, median", percentile(&accepted, 0.5), "ms"),
        row("one: due to accepted, 99th of 100", percentile(&accepted, 0.99), "ms"),
        row("one: last start to last verdict", rest, "s"),
        row("one: CPU of the server, a run", server, "ms"),
        row("one: CPU of Postgres, a run", postgres, "ms"),
    ]);
    rows
}
