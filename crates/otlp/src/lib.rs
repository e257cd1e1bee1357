//! OTLP bytes to the model and back.
//!
//! [`split`] looks at a request as it stands on the wire and takes out, still as bytes, the spans of the traces
//! that someone wants; everything else it only counts. [`append`] reads such bytes into a trace, [`encode`] writes
//! a trace, and nothing that OTLP says of a span is lost on the way. [`read`] reads trace files, of OTLP and of tools
//! that keep traces; [`traces_from_json`] turns a request in JSON into one in protobuf.
//!
//! Messages are read and written field by field, straight from and into the rows of a trace. Deliberately absent:
//! generated types, listeners, compression, runs, the content of logs and metrics (they are counted), and references
//! into the string table of profiles, which the protocol forbids in traces.

mod answer;
mod append;
mod count;
mod encode;
mod message;
mod read;
mod schema;
mod split;
mod wire;

pub use answer::{partial_success, partial_success_json, status, status_json};
pub use append::{AppendError, append};
pub use count::{LogRecords, count_metrics, read_logs};
pub use encode::encode;
pub use read::{
    Form, ReadError, TraceFile, count_metrics_json, read, read_logs_json, read_recording,
    traces_from_json,
};
pub use split::{Batch, Split, split};
pub use wire::DecodeError;
