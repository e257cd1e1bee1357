//! `shape record`, `shape diff` and `shape accept`: write the shape of a trace to a file, compare it, and update it.

use std::path::Path;

use model::{ErrorCode, Trace};
use serde_json::{Value, json};
use server::config::Environment;
use shape::{Difference, Shape};
use source::Colour;

use crate::{
    args::{self, TextFormat},
    documents,
    exit::Exit,
    files, recording, remote,
    run::state,
    terminal::Terminal,
};

/// The version of the output of `shape diff --format json`. It increases when a field is removed or changes its meaning.
const SCHEMA_VERSION: u32 = 1;

/// Writes the shape of a trace.
pub(crate) async fn record(
    args: &args::Record,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let trace = trace(&args.recorded, environment, terminal).await?;
    let keep = args.keep.clone().unwrap_or_default();
    let shape = Shape::of(&trace, &keep).map_err(|error| terminal.refuse(&error))?;
    let text = shape::write(&shape);
    let Some(file) = &args.output else {
        terminal.report(&format!("{}\n", terminal.harmless(&text)));
        return Ok(Exit::Passed);
    };
    let shown = file.display();
    let update = format!("`qualitytrace shape accept {shown} TRACE` brings it up to date");
    files::create(file, text.as_bytes(), &update, terminal)?;
    let (spans, lines) = (spans(trace.len()), text.lines().count());
    terminal.result(&format!("{}: the shape of {spans}, in {lines} lines", file.display()));
    Ok(Exit::Passed)
}

/// Prints the differences between a trace and a recorded shape.
pub(crate) async fn diff(
    args: &args::Diff,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let compared = compare(&args.golden, &args.recorded, environment, terminal).await?;
    let ShapeComparison { trace, differences, .. } = &compared;
    let is_same = differences.is_empty();
    if args.format == TextFormat::Json {
        let all: Vec<_> = differences.iter().map(as_json).collect();
        let told = json!({
            "schemaVersion": SCHEMA_VERSION,
            "shape": args.golden.display().to_string(),
            "traceId": trace.id().to_string(),
            "spans": trace.len(),
            "same": is_same,
            "differences": all,
        });
        terminal.result(&told.to_string());
    } else {
        tell(&args.golden, &compared, terminal);
        if !is_same {
            terminal.line(
                "is it meant? then `qualitytrace shape accept`, with the same words behind it",
            );
        }
    }
    Ok(if is_same { Exit::Passed } else { Exit::Failed })
}

/// Updates a recorded shape.
pub(crate) async fn accept(
    args: &args::Accept,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    if environment.get("CI").is_some_and(|value| !value.is_empty()) {
        terminal.error(ErrorCode::AcceptInCi,
            "`shape accept` is refused where `CI` is set: nobody reviews the difference there; accept it on your own machine and commit the file",
        );
        return Err(Exit::Refused);
    }
    let compared = compare(&args.golden, &args.recorded, environment, terminal).await?;
    tell(&args.golden, &compared, terminal);
    if compared.differences.is_empty() {
        return Ok(Exit::Passed);
    }
    let accepted = shape::accept(&compared.golden, &compared.found);
    state::replace(&args.golden, &shape::write(&accepted)).map_err(|error| {
        terminal.error(
            ErrorCode::FileUnwritable,
            format_args!("cannot write `{}`: {error}", args.golden.display()),
        );
        Exit::Refused
    })?;
    terminal.result(&format!("{}: accepted", args.golden.display()));
    Ok(Exit::Passed)
}

struct ShapeComparison {
    trace: Trace,
    golden: Shape,
    found: Shape,
    differences: Vec<Difference>,
}

async fn compare(
    golden: &Path,
    recorded: &args::TraceArgs,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<ShapeComparison, Exit> {
    let text = documents::read(golden, terminal)?;
    let (golden, diagnostics) = shape::read(&text);
    terminal.diagnostics(&diagnostics);
    let golden = golden.ok_or(Exit::Refused)?;
    let trace = trace(recorded, environment, terminal).await?;
    let found = Shape::of(&trace, &golden.keep).map_err(|error| terminal.refuse(&error))?;
    let differences = shape::diff(&golden, &found).map_err(|error| terminal.refuse(&error))?;
    Ok(ShapeComparison { trace, golden, found, differences })
}

/// Returns the trace of a file or of a run.
async fn trace(
    recorded: &args::TraceArgs,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Trace, Exit> {
    match (&recorded.trace, recorded.run) {
        (Some(file), _) => recording::read(file, recorded.trace_id, terminal),
        (None, Some(run)) => remote::trace(run, &recorded.connection, environment, terminal).await,
        (None, None) => {
            terminal.error(ErrorCode::Usage, "no trace is named: give a file, or `--run ID`");
            Err(Exit::Refused)
        }
    }
}

fn tell(golden: &Path, compared: &ShapeComparison, terminal: &Terminal) {
    let (file, trace) = (golden.display(), &compared.trace);
    let (id, spans) = (trace.id(), spans(trace.len()));
    let count = match compared.differences.len() {
        0 => return terminal.result(&format!("{file}: trace {id} has this shape ({spans})")),
        1 => "1 difference".to_owned(),
        count => format!("{count} differences"),
    };
    terminal.result(&format!("{file}: trace {id} has another shape, {count}"));
    for difference in &compared.differences {
        let line = terminal.harmless(&difference.to_string());
        terminal.report(&format!("  {}\n", coloured(&line, difference, terminal.colour)));
    }
}

/// Colours the first word of a difference.
fn coloured(line: &str, difference: &Difference, colour: Colour) -> String {
    let Some((first, rest)) = line.split_once(':').filter(|_| colour == Colour::Always) else {
        return line.to_owned();
    };
    let code = match difference {
        Difference::Missing { .. } => 31,
        Difference::Extra { .. } => 32,
        Difference::Moved { .. } | Difference::Changed { .. } | Difference::Count { .. } => 33,
    };
    format!("\x1b[{code}m{first}\x1b[0m:{rest}")
}

fn as_json(difference: &Difference) -> Value {
    let (kind, says) = (difference.word(), difference.to_string());
    match difference {
        Difference::Missing { what, under, below } | Difference::Extra { what, under, below } => {
            json!({"kind": kind, "what": what, "under": under, "spansBelow": below, "says": says})
        }
        Difference::Moved { what, from, to } => {
            json!({"kind": kind, "what": what, "from": from, "to": to, "says": says})
        }
        Difference::Changed { what, under, part, from, to } => json!({
            "kind": kind, "what": what, "under": under, "part": part, "from": from, "to": to, "says": says
        }),
        Difference::Count { what, under, from, to } => json!({
            "kind": kind, "what": what, "under": under, "least": from.min, "most": from.max, "found": to, "says": says
        }),
    }
}

fn spans(count: usize) -> String {
    if count == 1 { "1 span".to_owned() } else { format!("{count} spans") }
}
