//! Any text as a file of tests: read, compiled, filled and judged without a trace.

#![no_main]

use lang::{Document, Evidence, Seed, Vars};
use libfuzzer_sys::fuzz_target;
use model::Timestamp;
use source::{Colour, Text, draw};

fuzz_target!(|text: &str| {
    let (documents, mut found) = lang::read(&Text::new("fuzz.yaml", text.to_owned()));
    let seed = Seed { now: Timestamp::default(), random: [7; 32] };
    for document in &documents {
        let Document::Test(test) = document else { continue };
        let (plan, more) = lang::compile(test);
        found.extend(more);
        let Some(plan) = plan else { continue };
        lang::request(&plan, &Vars::default(), &seed).ok();
        if let Ok(resolved) = lang::resolve(&plan, &Vars::default(), &seed) {
            let nothing = Evidence { trace: None, trigger: None, answer: None, settlement: None };
            lang::judge(&resolved, &nothing);
        }
    }
    draw(&found, Colour::Never);
});
