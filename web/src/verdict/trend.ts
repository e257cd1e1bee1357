/** The order of tests, worst first, and the marks of their last runs. */

import type { Schemas } from "../api/client.ts";

type TestTrend = Schemas["TestTrend"];
type Trend = Schemas["Trend"];

type ListedRun = Schemas["ListedRun"];

export type RunMark = "passed" | "failed" | "inconclusive" | "running" | "queued";

/** The number of runs that a sparkline shows. */
export const SPARKLINE_RUNS = 30;

/** The state of a run in one word: its verdict, the provisional one included, or what it does. */
export function markOf(run: Pick<ListedRun, "state" | "verdict" | "provisionalVerdict">): RunMark {
  const verdict = run.verdict ?? run.provisionalVerdict;
  if (verdict === "passed" || verdict === "failed" || verdict === "inconclusive") {
    return verdict;
  }
  return run.state === "queued" ? "queued" : "running";
}

/** The marks of the last runs, the newest last. */
export function sparkline(trend: Trend): RunMark[] {
  return trend.last.slice(0, SPARKLINE_RUNS).map(markOf).reverse();
}

/** The last run that has a verdict, which a run in progress does not replace. */
export function lastJudged(trend: Trend): ListedRun | undefined {
  return trend.last.find((run) => {
    const mark = markOf(run);
    return mark !== "running" && mark !== "queued";
  });
}

/** Sorts tests: failed, inconclusive, flaky, passed, never run; then the newest run, then the name. */
export function worstFirst(tests: readonly TestTrend[]): TestTrend[] {
  return [...tests].sort(
    (a, b) =>
      rank(a.trend) - rank(b.trend) || lastAt(b).localeCompare(lastAt(a)) || a.name.localeCompare(b.name),
  );
}

function rank(trend: Trend): number {
  const last = lastJudged(trend);
  if (last === undefined) {
    return trend.last.length > 0 ? 3 : 4;
  }
  const mark = markOf(last);
  return mark === "failed" ? 0 : mark === "inconclusive" ? 1 : trend.flaky > 0 ? 2 : 3;
}

/** Only failing and open tests are ordered by time: healthy ones would change places with every run. */
function lastAt(test: TestTrend): string {
  return rank(test.trend) <= 1 ? (test.trend.last[0]?.acceptedAt ?? "") : "";
}
