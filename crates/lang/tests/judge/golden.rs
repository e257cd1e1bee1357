//! Golden tests of judgements. A golden file that differs is reported with its new content.

use std::{fs, path::Path};

use ::golden::Golden;

use crate::case;

/// Each `judge/*.case` has evidence, specs and the expected judgement.
#[test]
fn judgements() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/judge");
    let mut golden = Golden::default();
    for file in ::golden::files(&folder, &["case"]) {
        let content = fs::read_to_string(&file).expect("a case can be read");
        let mut parts = content.splitn(3, "\n---\n");
        let (evidence, specs) =
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let judged = case::judge(evidence, specs);
        golden.compare(&file, &format!("{evidence}\n---\n{specs}\n---\n{judged}"));
    }
    golden.finish(25);
}
