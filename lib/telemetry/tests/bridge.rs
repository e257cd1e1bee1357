//! The telemetry that the `tracing` bridge exports from a program with libraries: all of the program's own crates, only
//! warnings and errors of other crates, and never a source location.

#[expect(dead_code, reason = "a peer that takes everything is enough")]
mod peer;

use std::time::Duration;

use peer::Peer;
use telemetry::{
    Host, Roles, Telemetry,
    config::{self, Defaults, Environment},
    source::Text,
};
use tracing_subscriber::layer::SubscriberExt;

/// Emits one event and one span of a crate at each level.
macro_rules! log_all {
    ($target:literal) => {
        tracing::trace!(target: $target, concat!("trace of ", $target));
        tracing::debug!(target: $target, concat!("debug of ", $target));
        tracing::info!(target: $target, concat!("info of ", $target));
        tracing::warn!(target: $target, concat!("warn of ", $target));
        tracing::error!(target: $target, concat!("error of ", $target));
        drop(tracing::trace_span!(target: $target, concat!("trace span of ", $target)));
        drop(tracing::warn_span!(target: $target, concat!("warn span of ", $target)));
    };
}

/// Runs a program of the crates `shop` and `cart` that logs everything.
fn bridged(peer: &Peer, produce: impl FnOnce()) {
    let text = format!(
        "tracer: {{otel: {{type: open-telemetry, endpoint: '{}', level: trace, enable: {{log-exporter: true}}}}}}",
        peer.endpoint()
    );
    let (service_name, environment) = ("shop".to_owned(), Environment::default());
    let defaults = Defaults { service_name, directory: None, own_directory: None, environment };
    let plan = config::plan(&Text::new("app.yaml", &text), &defaults).expect("no mistakes");
    let mut host = Host::new("shop/1.0");
    host.crates = vec!["shop".to_owned(), "cart".to_owned()];
    let telemetry = Telemetry::start(&plan, &Roles::default(), host).expect("it starts");
    let subscriber = tracing_subscriber::registry().with(telemetry.tracing_layer());
    tracing::subscriber::with_default(subscriber, produce);
    let report = telemetry.shutdown(Duration::from_secs(20));
    assert!(report.is_delivered(), "{report:?}");
}

#[test]
fn libraries_are_heard_from_warn_on_and_no_place_in_the_code_leaves() {
    let peer = Peer::start();
    bridged(&peer, || {
        log_all!("shop");
        log_all!("cart::lines");
        log_all!("sqlx::query");
        // It has the name of a program crate as a prefix, but is another crate.
        log_all!("shopping");
        tracing::info!(name: "shop.order.placed", target: "shop", "placed");
    });

    let seen = peer.seen();
    let mut logs: Vec<_> = seen.iter().flat_map(peer::Seen::names).collect();
    let spans: Vec<_> = seen.iter().flat_map(|seen| &seen.spans).collect();
    logs.retain(|name| spans.iter().all(|span| span.name != *name));
    logs.sort();
    let levels = ["debug", "error", "info", "trace", "warn"];
    let own = |target: &'static str| levels.iter().map(move |level| format!("{level} of {target}"));
    let mut expected: Vec<_> = own("shop").chain(own("cart::lines")).collect();
    for library in ["sqlx::query", "shopping"] {
        expected.extend(["warn", "error"].map(|level| format!("{level} of {library}")));
    }
    expected.push("placed".to_owned());
    expected.sort();
    assert_eq!(logs, expected);

    let mut names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "trace span of cart::lines",
            "trace span of shop",
            "warn span of cart::lines",
            "warn span of shop",
            "warn span of shopping",
            "warn span of sqlx::query",
        ]
    );

    let records: Vec<_> = seen.iter().flat_map(|seen| &seen.logs).collect();
    let events: Vec<_> =
        records.iter().map(|log| &*log.event_name).filter(|it| !it.is_empty()).collect();
    assert_eq!(events, ["shop.order.placed"]);
    let place = file!();
    let told = format!("{records:?}{spans:?}");
    assert!(!told.contains(place), "{told}");
    for key in ["code.", "thread."] {
        assert!(!told.contains(&format!("key: \"{key}")), "{key}: {told}");
    }
}
