//! Lists of tests: what they contain, their order, and their pages.

use db::{NewRun, NewTest, TestFilter, TestOrder, VerdictRank};
use model::{TestId, Verdict};

use crate::scratch::{Scratch, apply, at, new_run, new_test, project, with};

/// Tests, and the verdicts of their runs, the newest last; `None` is a run that waits.
const TESTS: &[(&str, &str, &[Option<Verdict>])] = &[
    ("basket", "A basket is filled", &[Some(Verdict::Failed), Some(Verdict::Passed)]),
    ("checkout", "Ein Einkauf für Zwei", &[Some(Verdict::Passed), Some(Verdict::Failed), None]),
    ("delivery", "A delivery takes 100%", &[]),
    ("payment", "A payment_of a card", &[Some(Verdict::Failed), Some(Verdict::Inconclusive)]),
    ("refund", "A refund", &[Some(Verdict::Passed), Some(Verdict::Failed)]),
];

fn id(text: &str) -> TestId {
    text.parse().expect("a test id")
}

async fn fill(scratch: &Scratch) {
    let mut number = 0;
    let mut waiting = Vec::new();
    for (test, name, verdicts) in TESTS {
        apply(&scratch.db, NewTest { id: id(test), name: (*name).to_owned(), ..new_test("one") })
            .await;
        for verdict in *verdicts {
            number += 1;
            let run = NewRun { test: id(test), ..new_run(number) };
            let Some(verdict) = verdict else {
                waiting.push(run);
                continue;
            };
            scratch.db.create_run(&run).await.expect("accepted");
            scratch.end_next(*verdict).await;
        }
    }
    for run in waiting {
        scratch.db.create_run(&run).await.expect("accepted");
    }
}

fn worst(after: Option<(u8, &str)>) -> TestOrder {
    since(after, 0)
}

/// Run ids are times: run N is accepted in second N.
fn since(after: Option<(u8, &str)>, seconds: u64) -> TestOrder {
    let after = after.map(|(rank, test)| (VerdictRank(rank), id(test)));
    TestOrder::WorstFirst { after, since: at(seconds) }
}

#[test]
fn tests_are_listed_by_text_and_order() {
    with(|scratch| async move {
        fill(&scratch).await;
        let by_id = |after: Option<&str>| TestOrder::Id(after.map(id));
        let cases = [
            ("", by_id(None), 9, "basket checkout delivery payment refund"),
            ("", by_id(Some("checkout")), 2, "delivery payment"),
            ("", worst(None), 9, "checkout refund payment basket delivery"),
            ("", worst(None), 2, "checkout refund"),
            ("", worst(Some((0, "checkout"))), 2, "refund payment"),
            ("", worst(Some((2, "basket"))), 2, "delivery"),
            // A test that is gone, or that another verdict moved, still marks a place.
            ("", worst(Some((1, "zebra"))), 9, "basket delivery"),
            // The second run of `checkout`, which failed, is run 4, and those of `refund` are 7 and 8.
            ("", since(None, 5), 9, "refund payment basket checkout delivery"),
            ("", since(None, 100), 9, "basket checkout delivery payment refund"),
            // In the id, in the name, without regard to case; and a pattern is a text.
            ("CHECK", worst(None), 9, "checkout"),
            ("FÜR", by_id(None), 9, "checkout"),
            ("a ", by_id(None), 9, "basket delivery payment refund"),
            ("%", by_id(None), 9, "delivery"),
            ("_", worst(None), 9, "payment"),
            ("\\", by_id(None), 9, ""),
            ("a", worst(Some((0, "refund"))), 9, "payment basket delivery"),
        ];
        for (text, order, limit, expected) in cases {
            let wanted = TestFilter { project: project(), text: text.to_owned(), order, limit };
            let listed = scratch.db.tests(&wanted).await.expect("listed");
            let ids: Vec<_> = listed.iter().map(|test| test.id.as_str()).collect();
            assert_eq!(ids.join(" "), expected, "{wanted:?}");
        }
        let project = "other".parse().expect("a project");
        let wanted = TestFilter { project, text: String::new(), order: worst(None), limit: 9 };
        assert_eq!(scratch.db.tests(&wanted).await.expect("listed"), []);
    });
}
