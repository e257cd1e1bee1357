/** The statements of a run: the claims about the whole trace, and the assertions of its specs. */

import type { components } from "../api/schema.d.ts";
import { words } from "../words.ts";

type Schemas = components["schemas"];

export type Verdict = Schemas["Verdict"];
export type Outcome = Schemas["Outcome"];
export type SpanEvidence = Schemas["SpanEvidence"];

export interface Statement {
  readonly key: string;
  readonly kind: "claim" | "assertion";
  /** The name that the test gives it, or its spec. */
  readonly name: string | null;
  /** As written in the test. */
  readonly text: string;
  /** The selector of its spec; null for a claim. */
  readonly selector: string | null;
  readonly matched: number | null;
  readonly place: Schemas["Place"];
  readonly verdict: Verdict;
  readonly decided: Schemas["ClaimJudgement"]["decided"];
  readonly reason: string | null;
  readonly spans: readonly SpanEvidence[];
  readonly moreSpans: number;
  /** None if it passed, or of a server that had none. */
  readonly evidence?: Schemas["StatementEvidence"];
}

export function statements(outcome: Outcome): Statement[] {
  const { claims, specs } = outcome.judgement;
  const ofSpecs = specs.flatMap((spec, at) =>
    spec.assertions.map((it, index): Statement => {
      return {
        ...it,
        key: `spec-${at}-${index}`,
        kind: "assertion",
        matched: spec.matched,
        name: spec.name,
        selector: spec.selector,
        text: it.assertion,
      };
    }),
  );
  const ofClaims = claims.map((it, index): Statement => {
    return { ...it, key: `claim-${index}`, kind: "claim", matched: null, selector: null, text: it.claim };
  });
  return [...ofSpecs, ...ofClaims];
}

/** The number of spans at which a statement is false, as far as they are listed; null if more are not listed. */
export function falseSpans(statement: Statement): number | null {
  if (statement.moreSpans > 0) {
    return null;
  }
  return statement.spans.filter((span) => span.spanId !== null && span.verdict === "failed").length;
}

/** The reason that most of the statements have, if at least two have it. */
export function sharedReason(all: readonly Statement[]): string | null {
  const counts = new Map<string, number>();
  for (const { reason } of all) {
    if (reason !== null) {
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
    }
  }
  const [most] = [...counts].sort((a, b) => b[1] - a[1]);
  return most !== undefined && most[1] > 1 ? most[0] : null;
}

/** Removes line breaks and the indentation behind them, which are only layout in a document. */
export function unfolded(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join(" ");
}

/** How final the verdict on a statement is. */
export function decidedWords({ decided, verdict }: Statement): string {
  if (verdict === "inconclusive") {
    return decided === "response" ? words.run.decided.openResponse : words.run.decided.open;
  }
  const labels = words.run.decided[decided];
  return decided === "absence" ? `${labels}. ${words.run.decided.absenceMore}` : `${labels}.`;
}
