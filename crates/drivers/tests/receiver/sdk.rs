//! Spans of the OpenTelemetry SDK, by its own exporters.

use std::sync::Arc;

use drivers::{
    append,
    inbox::{Inbox, Limits},
    receiver::{Counts, start},
};
use model::{Key, KeyRing, Timestamp, Trace, TraceId, trace::ValueRef};
use opentelemetry::{
    Context, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, TraceContextExt, TraceFlags, Tracer, TracerProvider},
};
use opentelemetry_otlp::{
    Compression, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
};
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::config;

/// How an exporter sends.
#[derive(Clone, Copy, Debug)]
enum Way {
    Grpc,
    GrpcGzip,
    Http,
    HttpGzip,
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_arrive_whole_by_every_way() {
    for way in [Way::Grpc, Way::GrpcGzip, Way::Http, Way::HttpGzip] {
        let ring = KeyRing::new(Key::from_bytes([5; 16]), Vec::new());
        let minted = ring.mint(Timestamp::from_nanos(0), [1; 7]);
        let inbox = Arc::new(Inbox::new(ring, Limits::default()));
        let receiver = start(config(), Arc::clone(&inbox)).await.expect("started");
        let mut arrivals = inbox.expect(minted);
        let (grpc, http) = (receiver.grpc_addr(), receiver.http_addr());
        let work = move || emit(exporter(way, grpc.port(), http.port()), minted);
        tokio::task::spawn_blocking(work).await.expect("emitted");
        let mut trace = Trace::new(minted);
        while trace.len() < 2 {
            let bytes = arrivals.next().await.expect("spans");
            append(&mut trace, &bytes).expect("appended");
        }
        check(&trace, way);
        let expected = Counts { kept: 2, foreign: 1, ..Counts::default() };
        assert_eq!(receiver.shutdown().await, expected, "{way:?}");
    }
}

fn exporter(way: Way, grpc: u16, http: u16) -> SpanExporter {
    let grpc = format!("http://127.0.0.1:{grpc}");
    let http = format!("http://127.0.0.1:{http}/v1/traces");
    let builder = SpanExporter::builder();
    let built = match way {
        Way::Grpc => builder.with_tonic().with_endpoint(grpc).build(),
        Way::GrpcGzip => {
            let builder = builder.with_tonic().with_endpoint(grpc);
            WithTonicConfig::with_compression(builder, Compression::Gzip).build()
        }
        Way::Http => builder.with_http().with_endpoint(http).build(),
        Way::HttpGzip => {
            let builder = builder.with_http().with_endpoint(http);
            WithHttpConfig::with_compression(builder, Compression::Gzip).build()
        }
    };
    built.expect("an exporter")
}

/// A parent and its child in the minted trace, and a span in a trace of its own. Each is exported when it ends.
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
