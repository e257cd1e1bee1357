//! Tests of the evidence for statements as values.

use std::{collections::HashSet, fmt::Write, fs, path::Path};

use ::golden::Golden;
use model::{EvidenceValue, Verdict};

use crate::case::{Given, statements};

/// Each `evidence/*.case` has evidence, specs and the evidence of each statement as JSON.
#[test]
fn the_evidence_of_statements() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/evidence");
    let mut golden = Golden::default();
    for file in ::golden::files(&folder, &["case"]) {
        let content = fs::read_to_string(&file).expect("a case can be read");
        let mut parts = content.splitn(3, "\n---\n");
        let (evidence, specs) =
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let mut found = String::new();
        for one in statements(evidence, specs) {
            let json = serde_json::to_string_pretty(&one.evidence).expect("it can be written");
            writeln!(found, "{}: {}\n{json}", one.written, one.verdict.as_str()).expect("a text");
        }
        golden.compare(&file, &format!("{evidence}\n---\n{specs}\n---\n{found}"));
    }
    golden.finish(6);
}

/// On all cases of judgements: a statement that passed has none, and every id is one of a span.
#[test]
fn evidence_is_of_statements_that_did_not_pass_and_of_spans_that_are_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/judge");
    let mut count = 0;
    for file in ::golden::files(&folder, &["case"]) {
        let content = fs::read_to_string(&file).expect("a case can be read");
        let mut parts = content.splitn(3, "\n---\n");
        let (evidence, specs) =
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let trace = Given::read(evidence).trace;
        for one in statements(evidence, specs) {
            let place = format!("{}: {}", file.display(), one.written);
            let Some(found) = one.evidence else { continue };
            count += 1;
            assert!(one.verdict != Verdict::Passed && !found.is_empty(), "{place}");
            let ids = found.deciding.iter().chain(found.nearest.iter().map(|miss| &miss.span_id));
            let ids = ids.chain(found.comparisons.iter().filter_map(|it| it.span_id.as_ref()));
            for id in ids {
                assert!(trace.find(*id).is_some(), "{place}: {id}");
            }
            let deciding: HashSet<_> = found.deciding.iter().collect();
            assert_eq!(deciding.len(), found.deciding.len(), "{place}");
            assert!(found.comparisons.len() <= 5 && found.nearest.len() <= 3, "{place}");
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn evidence_is_bounded() {
    let spans: String = (0..12_000).map(|n| format!("GET [client 9ms] {{\"n\": {n}}}\n")).collect();
    let claims = "- no span[name=\"GET\"]\n  ".repeat(8);
    let specs = format!(
        "trace:\n  - count(span[name=\"GET\"] by attr:n) > 1\n  - {}",
        claims.trim_start_matches("- ").trim_end()
    );
    let found = statements(&format!("settled whole\n{spans}"), &specs);
    let evidence: Vec<_> = found.iter().filter_map(|one| one.evidence.as_ref()).collect();
    let groups = evidence[0].groups.as_ref().expect("groups");
    assert_eq!((groups.worst.len(), groups.more, groups.broken), (20, 11_980, 12_000));
    assert_eq!((evidence[1].deciding.len(), evidence[1].more_deciding), (10_000, 2_000));
    assert_eq!(evidence[1].comparisons[0].found, Some(EvidenceValue::Number("12000".to_owned())));
    let ids: usize = evidence.iter().map(|one| one.deciding.len()).sum();
    assert!(ids * 19 < 1 << 20, "{ids}");
    let all = evidence.iter().map(|one| one.deciding.len() as u64 + one.more_deciding);
    assert!(all.eq(std::iter::repeat_n(12_000, evidence.len())));
    let written: usize =
        evidence.iter().map(|one| serde_json::to_string(one).expect("JSON").len()).sum();
    assert!(written < 1 << 20, "{written}");
}
