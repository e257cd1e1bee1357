//! Decodes OTLP bytes into the model, and encodes them.
//!
//! [`split`] scans a request on the wire format and extracts, still as bytes, the spans of wanted traces; it only counts
//! everything else. [`append`] decodes such bytes into a trace, [`encode`] encodes a trace, and no data of a span is lost on
//! the way. [`read`] reads trace files, of OTLP and of tools that store traces; [`traces_from_json`] converts a request in JSON
//! into one in protobuf. [`find`] decodes the spans with one id only, and [`columns`] writes the outline of a trace as columns of
//! numbers, for the web page; [`attribute_column`] adds the values of one attribute.
//!
//! Messages are decoded and encoded field by field, directly from and into the rows of a trace. Deliberately absent: generated
//! types, listeners, compression, runs, the content of logs and metrics (they are counted), and references into the string
//! table of profiles, which the protocol forbids in traces.

mod answer;
mod append;
mod attribute_column;
mod columns;
mod count;
mod encode;
mod find;
mod message;
mod read;
mod schema;
mod services;
mod split;
mod wire;

pub use answer::{partial_success, partial_success_json, status, status_json};
pub use append::{AppendError, append};
pub use attribute_column::{AttributeColumn, attribute_column};
pub use columns::{COLUMNS_VERSION, ColumnsTooLarge, columns};
pub use count::{LogRecords, count_metrics, read_logs};
pub use encode::encode;
pub use find::find;
pub use read::{
    Form, ReadError, TraceFile, count_metrics_json, read, read_logs_json, read_recording,
    traces_from_json,
};
/// Protobuf, field by field, for the messages of trace stores around their spans.
pub mod proto {
    pub use crate::{
        message::Message,
        wire::{Fields, bytes, varint},
    };
}
pub use services::{ServiceSpans, count_by_service};
pub use split::{Batch, Split, only_ids, only_new, split};
pub use wire::DecodeError;
