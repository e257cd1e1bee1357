import { type Outcome, statements } from "./statements.ts";

/** The spans that a false or open statement names, with its verdict; the worst one counts. */
export function decidingSpans(outcome: Outcome): ReadonlyMap<string, "failed" | "inconclusive"> {
  const found = new Map<string, "failed" | "inconclusive">();
  for (const { spans } of statements(outcome)) {
    for (const { spanId, verdict } of spans) {
      if (spanId !== null && verdict !== "passed" && found.get(spanId) !== "failed") {
        found.set(spanId, verdict);
      }
    }
  }
  return found;
}
