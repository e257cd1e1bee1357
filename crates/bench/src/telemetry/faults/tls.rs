//! TLS, mutual TLS, and an untrusted issuer.

use std::time::Duration;

use anyhow::Result;
use telemetry::plan::{Exporter, Tls, Transport};

use super::{
    Fault, Ground,
    peer::{Certificates, Peer},
    program::{BOTH, Program, SOON, exporter, received, with_otlp},
};

const EXPORTER: &str = "tracer.peer";
const SPANS: u64 = 1000;
/// The time limit of a fixed exporter: it does not wait for the hold of the one before it.
const MENDED_MAX: Duration = Duration::from_secs(3);

/// A trusted peer, a peer that requests a client certificate, and one that is untrusted until a reload fixes that.
pub(super) async fn tls(_: &Ground) -> Result<Fault> {
    let mut fault = Fault::default();
    let (certificates, others) = (Certificates::make(), Certificates::make());
    for transport in BOTH {
        let peer = Peer::start_tls(&certificates);
        delivered(&mut fault, transport, &peer, believing(&certificates)).await?;
        fault.promise(peer.seen().iter().all(|seen| !seen.is_known), || {
            format!("{transport:?}: nobody asked for a certificate")
        });
        let peer = Peer::start_mutual_tls(&certificates);
        let (cert_file, key_file) = (certificates.cert_file(), certificates.key_file());
        let mutual = Tls {
            cert_file: Some(cert_file),
            key_file: Some(key_file),
            ..believing(&certificates)
        };
        delivered(&mut fault, transport, &peer, mutual).await?;
        fault.promise(peer.seen().iter().all(|seen| seen.is_known), || {
            format!("{transport:?}: the certificate was shown")
        });
        mended(&mut fault, transport, (&certificates, &others)).await?;
    }
    Ok(fault)
}

async fn delivered(fault: &mut Fault, transport: Transport, peer: &Peer, tls: Tls) -> Result<()> {
    let program = Program::start(vec![with_tls(transport, peer, tls)?])?;
    program.emit(SPANS);
    let ended = program.ended();
    let report = program.end(SOON).await?;
    fault.promise(report.is_delivered(), || format!("{transport:?}: delivered: {report:?}"));
    fault.balance(&report.exporters);
    fault.arrived(&ended, &received(peer));
    Ok(())
}

async fn mended(
    fault: &mut Fault,
    transport: Transport,
    (certificates, others): (&Certificates, &Certificates),
) -> Result<()> {
    let peer = Peer::start_tls(certificates);
    let program = Program::start(vec![with_tls(transport, &peer, believing(others))?])?;
    program.emit(SPANS);
    let counts = program.until("the trouble", SOON, |counts| counts.trouble.is_some()).await?;
    let trouble = counts.trouble.clone().unwrap_or_default();
    fault.promise(trouble.contains("TLS"), || format!("the trouble names TLS: {trouble}"));
    let said = program.wait_for_line("TLS").await?;
    fault.promise(said.len() == 1 && said[0].contains("TLS"), || format!("said once: {said:?}"));
    fault.promise(counts.queued == SPANS, || format!("nothing is given up: {counts:?}"));
    program.reload(vec![with_tls(transport, &peer, believing(certificates))?])?;
    program.until("the delivery", MENDED_MAX, |counts| counts.delivered == SPANS).await?;
    let ended = program.ended();
    fault.balance(&program.end(SOON).await?.exporters);
    fault.arrived(&ended, &received(&peer));
    Ok(())
}

fn believing(certificates: &Certificates) -> Tls {
    Tls { ca_file: Some(certificates.ca_file()), ..Tls::default() }
}

fn with_tls(transport: Transport, peer: &Peer, tls: Tls) -> Result<Exporter> {
    let exporter = exporter(EXPORTER, transport, &peer.endpoint())?;
    Ok(with_otlp(exporter, |otlp| otlp.tls = tls))
}
