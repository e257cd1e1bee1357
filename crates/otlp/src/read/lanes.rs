//! The resource and scope of the spans of each lane of an object.

use serde_json::Value;

use super::{
    Problem, jaeger,
    json::{Mistake, Node},
    otlp,
    traces::{Around, Traces},
};

/// The lanes of an object, by number.
#[derive(Default)]
pub(super) struct Lanes(Vec<Option<(String, Lane)>>);

/// The format and context of the spans of a lane.
pub(super) enum Lane {
    Otlp(Box<Around>),
    Jaeger(Box<jaeger::Processes>),
}

impl Lanes {
    /// Adds the lane of a list of spans. Spans of a lane that was not added are ignored.
    pub(super) fn add(&mut self, spans: &Node<'_>, lane: Lane) -> Result<(), Mistake> {
        let Some(number) = spans.lane()? else { return Ok(()) };
        if self.0.len() <= number {
            self.0.resize_with(number + 1, || None);
        }
        self.0[number] = Some((spans.path(), lane));
        Ok(())
    }

    /// Reads one span of a lane into its trace.
    pub(super) fn read_span(
        &mut self,
        number: usize,
        ix: usize,
        span: &Value,
        traces: &mut Traces,
    ) -> Result<(), Problem> {
        let Some(Some((path, lane))) = self.0.get_mut(number) else { return Ok(()) };
        let node = Node::item_of(path, ix, span);
        match lane {
            Lane::Otlp(around) => otlp::read_span(&node, around, traces),
            Lane::Jaeger(processes) => processes.read_span(&node, traces),
        }
    }
}
