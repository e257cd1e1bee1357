//! A real Collector that is killed, suspended and restarted again and again, under a steady load.

use std::{collections::HashSet, sync::Arc, time::Duration};

use anyhow::Result;
use telemetry::plan::{Durability, Exporter, Transport};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    Fault, Ground,
    program::{BOTH, Program, SOON, SteadyLoad, exporter, kept_in, local, with_otlp},
};
use crate::parts::{Relay, Sink, SpanId};

/// Spans per second.
const RATE: u64 = 1000;
/// The timeout for the remaining spans to arrive at the end.
const END_MAX: Duration = Duration::from_secs(30);

/// A Collector, the sink behind it, and a program that emits to it.
struct CollectorStage {
    sink: Sink,
    relay: Relay,
    program: Arc<Program>,
    _folder: TempDir,
}

/// The Collector is killed, down for a while, and restarted.
pub(super) async fn killed(ground: &Ground) -> Result<Fault> {
    let (before, away) = if ground.short { (1, 3) } else { (5, 30) };
    let mut fault = Fault::default();
    for transport in BOTH {
        let mut stage = CollectorStage::new(transport, Duration::from_secs(10)).await?;
        let load = SteadyLoad::start(&stage.program, 1, RATE);
        sleep(Duration::from_secs(before)).await;
        stage.relay.kill().await?;
        sleep(Duration::from_secs(away)).await;
        stage.relay.start().await?;
        load.stop().await?;
        stage.end(&mut fault).await?;
    }
    Ok(fault)
}

/// The Collector is suspended for longer than the request timeout, then resumed.
pub(super) async fn hung(ground: &Ground) -> Result<Fault> {
    let (timeout, away) = if ground.short { (1, 3) } else { (10, 30) };
    let mut fault = Fault::default();
    for transport in BOTH {
        let stage = CollectorStage::new(transport, Duration::from_secs(timeout)).await?;
        let load = SteadyLoad::start(&stage.program, 1, RATE);
        let some = |counts: &telemetry::Counts| counts.delivered > 100;
        stage.program.until("a delivery", SOON, some).await?;
        stage.relay.hang().await?;
        sleep(Duration::from_secs(away)).await;
        let trouble = stage.program.counts().trouble.unwrap_or_default();
        fault.promise(trouble.contains("did not answer within"), || {
            format!("{transport:?}: the trouble of a hang: {trouble:?}")
        });
        stage.relay.go_on().await?;
        sleep(Duration::from_millis(500)).await;
        load.stop().await?;
        stage.end(&mut fault).await?;
    }
    Ok(fault)
}

/// The Collector is killed and restarted several times in a row, with less and less time between.
pub(super) async fn restarted(ground: &Ground) -> Result<Fault> {
    let rounds: u32 = if ground.short { 4 } else { 20 };
    let mut fault = Fault::default();
    for transport in BOTH {
        let mut stage = CollectorStage::new(transport, Duration::from_secs(10)).await?;
        let load = SteadyLoad::start(&stage.program, 2, RATE);
        for round in 1..=rounds {
            sleep(Duration::from_secs(1) / round).await;
            stage.relay.kill().await?;
            sleep(Duration::from_millis(500) / round).await;
            stage.relay.start().await?;
        }
        load.stop().await?;
        stage.end(&mut fault).await?;
    }
    Ok(fault)
}

impl CollectorStage {
    /// Starts a stage with a running Collector and this request timeout.
    async fn new(transport: Transport, timeout: Duration) -> Result<Self> {
        let (folder, sink) = (TempDir::new()?, Sink::start().await?);
        let mut relay = Relay::new(sink.port)?;
        relay.start().await?;
        let plan = to_relay(transport, &relay)?;
        let plan = with_otlp(plan, |otlp| otlp.timeout = timeout);
        let plan = kept_in(plan, folder.path(), Durability::Process);
        let program = Program::start(vec![plan])?;
        Ok(Self { sink, relay, program, _folder: folder })
    }

    /// Shuts the program down, and checks that all emitted spans are in the sink.
    async fn end(self, fault: &mut Fault) -> Result<()> {
        let ended = self.program.ended();
        let report = self.program.end(END_MAX).await?;
        fault.promise(report.is_delivered(), || format!("all is delivered: {report:?}"));
        fault.balance(&report.exporters);
        fault.arrived(&ended, &ids(&self.sink));
        fault.note(format!("{} came again", self.sink.received().repeated()));
        Ok(())
    }
}

/// Returns an exporter to this Collector.
pub(super) fn to_relay(transport: Transport, relay: &Relay) -> Result<Exporter> {
    let port = match transport {
        Transport::Grpc => relay.grpc,
        Transport::Http => relay.http,
    };
    exporter("tracer.collector", transport, &local(port))
}

/// Returns the ids of the spans in a sink.
pub(super) fn ids(sink: &Sink) -> HashSet<SpanId> {
    sink.received().spans.keys().copied().collect()
}
