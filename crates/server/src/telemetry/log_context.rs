//! What a log line is about: the trace of a request or a run, and the run. Work is run in a context that has them, so that no
//! line has to name them itself.
//!
//! Deliberately absent: how a line is written (`log` of the program), and spans, which name their own parent.

use model::RunId;
use telemetry::opentelemetry::{
    Context,
    context::{FutureExt, WithContext},
    trace::TraceContextExt,
};

use super::{catalogue::attribute, export::span_context, traceparent::TraceParent};

/// The run of a context.
#[derive(Clone, Copy)]
struct ContextRun(RunId);

/// Runs work in this trace context: log events of the work get its trace id and span id.
pub(crate) fn within<F: Future>(place: TraceParent, work: F) -> WithContext<F> {
    work.with_context(of(place))
}

/// Runs work for a run in this trace context: log events of the work get the id of the run too.
pub(crate) fn within_run<F: Future>(run: RunId, place: TraceParent, work: F) -> WithContext<F> {
    work.with_context(of_run(run, place))
}

/// Returns the context of a run, for work that is no future.
pub(crate) fn of_run(run: RunId, place: TraceParent) -> Context {
    of(place).with_value(ContextRun(run))
}

fn of(place: TraceParent) -> Context {
    let place = span_context(place.trace_id, place.span_id, true);
    Context::new().with_remote_span_context(place)
}

/// Returns the run that the work of this moment is for, behind the name of its attribute.
pub fn current_run() -> Option<(&'static str, RunId)> {
    let run = Context::map_current(|context| context.get::<ContextRun>().copied());
    run.map(|run| (attribute::RUN_ID, run.0))
}

#[cfg(test)]
mod tests {
    use model::RunId;
    use telemetry::opentelemetry::{Context, trace::TraceContextExt};

    use super::{TraceParent, current_run, within, within_run};

    const PLACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[tokio::test]
    async fn work_knows_its_run_and_its_trace() {
        let place: TraceParent = PLACE.parse().expect("valid");
        let run: RunId = "01a1df24-0753-7dbd-9bbb-1bac9e3d7927".parse().expect("valid");
        let seen = || {
            let context = Context::current();
            (
                current_run().map(|(_, run)| run),
                context.span().span_context().trace_id().to_string(),
            )
        };
        let trace = PLACE[3..35].to_owned();
        assert_eq!(within_run(run, place, async { seen() }).await, (Some(run), trace.clone()));
        assert_eq!(within(place, async { seen() }).await, (None, trace));
        assert_eq!(seen().0, None);
    }
}
