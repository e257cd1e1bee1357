//! Spans of the OpenTelemetry SDK, sent by its own exporters.

use std::sync::Arc;

use drivers::{
    Arrival, append,
    inbox::{Inbox, Limits},
    receiver::{Counts, start},
};
use model::{Key, KeyRing, Project, Timestamp, Trace, TraceId, trace::ValueRef};
use opentelemetry::{
    Context, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, TraceContextExt, TraceFlags, Tracer, TracerProvider},
};
use opentelemetry_otlp::{
    Compression, Protocol, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
};
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::config;

/// The protocol of an exporter.
#[derive(Clone, Copy, Debug)]
enum Way {
    Grpc,
    GrpcGzip,
    GrpcZstd,
    Http,
    HttpGzip,
    HttpZstd,
    HttpJson,
}

const WAYS: [Way; 7] = [
    Way::Grpc,
    Way::GrpcGzip,
    Way::GrpcZstd,
    Way::Http,
    Way::HttpGzip,
    Way::HttpZstd,
    Way::HttpJson,
];

#[tokio::test(flavor = "multi_thread")]
async fn spans_arrive_whole_by_every_way() {
    // Each exporter uses both addresses, since each address serves all protocols.
    for (way, address) in WAYS.into_iter().flat_map(|way| [(way, 0), (way, 1)]) {
        let ring = KeyRing::new(Key::from_bytes([5; 16]), Vec::new());
        let minted = ring.mint(&Project::default(), Timestamp::from_nanos(0), [1; 5]);
        let inbox = Arc::new(Inbox::new(ring, Limits::default()));
        let receiver = start(config(), Arc::clone(&inbox)).await.expect("started");
        let mut arrivals = inbox.expect(minted);
        let port = receiver.addresses()[address].port();
        let work = move || emit(exporter(way, port), minted);
        tokio::task::spawn_blocking(work).await.expect("emitted");
        let mut trace = Trace::new(minted);
        while trace.len() < 2 {
            let bytes = arrivals.next().await.and_then(Arrival::spans).expect("spans");
            append(&mut trace, &bytes).expect("appended");
        }
        check(&trace, way);
        let expected = Counts { kept: 2, foreign: 1, ..Counts::default() };
        assert_eq!(receiver.shutdown().await, expected, "{way:?}");
    }
}

fn exporter(way: Way, port: u16) -> SpanExporter {
    let grpc = |packing: Option<Compression>| {
        let builder = SpanExporter::builder().with_tonic();
        let builder = builder.with_endpoint(format!("http://127.0.0.1:{port}"));
        match packing {
            None => builder.build(),
            Some(packing) => WithTonicConfig::with_compression(builder, packing).build(),
        }
    };
    let http = |protocol: Protocol, packing: Option<Compression>| {
        let builder = SpanExporter::builder().with_http().with_protocol(protocol);
        let builder = builder.with_endpoint(format!("http://127.0.0.1:{port}/v1/traces"));
        match packing {
            None => builder.build(),
            Some(packing) => WithHttpConfig::with_compression(builder, packing).build(),
        }
    };
    let built = match way {
        Way::Grpc => grpc(None),
        Way::GrpcGzip => grpc(Some(Compression::Gzip)),
        Way::GrpcZstd => grpc(Some(Compression::Zstd)),
        Way::Http => http(Protocol::HttpBinary, None),
        Way::HttpGzip => http(Protocol::HttpBinary, Some(Compression::Gzip)),
        Way::HttpZstd => http(Protocol::HttpBinary, Some(Compression::Zstd)),
        Way::HttpJson => http(Protocol::HttpJson, None),
    };
    built.expect("an exporter")
}

/// Emits a parent and its child in the minted trace, and a span in a new trace. Each is exported when it ends.
fn emit(exporter: SpanExporter, minted: TraceId) {
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter).build();
    let tracer = provider.tracer("checkout");
    let remote = SpanContext::new(
        opentelemetry::trace::TraceId::from_bytes(*minted.as_bytes()),
        SpanId::from_bytes([9; 8]),
        TraceFlags::SAMPLED,
        true,
        opentelemetry::trace::TraceState::default(),
    );
    let parent = Context::new().with_remote_span_context(remote);
    let builder = tracer.span_builder("POST /checkout").with_kind(SpanKind::Server);
    let builder = builder.with_attributes([KeyValue::new("cart.size", 3)]);
    let server = parent.with_span(builder.start_with_context(&tracer, &parent));
    drop(tracer.start_with_context("INSERT", &server));
    server.span().end();
    drop(tracer.start("unrelated"));
    provider.shutdown().expect("shut down");
}

fn check(trace: &Trace, way: Way) {
    let named = |name| trace.spans().find(|span| span.name() == name).expect("the span");
    let (server, insert) = (named("POST /checkout"), named("INSERT"));
    assert_eq!(insert.parent(), Some(server.id()), "{way:?}");
    assert_eq!(server.parent().map(|id| *id.as_bytes()), Some([9; 8]), "{way:?}");
    assert_eq!(server.kind(), model::trace::Kind::Server, "{way:?}");
    assert!(matches!(server.attributes().get("cart.size"), Some(ValueRef::Int(3))), "{way:?}");
    assert_eq!(server.scope().name(), "checkout", "{way:?}");
    assert!(server.end() >= server.start() && server.start() > Timestamp::default(), "{way:?}");
}
