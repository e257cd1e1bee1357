//! The SDK's batch processor with its OTLP exporters: the baseline.

use std::time::Duration;

use anyhow::Result;
use opentelemetry_otlp::{
    RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfig, BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};

use super::subject::{ExporterKind, Subject, Transport};

/// The tuned queue, in spans.
const QUEUE: usize = 1 << 20;
/// The tuned retries and timeout.
const RETRIES: usize = 100_000;
const TIMEOUT: Duration = Duration::from_secs(300);
/// The tuned delay, which is our default.
const DELAY: Duration = Duration::from_secs(1);

/// Returns a provider with one exporter to this port. For gRPC it must be created within a runtime.
pub(crate) fn provider(subject: Subject, port: u16) -> Result<SdkTracerProvider> {
    let tuned = subject.kind == ExporterKind::StockTuned;
    let exporter = match subject.transport {
        Transport::Grpc => {
            let builder = SpanExporter::builder().with_tonic();
            let builder = builder.with_endpoint(format!("http://127.0.0.1:{port}"));
            if tuned { builder.with_retry_policy(retry()).with_timeout(TIMEOUT) } else { builder }
                .build()?
        }
        Transport::Http => {
            let builder = SpanExporter::builder().with_http();
            let builder = builder.with_endpoint(format!("http://127.0.0.1:{port}/v1/traces"));
            if tuned { builder.with_retry_policy(retry()).with_timeout(TIMEOUT) } else { builder }
                .build()?
        }
    };
    let batch = if tuned {
        let builder = BatchConfigBuilder::default().with_max_queue_size(QUEUE);
        builder.with_scheduled_delay(DELAY).build()
    } else {
        BatchConfig::default()
    };
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batch).build();
    let resource = Resource::builder_empty().with_service_name("emitter").build();
    Ok(SdkTracerProvider::builder().with_span_processor(processor).with_resource(resource).build())
}

fn retry() -> RetryPolicy {
    RetryPolicy::default().with_max_retries(RETRIES)
}
