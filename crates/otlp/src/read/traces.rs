//! The traces of a file, each with the resources and scopes of its own spans.

use std::collections::BTreeMap;

use model::{
    Trace, TraceId,
    trace::{ResourceData, ResourceIx, ScopeData, ScopeIx, SpanData, Value},
};

use super::Problem;
use crate::split::copy_bytes_max;

/// Traces that grow by the spans of a file.
pub(super) struct Traces {
    by_id: BTreeMap<TraceId, Trace>,
    /// The remaining bytes for copies: each trace stores its own copy of shared resources and scopes.
    room: usize,
}

/// The resource and scope of spans, and their indices in each of their traces.
#[derive(Default)]
pub(super) struct Around {
    resource: ResourceData,
    scope: ScopeData,
    numbers: BTreeMap<TraceId, (ResourceIx, ScopeIx)>,
}

impl Traces {
    pub(super) fn of_file(len: usize) -> Self {
        Self { by_id: BTreeMap::new(), room: copy_bytes_max(len) }
    }

    pub(super) fn into_vec(self) -> Vec<Trace> {
        self.by_id.into_values().collect()
    }

    /// Adds a span to its trace.
    pub(super) fn push(
        &mut self,
        around: &mut Around,
        trace_id: TraceId,
        span: SpanData,
    ) -> Result<(), Problem> {
        let trace = self.by_id.entry(trace_id).or_insert_with(|| Trace::new(trace_id));
        let (resource, scope) = match around.numbers.get(&trace_id) {
            Some(known) => *known,
            None => {
                self.room = self.room.checked_sub(around.weight()).ok_or(Problem::TooLarge)?;
                let resource = trace.resource(around.resource.clone())?;
                let scope = trace.scope(around.scope.clone())?;
                around.numbers.insert(trace_id, (resource, scope));
                (resource, scope)
            }
        };
        trace.push(resource, scope, span)?;
        Ok(())
    }
}

impl Around {
    pub(super) fn new(resource: ResourceData, scope: ScopeData) -> Self {
        Self { resource, scope, numbers: BTreeMap::new() }
    }

    /// Estimates the bytes that a trace needs for it.
    fn weight(&self) -> usize {
        let entities = self.resource.entities.iter().map(|entity| {
            let keys = entity.id_keys.iter().chain(&entity.description_keys);
            entity.schema_url.len() + entity.kind.len() + keys.map(String::len).sum::<usize>()
        });
        weight_of(&self.resource.attributes)
            + entities.sum::<usize>()
            + self.resource.schema_url.len()
            + weight_of(&self.scope.attributes)
            + self.scope.name.len()
            + self.scope.version.len()
            + self.scope.schema_url.len()
    }
}

fn weight_of(attributes: &[(String, Value)]) -> usize {
    attributes.iter().map(|(key, value)| key.len() + weight_of_value(value)).sum()
}

/// Recursion is as deep as JSON may nest.
fn weight_of_value(value: &Value) -> usize {
    let content = match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Array(values) => values.iter().map(weight_of_value).sum(),
        Value::Map(entries) => weight_of(entries),
        Value::Empty | Value::Bool(_) | Value::Int(_) | Value::Double(_) => 0,
    };
    content + size_of::<Value>()
}
