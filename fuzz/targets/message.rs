//! Any bytes as a message of OTLP; what was read is written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{Trace, TraceId};

fuzz_target!(|bytes: &[u8]| {
    let id = TraceId::from_bytes([7; 16]).expect("not zero");
    let mut trace = Trace::new(id);
    otlp::append(&mut trace, bytes).ok();
    let mut again = Trace::new(id);
    otlp::append(&mut again, &otlp::encode(&trace)).expect("our own message");
    assert_eq!(again.len(), trace.len(), "what was written is read");
});
