//! Trace files: samples of each format with their traces, errors with their messages, and noise.

mod drawing;
mod noise;

use std::{fs, path::Path};

use golden::Golden;
use otlp::read;

use drawing::draw;

/// The file extensions of samples; `.hex` is protobuf in hexadecimal.
const EXTENSIONS: [&str; 3] = ["hex", "json", "jsonl"];

/// The lines of the Collector (0.161.0), `jaeger-real` and `jaeger-v3` (1.76.0) are the output of these programs for the same
/// spans; `measured` are requests that another tool was tested with; the rest is written by hand, as the tools document their
/// formats.
#[test]
fn each_file_says_what_it_always_said() {
    let mut golden = Golden::default();
    for file in golden::files(folder(), &EXTENSIONS) {
        let bytes = bytes_of(&file);
        let said = match read(&bytes) {
            Ok(traces) => draw(&traces),
            Err(error) => format!("error: {error}\n"),
        };
        golden.compare(&file.with_extension("txt"), &said);
    }
    golden.finish(20);
}

pub(crate) fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/read"))
}

pub(crate) fn bytes_of(file: &Path) -> Vec<u8> {
    let bytes = fs::read(file).expect("a sample");
    if file.extension().is_none_or(|extension| extension != "hex") {
        return bytes;
    }
    let digits: Vec<_> = bytes.iter().filter_map(|digit| char::from(*digit).to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
