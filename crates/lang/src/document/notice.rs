//! Warnings about valid documents that have no effect on runs.
//!
//! Deliberately absent: unsupported features of a test, which the parser of tests reports.

use source::{Diagnostic, Span, Text};

use super::settings::CURRENT;
use super::{
    Document, TraceStore,
    trace_store::{Azure, Store},
};

/// Where documents are used.
#[derive(Clone, Copy, Debug)]
pub struct NoticeContext<'a> {
    /// The address at which OTLP is received, for the configuration of a Collector.
    pub receiver: &'a str,
    /// Whether a server runs them.
    pub is_server: bool,
}

impl Document {
    /// Returns the warning for commands that check, store or run documents. `text` is the source of the document.
    pub fn notice(&self, text: &Text, context: NoticeContext<'_>) -> Option<Diagnostic> {
        match self {
            Self::TraceStore(store) => store.notice(text, context),
            Self::Analyzer(it) => of_other_id(it.id.as_deref(), it.head, ("analyzer", text)),
            Self::QualityGate(it) => of_other_id(it.id.as_deref(), it.head, ("quality gate", text)),
            Self::Test(_)
            | Self::TestSuite(_)
            | Self::VariableSet(_)
            | Self::SettleProfile(_)
            | Self::Ignored(_) => None,
        }
    }
}

impl TraceStore {
    /// Warns that the store is not queried, unless its spans arrive by OTLP anyway.
    fn notice(&self, text: &Text, context: NoticeContext<'_>) -> Option<Diagnostic> {
        let NoticeContext { receiver, is_server } = context;
        let kind = self.store.name();
        if let Some(refusal) = self.store.refusal() {
            return Some(Diagnostic::warning(text, self.head, refusal));
        }
        if is_server && self.store.names_file() {
            let message = "a server reads no file that a document names: its `tls.settings` cannot be used there";
            return Some(Diagnostic::warning(text, self.head, message));
        }
        if !self.is_queried() || self.can_be_queried() {
            return None;
        }
        let message = format!(
            "a trace store of type `{kind}` is not queried by this version: spans come by OTLP"
        );
        let name = self.name.as_deref().unwrap_or(kind);
        let help = format!(
            "have the Collector that feeds `{name}` send here too; beside what it has, its configuration needs"
        );
        let exporter =
            format!("  otlp/qualitytrace: {{endpoint: {receiver}, tls: {{insecure: true}}}}");
        let lines = [
            "exporters:",
            &exporter,
            "service:",
            "  pipelines:",
            "    traces/qualitytrace: {receivers: [otlp], exporters: [otlp/qualitytrace]}",
        ];
        Some(Diagnostic::warning(text, self.head, message).help_with(help, lines))
    }
}

impl Store {
    /// Returns the name of the type in documents.
    pub fn name(&self) -> &str {
        match self {
            Self::Otlp(name) => name,
            Self::Jaeger(_) => "jaeger",
            Self::Tempo(_) => "tempo",
            Self::OpenSearch(_) => "opensearch",
            Self::Elasticsearch(_) => "elasticsearch",
            Self::ElasticApm(_) => "elasticapm",
            Self::ClickHouse(_) => "clickhouse",
            Self::Zipkin(_) => "zipkin",
            Self::SignalFx(_) => "signalfx",
            Self::XRay(_) => "awsxray",
            Self::AzureAppInsights(_) => "azureappinsights",
            Self::SumoLogic(_) => "sumologic",
        }
    }

    /// Whether traces would have to be fetched from it.
    pub(super) fn is_queried(&self) -> bool {
        !matches!(self, Self::Otlp(_) | Self::AzureAppInsights(Azure { is_collector: true, .. }))
    }
}

/// Warns that an analyzer or a quality gate applies to no run.
fn of_other_id(id: Option<&str>, head: Span, (what, text): (&str, &Text)) -> Option<Diagnostic> {
    let id = id.filter(|id| *id != CURRENT)?;
    let message = format!("the {what} `{id}` holds for no run: only `{CURRENT}` does");
    let help = format!("write `id: {CURRENT}`, or leave the id out");
    Some(Diagnostic::warning(text, head, message).help(help))
}
