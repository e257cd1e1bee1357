/** The one sentence of a run: which statement is false, or why the run is inconclusive. */

import { words } from "../words.ts";
import { falseSpans, type Outcome, type Statement, statements, unfolded } from "./statements.ts";
import { splitReason } from "./why.ts";

/** A part of the sentence. A subject and a value come from the test or the system, and are shown as such. */
export interface SentencePart {
  readonly role: "words" | "subject" | "value";
  readonly text: string;
}

export function sentence(outcome: Outcome): SentencePart[] {
  switch (outcome.verdict) {
    case "passed":
      return passed(outcome);
    case "failed":
      return failed(outcome);
    case "inconclusive":
      return inconclusive(outcome);
  }
}

/** The sentence as text, for the title of the page and for a screen reader. */
export function sentenceText(parts: readonly SentencePart[]): string {
  return parts.map((part) => (part.role === "subject" ? `“${part.text}”` : part.text)).join("");
}

function passed(outcome: Outcome): SentencePart[] {
  const number = statements(outcome).length;
  return [ours(number === 0 ? words.sentence.noStatements : words.sentence.allHold(number))];
}

function failed(outcome: Outcome): SentencePart[] {
  const wrong = statements(outcome).filter((it) => it.verdict === "failed");
  const [first] = wrong;
  if (first === undefined) {
    const [reason] = outcome.reasons;
    return reason === undefined
      ? [ours(words.sentence.failed)]
      : [ours(words.sentence.gate), { role: "value", text: reason }];
  }
  const parts: SentencePart[] = [subject(first), ours(words.sentence.isFalse)];
  const value = evidence(first);
  const spans = falseSpans(first);
  if (value !== null) {
    parts.push(ours(": "), { role: "value", text: value });
  }
  if (spans !== null && spans > 1) {
    parts.push(ours(words.sentence.atSpans(spans)));
  }
  if (wrong.length > 1) {
    parts.push(ours(words.sentence.andMore(wrong.length - 1)));
  }
  return [...parts, ours(".")];
}

function inconclusive(outcome: Outcome): SentencePart[] {
  const open = statements(outcome).find((it) => it.verdict === "inconclusive");
  const [reason] = outcome.reasons[0] === undefined ? [undefined] : splitReason(outcome.reasons[0]);
  const cause = outcome.diagnoses[0]?.says ?? reason ?? open?.reason ?? null;
  if (open === undefined) {
    return cause === null ? [ours(words.sentence.inconclusive)] : [value(cause), ours(".")];
  }
  const parts = [ours(words.sentence.notKnown), subject(open), ours(words.sentence.holdsNotKnown)];
  return cause === null ? [...parts, ours(".")] : [...parts, ours(": "), value(cause), ours(".")];
}

/** What was found: the reason of the statement, or the first span that contradicts it. */
function evidence(statement: Statement): string | null {
  const span = statement.spans.find((it) => it.verdict === "failed");
  return statement.reason ?? span?.found ?? null;
}

function subject(statement: Statement): SentencePart {
  const name = statement.kind === "claim" ? (statement.name ?? statement.text) : statement.text;
  return { role: "subject", text: unfolded(name) };
}

function value(text: string): SentencePart {
  return { role: "value", text };
}

function ours(text: string): SentencePart {
  return { role: "words", text };
}
