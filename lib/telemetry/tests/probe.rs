//! The results of probing a destination before use: the signals carried by each role, and no secrets.

#[expect(dead_code, reason = "a probe needs a peer that answers")]
mod peer;

use std::time::Duration;

use peer::Peer;
use telemetry::{
    Host, Roles, config,
    plan::{
        Buffer, Compression, Destination, Endpoints, Exporter, Otlp, Plan, Retry, Signal, Signals,
        Tls, Transport,
    },
    probe,
};

fn plan(peer: &Peer) -> Plan {
    let uri = |path: &str| {
        format!("http://{}/v1/{path}?key=hidden", peer.address()).parse().expect("a URL")
    };
    let endpoints = Endpoints { traces: uri("traces"), logs: uri("logs"), metrics: uri("metrics") };
    let exporter = Exporter {
        name: "one".to_owned(),
        service_name: "program".to_owned(),
        always: false,
        signals: Signals { spans: true, logs: false, metrics: Some(Duration::from_secs(1)) },
        sampling: 100.0,
        level: None,
        throttle: Duration::from_secs(1),
        lossy: false,
        buffer: Buffer::default(),
        destination: Destination::Otlp(Otlp {
            transport: Transport::Http,
            endpoints,
            headers: Vec::new(),
            tls: Tls::default(),
            timeout: Duration::from_secs(5),
            compression: Compression::None,
            retry: Retry::default(),
            concurrency: 1,
        }),
    };
    Plan { exporters: vec![exporter], ..Plan::default() }
}

#[test]
fn a_probe_sends_what_the_role_carries_and_shows_no_query() {
    let own = Roles { own: Some("one".to_owned()), others: Vec::new() };
    let other = Roles { own: None, others: vec!["one".to_owned()] };
    let nobody = Roles::default();
    let (spans, metrics) = (Signal::Spans, Signal::Metrics);
    for (roles, signals) in
        [(own, vec![spans, metrics]), (other, vec![spans]), (nobody, Vec::new())]
    {
        let peer = Peer::start();
        let probes = probe(&plan(&peer), &roles, &Host::new("program/1.0"));
        assert_eq!(probes.iter().map(|probe| probe.signal).collect::<Vec<_>>(), signals);
        assert_eq!(peer.seen().len(), signals.len());
        for probe in probes {
            assert!(probe.arrived() && !probe.to_string().contains("hidden"), "{probe}");
            assert!(probe.endpoint.ends_with(&format!("/v1/{}", path(probe.signal))), "{probe}");
        }
    }
}

#[test]
fn a_description_shows_no_query() {
    let peer = Peer::start();
    let said = config::describe(&plan(&peer));
    assert!(said.contains("/v1/traces") && !said.contains("hidden"), "{said}");
}

fn path(signal: Signal) -> &'static str {
    match signal {
        Signal::Spans => "traces",
        Signal::Logs => "logs",
        Signal::Metrics => "metrics",
    }
}
