//! Gzip compression of bodies.

use std::io::{Read, Write};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

/// Appends `bytes`, compressed by gzip, to `out`. Uses the fastest level: the sender shares its processor with the
/// program, and telemetry is so repetitive that better levels gain little.
pub(crate) fn gzip(out: Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(out, Compression::fast());
    encoder.write_all(bytes).expect("a vector takes every byte");
    encoder.finish().expect("a vector takes every byte")
}

/// Decompresses gzip, up to `bytes_max` bytes; `None` if the input is not gzip.
pub(crate) fn gunzip(bytes: &[u8], bytes_max: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    GzDecoder::new(bytes).take(bytes_max).read_to_end(&mut out).ok()?;
    Some(out)
}
