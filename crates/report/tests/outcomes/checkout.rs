//! Outcomes with claims, a tree of spans and the analyzer.

use model::{
    Analysis, AssertionJudgement, ClaimJudgement, DecisionBasis, Finding, Judgement, Level,
    Outcome, PluginAnalysis, RuleAnalysis, Settlement, TreeSpan, UnsettledReason,
    Verdict::{self, Failed, Inconclusive, Passed},
};

use super::{assertion, judgement, outcome, output, place, span, span_id, spec, whole};

/// Specs and claims of every verdict, a tree with siblings, and an analyzer with findings.
pub(crate) fn checkout() -> Outcome {
    let rows = AssertionJudgement {
        spans: vec![
            span(Some(4), "SELECT stock", Failed, "3 = 4"),
            span(Some(5), "UPDATE stock", Failed, "attribute `db.rows` is absent"),
            span(Some(7), "SELECT price", Passed, "4 = 4"),
        ],
        ..assertion(19, "attr:db.rows = 4", Failed)
    };
    let quick = assertion(14, "attr:tracetest.span.duration < 200ms", Passed);
    let charged = ClaimJudgement {
        spans: vec![
            span(Some(6), "charge", Failed, "started 3 ms before `UPDATE stock` ended"),
            span(Some(5), "UPDATE stock", Failed, "ended 3 ms after `charge` started"),
        ],
        ..claim(
            Some("stock before money"),
            r#"span[name="UPDATE stock"] before span[name="charge"]"#,
            31,
            Failed,
        )
    };
    let silent = ClaimJudgement {
        decided: DecisionBasis::Absence,
        reason: Some("no such span is there, and the trace is not whole".to_owned()),
        ..claim(None, r#"count(span[name="retry"]) = 0"#, 32, Inconclusive)
    };
    let rooted = claim(None, "count(span[]:root) = 1", 30, Passed);
    let specs = vec![
        spec(
            Some("the gateway is quick"),
            r#"span[name="POST /checkout"]"#,
            1,
            vec![quick.clone()],
        ),
        spec(None, "span[service=\"orders\"]", 4, vec![quick]),
        spec(Some("stock"), "span[db.system]", 3, vec![rows]),
    ];
    Outcome {
        test: "a customer pays".to_owned(),
        settlement: Some(Settlement { unsettled: vec![UnsettledReason::NotQuiet], ..whole(9) }),
        diagnoses: Vec::new(),
        overtaken: None,
        earlier: Vec::new(),
        judgement: Judgement {
            claims: vec![rooted, charged, silent],
            tree: vec![
                tree_span(1, "Qualitytrace trigger", None, 0, Some(190_000_000)),
                TreeSpan {
                    is_error: true,
                    ..tree_span(2, "POST /checkout", Some("gateway"), 1, Some(182_000_000))
                },
                tree_span(3, "reserve", Some("orders"), 2, Some(40_120_000)),
                tree_span(4, "SELECT stock", Some("orders"), 3, Some(9_000_000)),
                tree_span(7, "SELECT price", Some("orders"), 3, Some(950_000)),
                TreeSpan {
                    is_error: true,
                    ..tree_span(5, "UPDATE stock", Some("orders"), 3, None)
                },
                tree_span(6, "charge", Some("payments"), 2, Some(12_000)),
            ],
            ..judgement(specs, vec![output("order_id", Ok("17"))])
        },
        analysis: Some(analysis()),
        ..outcome(Failed)
    }
}

/// Everything holds except the score.
pub(crate) fn gated() -> Outcome {
    let status = assertion(14, "attr:http.status_code = 200", Passed);
    Outcome {
        reasons: vec!["the analyzer's score is 62, and the test asks for at least 80".to_owned()],
        settlement: Some(whole(3)),
        diagnoses: Vec::new(),
        overtaken: None,
        earlier: Vec::new(),
        judgement: judgement(vec![spec(None, "span[]", 3, vec![status])], vec![]),
        analysis: Some(analysis()),
        ..outcome(Failed)
    }
}

/// A trace from a file: no run, no trigger, no waiting time.
pub(crate) fn recorded() -> Outcome {
    let settlement = Settlement { spans: 12, ..Settlement::default() };
    Outcome {
        run_id: None,
        answer: None,
        steps: vec![],
        settlement: Some(settlement),
        diagnoses: Vec::new(),
        overtaken: None,
        earlier: Vec::new(),
        judgement: Judgement {
            claims: vec![claim(Some("one root"), "count(span[]:root) = 1", 4, Passed)],
            ..Judgement::bare(Passed)
        },
        ..outcome(Passed)
    }
}

/// More spans than are rendered, in a tree that is deeper than wide.
pub(crate) fn many_spans() -> Outcome {
    let mut tree: Vec<TreeSpan> = (1..=120)
        .map(|n| {
            let depth = if n < 20 { u32::from(n) - 1 } else { 19 + u32::from(n % 3) };
            let name = format!("a call with a rather long name, number {n}, that goes on and on");
            tree_span(n, &name, Some("orders"), depth, Some(u64::from(n) * 1_000_000))
        })
        .collect();
    // An invalid depth: it jumps.
    tree.push(tree_span(200, "far out", None, u32::MAX, None));
    tree.push(tree_span(201, "", Some("a service with a name that is far too long"), 0, Some(1)));
    let found = [1, 7, 23, 24, 25, 118, 200, 201];
    let spans = found.map(|n| span(Some(n), "call", Failed, "2 = 1")).to_vec();
    let calls = AssertionJudgement { spans, ..assertion(14, "attr:calls = 1", Failed) };
    Outcome {
        settlement: Some(whole(122)),
        diagnoses: Vec::new(),
        overtaken: None,
        earlier: Vec::new(),
        judgement: Judgement {
            tree,
            ..judgement(vec![spec(Some("calls"), "span[]", 122, vec![calls])], vec![])
        },
        ..outcome(Failed)
    }
}

/// Span names that try to inject syntax into every format.
pub(crate) fn forged() -> Outcome {
    let words = [
        "]]></failure></testcase><testcase name=\"x\">",
        "</code></td></tr></table></details><script>alert(1)</script> @octocat #1 ![](http://x)",
        "::error file=a,line=1::pwned",
        "##vso[task.setvariable variable=x]y ##[add-path]z",
        "ok 1 - all is well # SKIP\nok 2 \\# TODO",
        "  ...\n1..0\nBail out!",
        "a|b `c` **d** _e_ [f](g) <h> & \"i\" 'j' %0A%25 k,l:m",
        "\u{ffff}\u{fffe}\u{202e}\u{85}\u{0}",
    ];
    let spans = words.iter().enumerate().map(|(at, words)| {
        let id = u8::try_from(at + 1).expect("few");
        span(Some(id), words, Failed, words)
    });
    let attack = AssertionJudgement {
        reason: Some(format!("{} {}", "word ".repeat(18), words[2])),
        spans: spans.collect(),
        place: model::Place { file: words[2].to_owned(), ..place(14) },
        ..assertion(14, words[6], Failed)
    };
    let tree = words.iter().enumerate().map(|(at, words)| {
        let id = u8::try_from(at + 1).expect("few");
        tree_span(id, words, Some(words), u32::from(id) / 3, Some(1_000))
    });
    let rule = RuleAnalysis {
        id: words[2].to_owned(),
        level: Level::Error,
        weight: 1,
        findings: vec![finding(Some(1), words[1], words[2]), finding(None, "", words[3])],
        more_findings: u64::MAX,
    };
    let plugins = vec![PluginAnalysis { id: words[2].to_owned(), score: 0, rules: vec![rule] }];
    Outcome {
        test: words[2].to_owned(),
        reasons: words.iter().map(|&words| words.to_owned()).collect(),
        settlement: Some(whole(8)),
        diagnoses: Vec::new(),
        overtaken: None,
        earlier: Vec::new(),
        judgement: Judgement {
            claims: vec![claim(Some(words[0]), words[4], 3, Inconclusive)],
            tree: tree.collect(),
            ..judgement(
                vec![spec(Some(words[4]), words[1], 8, vec![attack])],
                vec![output(words[2], Ok(words[5])), output(words[5], Err(words[2]))],
            )
        },
        analysis: Some(Analysis { score: 0, minimum_score: 100, plugins }),
        ..outcome(Failed)
    }
}

fn claim(name: Option<&str>, words: &str, line: u32, verdict: Verdict) -> ClaimJudgement {
    ClaimJudgement {
        name: name.map(str::to_owned),
        claim: words.to_owned(),
        place: place(line),
        verdict,
        decided: DecisionBasis::Presence,
        reason: None,
        spans: vec![],
        more_spans: 0,
        evidence: None,
    }
}

fn tree_span(
    id: u8,
    name: &str,
    service: Option<&str>,
    depth: u32,
    duration_ns: Option<u64>,
) -> TreeSpan {
    TreeSpan {
        span_id: span_id(id),
        name: name.to_owned(),
        service: service.map(str::to_owned),
        depth,
        duration_ns,
        is_error: false,
    }
}

/// One plugin with a broken rule, a warning and a rule that holds; one without findings.
fn analysis() -> Analysis {
    let required = RuleAnalysis {
        findings: vec![
            finding(Some(2), "POST /checkout", "`http.route` is missing: set it in the server"),
            finding(Some(4), "SELECT stock", "`db.system.name` is missing"),
        ],
        more_findings: 3,
        ..rule("required-attributes", Level::Error)
    };
    let named = RuleAnalysis {
        findings: vec![finding(None, "", "no service says its version")],
        ..rule("service-version", Level::Warning)
    };
    let standards = vec![required, named, rule("span-naming", Level::Error)];
    Analysis {
        score: 62,
        minimum_score: 80,
        plugins: vec![
            PluginAnalysis { id: "standards".to_owned(), score: 25, rules: standards },
            PluginAnalysis {
                id: "security".to_owned(),
                score: 100,
                rules: vec![rule("https-protocol", Level::Error)],
            },
        ],
    }
}

fn rule(id: &str, level: Level) -> RuleAnalysis {
    RuleAnalysis { id: id.to_owned(), level, weight: 25, findings: vec![], more_findings: 0 }
}

fn finding(id: Option<u8>, name: &str, message: &str) -> Finding {
    Finding { span_id: id.map(span_id), name: name.to_owned(), message: message.to_owned() }
}
