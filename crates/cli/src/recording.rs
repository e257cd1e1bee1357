//! Reads traces from files.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use model::{ErrorCode, Trace, TraceId};
use otlp::TraceFile;

use crate::{exit::Exit, terminal::Terminal};

/// The upper bound for a file, in bytes. A million spans in OTLP JSON have about that size.
const FILE_BYTES_MAX: u64 = 2 << 30;
/// The upper bound for traces of a file that an error message lists.
const TRACES_NAMED_MAX: usize = 10;

/// Reads the selected trace; prints an error on the terminal if that fails.
pub(crate) fn read(file: &Path, id: Option<TraceId>, terminal: &Terminal) -> Result<Trace, Exit> {
    Ok(read_with_logs(file, id, terminal)?.0)
}

/// Reads the selected trace, and the number of its log records.
pub(crate) fn read_with_logs(
    file: &Path,
    id: Option<TraceId>,
    terminal: &Terminal,
) -> Result<(Trace, u64), Exit> {
    let name = file.display();
    let refused = |why: String| {
        terminal
            .error(ErrorCode::TraceInvalid, format_args!("cannot read the trace `{name}`: {why}"));
        Exit::Refused
    };
    let bytes = content(file).map_err(refused)?;
    let TraceFile { traces, logs } =
        otlp::read_recording(&bytes).map_err(|error| refused(error.to_string()))?;
    let trace = choose(traces, id).map_err(refused)?;
    let logs = logs.iter().filter(|of| **of == trace.id()).count() as u64;
    Ok((trace, logs))
}

/// Parses the selected trace from the bytes of a file or of a server's response.
pub(crate) fn of_bytes(bytes: &[u8], id: Option<TraceId>) -> Result<Trace, String> {
    choose(otlp::read(bytes).map_err(|error| error.to_string())?, id)
}

fn content(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| {
            // A buffer that grows by doubling would hold a large file twice for a moment.
            let len = file.metadata()?.len().min(FILE_BYTES_MAX) as usize;
            bytes.reserve_exact(len + 1);
            file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)
        })
    };
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it has more than {} GiB", FILE_BYTES_MAX >> 30));
    }
    Ok(bytes)
}

fn choose(mut traces: Vec<Trace>, asked: Option<TraceId>) -> Result<Trace, String> {
    let named = |traces: &[Trace]| {
        let shown = traces.iter().take(TRACES_NAMED_MAX);
        let shown: Vec<_> = shown.map(|trace| format!("`{}`", trace.id())).collect();
        let more = if traces.len() > TRACES_NAMED_MAX { " and more" } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    if let Some(id) = asked {
        let at = traces.iter().position(|trace| trace.id() == id);
        let at = at.ok_or_else(|| format!("it holds no trace `{id}`, but {}", named(&traces)))?;
        return Ok(traces.swap_remove(at));
    }
    match traces.len() {
        1 => Ok(traces.remove(0)),
        0 => Err("it holds no span".to_owned()),
        count => Err(format!(
            "it holds {count} traces, {}: name the one that is meant, `--trace-id ID`",
            named(&traces)
        )),
    }
}
