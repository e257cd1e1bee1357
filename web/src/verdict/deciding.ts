import { type Outcome, statements } from "./statements.ts";

/** The spans that decide a false statement or leave one open, with its verdict; the worst one counts. */
export function decidingSpans(outcome: Outcome): ReadonlyMap<string, "failed" | "inconclusive"> {
  const found = new Map<string, "failed" | "inconclusive">();
  const add = (spanId: string, verdict: "failed" | "inconclusive") => {
    if (found.get(spanId) !== "failed") {
      found.set(spanId, verdict);
    }
  };
  for (const { spans, verdict, evidence } of statements(outcome)) {
    for (const span of spans) {
      if (span.spanId !== null && span.verdict !== "passed") {
        add(span.spanId, span.verdict);
      }
    }
    // The spans of prose are few; these are all.
    for (const spanId of verdict === "passed" ? [] : (evidence?.deciding ?? [])) {
      add(spanId, verdict as "failed" | "inconclusive");
    }
  }
  return found;
}
