/** Why a run is as it is, beyond its statements, and what to do: diagnoses, reasons, and verdicts that changed. */

import { duration } from "../kit/time.ts";
import { counted } from "../words.ts";
import type { Outcome } from "./statements.ts";

export interface Why {
  readonly summary: string;
  readonly advice: string | null;
  /** The word for programs; null for a reason of the run. */
  readonly cause: string | null;
  readonly spans: readonly string[];
}

export function whys(outcome: Outcome): Why[] {
  const { answer, superseded, overtaken, earlier } = outcome;
  const found: Why[] = [];
  if (superseded !== undefined) {
    found.push(plain(supersededWords(outcome, superseded)));
  }
  if (answer !== null && answer !== "notFired" && "exit" in answer && answer.exit.code !== 0) {
    const last = answer.exit.stderr.trimEnd().split("\n").at(-1)?.trim() ?? "";
    if (last !== "" && outcome.verdict !== "passed") {
      found.push(plain(`the command ended with ${answer.exit.code} and printed last: ${last}`));
    }
  }
  for (const { advice, cause, says, spans } of outcome.diagnoses) {
    found.push({ summary: says, cause, spans, advice: advice === "" ? null : advice });
  }
  found.push(...outcome.reasons.map(withAdvice));
  if (overtaken !== null) {
    const from = overtaken.service === null ? "" : ` from ${overtaken.service}`;
    found.push({
      ...plain(
        `${counted(overtaken.spans, "span")} came after the verdict, the first that counts${from} ${duration(overtaken.afterNs)} later; with them it would be ${overtaken.verdict}`,
      ),
      advice: "later runs wait longer for this service; settle.flush in the test makes this one wait",
    });
  }
  if (earlier !== undefined && earlier.length > 0) {
    found.push(plain(`${outcome.verdict} at try ${earlier.length + 1}, ${earlier.join(", ")} before`));
  }
  return found;
}

function supersededWords(outcome: Outcome, superseded: NonNullable<Outcome["superseded"]>): string {
  const { afterNs, service, spans, verdict } = superseded;
  const before = `${verdict} at first, ${outcome.verdict} now`;
  if (afterNs === null) {
    return `${before}: what came after the provisional verdict speaks against a complete trace`;
  }
  const from = service === null ? "" : ` from ${service}`;
  return `${before}: ${counted(spans, "span")} came after the provisional verdict, the first${from} ${duration(afterNs)} later`;
}

/** Splits a reason of the server from its advice, which stands behind its first colon that is not in backticks. */
export function splitReason(reason: string): readonly [string, string | null] {
  const [, summary, advice] = /^((?:[^`:]|`[^`]*`|:(?! ))+): (.+)$/s.exec(reason) ?? [];
  return summary === undefined || advice === undefined ? [reason, null] : [summary, advice];
}

function withAdvice(reason: string): Why {
  const [summary, advice] = splitReason(reason);
  return { ...plain(summary), advice };
}

function plain(summary: string): Why {
  return { summary, advice: null, cause: null, spans: [] };
}
