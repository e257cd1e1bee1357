//! Any bytes as a file of traces.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    otlp::read(bytes).ok();
});
