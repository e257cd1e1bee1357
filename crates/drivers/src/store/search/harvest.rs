//! The spans that a query found, and why there may be more.

use std::collections::BTreeSet;

use model::{SpanDetail, Trace, TraceId, trace::TraceFull};

use super::{
    super::{Completeness, QueryResult, connection::quoted},
    api::{SearchHit, ShardCounts},
    document,
    source::StoredSpan,
};

/// The maximum number of reasons that are reported.
const REASONS_MAX: usize = 3;

#[derive(Debug)]
pub(super) struct SpanHarvest {
    pub(super) trace: TraceId,
    /// The bytes of all pages that were read.
    pub(super) bytes: usize,
    spans: Vec<StoredSpan>,
    /// What the writers of the documents do not keep of spans.
    pub(super) lacks: BTreeSet<SpanDetail>,
    gaps: Vec<String>,
}

impl SpanHarvest {
    pub(super) fn new(trace: TraceId) -> Self {
        Self { trace, bytes: 0, spans: Vec::new(), lacks: BTreeSet::new(), gaps: Vec::new() }
    }

    /// Notes why the answer may lack spans.
    pub(super) fn gap(&mut self, gap: String) {
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }

    /// Notes shards that did not answer. One that is assigned to no node does not count as failed in OpenSearch.
    pub(super) fn check_shards(&mut self, shards: &ShardCounts) {
        let ShardCounts { total, successful, failed, failures } = shards;
        if *failed == 0 && successful == total {
            return;
        }
        let reason = failures.iter().find_map(|it| it["reason"]["reason"].as_str());
        let reason = reason.map_or_else(String::new, |reason| format!(": {}", quoted(reason)));
        self.gap(format!("{successful} of {total} shards answered{reason}"));
    }

    /// Adds the span of a document.
    pub(super) fn add(&mut self, hit: SearchHit) {
        let SearchHit { index, id, source, .. } = hit;
        let span = source.ok_or_else(|| "it has no `_source`".to_owned());
        match span.and_then(|source| document::read(&source, self.trace)) {
            Ok((span, writer)) => {
                self.spans.push(span);
                self.lacks.extend(writer.lacks());
            }
            Err(why) => self
                .gap(format!("the document `{id}` of `{index}` is unreadable: {}", quoted(&why))),
        }
    }

    pub(super) fn into_result(mut self) -> QueryResult {
        // Documents that the index sorts equal come in any order.
        self.spans.sort_by(|one, other| {
            let key = |it: &StoredSpan| (it.span.start, it.span.id, it.span.end);
            key(one).cmp(&key(other)).then_with(|| one.span.name.cmp(&other.span.name))
        });
        let completeness = match self.gaps.len() {
            0 => Completeness::Complete,
            count => Completeness::Partial(reasons(&self.gaps, count)),
        };
        if self.spans.is_empty() && completeness == Completeness::Complete {
            return QueryResult::Nothing;
        }
        match encoded(self.trace, self.spans) {
            Ok(otlp) => QueryResult::Spans { otlp: vec![otlp.into()], completeness },
            Err(error) => QueryResult::Refused { message: error.to_string() },
        }
    }
}

fn reasons(gaps: &[String], count: usize) -> String {
    let first = gaps[..count.min(REASONS_MAX)].join("; ");
    match count.saturating_sub(REASONS_MAX) {
        0 => first,
        more => format!("{first}; and {more} more reasons"),
    }
}

fn encoded(trace: TraceId, spans: Vec<StoredSpan>) -> Result<Vec<u8>, TraceFull> {
    let mut found = Trace::new(trace);
    for StoredSpan { resource, scope, span } in spans {
        let (resource, scope) = (found.resource(resource)?, found.scope(scope)?);
        found.push(resource, scope, span)?;
    }
    Ok(otlp::encode(&found))
}
