//! Golden tests: the shape of a recorded trace, and all errors of a shape file.

use std::{fs, path::Path};

use golden::Golden;
use shape::{Keep, Shape, mutants, read, write};
use source::{Colour, Text, draw};

fn here() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"))
}

#[test]
fn a_recorded_trace() {
    let recorded = here().join("../../../../docs/language/example/checkout.json");
    let traces = otlp::read(&fs::read(recorded).expect("there")).expect("a trace");
    let mut golden = Golden::default();
    let shape = Shape::of(&traces[0], &Keep::default()).expect("a shape");
    golden.compare(&here().join("checkout.shape"), &write(&shape));
    let mutants = mutants(&traces[0], &Keep::default(), 1000, None);
    let listed: Vec<_> =
        mutants.list.iter().map(|mutant| format!("{}\n    {}\n", mutant.id, mutant.says)).collect();
    golden.compare(&here().join("mutants.txt"), &listed.concat());
    golden.finish_among_others();
}

#[test]
fn mistakes() {
    let mut golden = Golden::default();
    let text = fs::read_to_string(here().join("mistakes.shape")).expect("there");
    let (shape, diagnostics) = read(&Text::new("mistakes.shape", text));
    assert!(shape.is_none());
    golden.compare(&here().join("mistakes.drawn"), &draw(&diagnostics, Colour::Never));
    for (at, text) in ["", "hello\nworld\n", "qualitytrace shape 2\n"].into_iter().enumerate() {
        let (shape, diagnostics) = read(&Text::new("other.shape", text));
        assert!(shape.is_none());
        let file = format!("other-{at}.drawn");
        golden.compare(&here().join(file), &draw(&diagnostics, Colour::Never));
    }
    golden.finish(4);
}
