import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Schemas } from "../api/client.ts";
import { sentence, sentenceText } from "./sentence.ts";
import { falseSpans, type Outcome, sharedReason, statements, unfolded } from "./statements.ts";
import { lastJudged, markOf, sparkline, worstFirst } from "./trend.ts";
import { type Unsettled, unsettledWords } from "./unsettled.ts";
import { splitReason } from "./why.ts";

type TestTrend = Schemas["TestTrend"];

/** The outcomes of the reports' golden files: what the server sends. */
function golden(name: string): Outcome {
  const file = new URL(`../../../crates/report/tests/golden/${name}-v1.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { outcome: Outcome }).outcome;
}

describe("the sentence of a run", () => {
  it.each([
    ["passed", "All 3 statements hold."],
    ["failed", "“attr:http.status_code = 200” is false: 500 = 200, and 2 more statements too."],
    [
      "diagnosed",
      "Whether “attr:tracetest.selected_spans.count = 0” holds is not known: `orders` began a trace of its own 12 ms after `gateway` called it in `POST /orders`.",
    ],
    [
      "no-telemetry",
      "Whether “attr:tracetest.selected_spans.count = 0” holds is not known: no span of the system came.",
    ],
    ["gated", "A gate is not passed: the analyzer's score is 62, and the test asks for at least 80"],
  ])("%s", (name, expected) => {
    expect(sentenceText(sentence(golden(name)))).toBe(expected);
  });

  it("counts the spans of a statement where all are listed", () => {
    const wrong = statements(golden("failed")).filter((it) => it.verdict === "failed");
    expect(wrong.map(falseSpans)).toEqual([null, 0, 12]);
  });

  it("exists for every golden outcome", () => {
    for (const name of ["command", "no-answer", "no-telemetry", "not-fired", "not-whole", "hostile"]) {
      expect(sentenceText(sentence(golden(name))), name).not.toBe("");
    }
  });
});

it.each([
  [
    "spans were still arriving at the deadline: raise `settle.timeout`",
    "spans were still arriving at the deadline",
    "raise `settle.timeout`",
  ],
  ["`a: b` did not come: look: there", "`a: b` did not come", "look: there"],
  ["at 12:30 it ended", "at 12:30 it ended", null],
  ["`unfinished: x", "`unfinished: x", null],
])("splits %j into a summary and advice", (reason, summary, advice) => {
  expect(splitReason(reason)).toEqual([summary, advice]);
});

it("finds the reason that several statements share", () => {
  const [first] = statements(golden("diagnosed"));
  if (first === undefined) {
    throw new Error("the golden outcome has no statement");
  }
  const reasons = (...given: Array<string | null>) => given.map((reason) => ({ ...first, reason }));
  expect(sharedReason(reasons("a", "b", "b", null))).toBe("b");
  expect(sharedReason(reasons("a", "b"))).toBeNull();
  expect(sharedReason([])).toBeNull();
});

it("unfolds a statement of several lines", () => {
  expect(unfolded('span[name="a"]\n    span[name="b"]\r\n\n')).toBe('span[name="a"] span[name="b"]');
});

describe("why a trace is not complete", () => {
  it.each<[Unsettled, string]>([
    ["noTelemetry", "no span of the system came"],
    [{ edgesOpen: ["01"] }, "1 call without the other side: 01"],
    [{ otherServers: ["a", "b", "c", "d"] }, "spans could also be received by a, b, c, …"],
    [{ storeUnread: { store: "tempo", message: "401" } }, "the trace store tempo could not be read: 401"],
    ["later" as Unsettled, "later"],
    [{ later: 1 } as unknown as Unsettled, "later"],
  ])("%j", (reason, expected) => {
    expect(unsettledWords(reason)).toBe(expected);
  });
});

type ListedRun = TestTrend["trend"]["last"][number];

function run(verdict: string | null, state = "ended", acceptedAt = "2026-11-15T02:00:00Z"): ListedRun {
  return { acceptedAt, id: "r", state, test: "t", verdict, version: 1 };
}

function test(name: string, flaky: number, ...last: ListedRun[]): TestTrend {
  return {
    id: name,
    name,
    trend: {
      failed: 0,
      flaky,
      flips: 0,
      inconclusive: 0,
      last,
      medianNs: null,
      passed: 0,
      runs: last.length,
    },
    version: 1,
  };
}

describe("tests", () => {
  it("come worst first", () => {
    const tests = [
      test("never", 0),
      test("b passed", 0, run("passed")),
      test("a passed", 0, run("passed", "ended", "2026-11-14T02:00:00Z")),
      test("flaky", 2, run("passed")),
      test("open", 0, run("inconclusive")),
      test("failed before", 0, run("failed", "ended", "2026-11-14T02:00:00Z")),
      test("failed now", 0, run("failed")),
      test("failed, running", 0, run(null, "running", "2026-11-16T02:00:00Z"), run("failed")),
    ];
    expect(worstFirst(tests).map((it) => it.name)).toEqual([
      "failed, running",
      "failed now",
      "failed before",
      "open",
      "flaky",
      "a passed",
      "b passed",
      "never",
    ]);
  });

  it("have a mark for each run, the newest last, 30 at the most", () => {
    const last = [run(null, "queued"), run(null, "running"), run("failed"), ...Array(40).fill(run("passed"))];
    const marks = sparkline(test("t", 0, ...last).trend);
    expect(marks).toHaveLength(30);
    expect(marks.slice(-4)).toEqual(["passed", "failed", "running", "queued"]);
  });

  it("have a provisional verdict before the final one", () => {
    expect(markOf({ state: "running", verdict: null, provisionalVerdict: "failed" })).toBe("failed");
    expect(lastJudged(test("t", 0, run(null, "running"), run("passed")).trend)?.verdict).toBe("passed");
  });
});
