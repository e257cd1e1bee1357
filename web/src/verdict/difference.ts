/** What differs between a run and the last green one, from what both runs report. */

import type { Schemas } from "../api/client.ts";
import { duration } from "../kit/time.ts";
import { words } from "../words.ts";

type Run = Schemas["Run"];
type Outcome = Schemas["Outcome"];

/** A duration differs if one is more than this times the other. */
const RATIO_MIN = 1.5;
const OUTPUT_CHARS_MAX = 120;

export interface Difference {
  readonly what: string;
  /** Whether `what` is a name of the system or of the test. */
  readonly isName: boolean;
  readonly before: string;
  readonly now: string;
}

export function differences(green: Run, now: Run): Difference[] {
  const labels = words.run.green;
  const found: Difference[] = [];
  const add = (what: string, before: string | null, after: string | null, isName = false) => {
    if (before !== after) {
      found.push({ what, isName, before: before ?? labels.none, now: after ?? labels.none });
    }
  };
  add(labels.revision, green.revision ?? null, now.revision ?? null);
  add(labels.version, String(green.version), String(now.version));
  for (const [name, [before, after]] of joined(variables(green), variables(now))) {
    add(name, before, after, true);
  }
  add(labels.response, answerText(green.outcome), answerText(now.outcome));
  const [fast, slow] = [answerNs(green.outcome), answerNs(now.outcome)];
  if (fast !== null && slow !== null && Math.max(fast, slow) > Math.min(fast, slow) * RATIO_MIN) {
    add(labels.answeredIn, duration(fast), duration(slow));
  }
  add(labels.spans, spanCount(green.outcome), spanCount(now.outcome));
  for (const [name, [before, after]] of joined(services(green.outcome), services(now.outcome))) {
    add(name, before, after, true);
  }
  for (const [name, [before, after]] of joined(outputs(green.outcome), outputs(now.outcome))) {
    add(name, before, after, true);
  }
  return found;
}

type Texts = ReadonlyMap<string, string>;

/** The values of both by name, in the order of the first. */
function joined(before: Texts, after: Texts): Map<string, readonly [string | null, string | null]> {
  const names = new Set([...before.keys(), ...after.keys()]);
  return new Map([...names].map((name) => [name, [before.get(name) ?? null, after.get(name) ?? null]]));
}

function variables(run: Run): Texts {
  return new Map(
    Object.entries(run.variables).map(([name, value]) => [
      `\${var:${name}}`,
      value ?? words.run.started.secret,
    ]),
  );
}

/** The spans of each service, all processes of it together. */
function services(outcome: Outcome | null | undefined): Texts {
  const counts = new Map<string, number>();
  for (const { service, spans } of outcome?.settlement?.processes ?? []) {
    counts.set(service, (counts.get(service) ?? 0) + spans);
  }
  return new Map([...counts].map(([service, spans]) => [service, words.run.settlement.spans(spans)]));
}

function outputs(outcome: Outcome | null | undefined): Texts {
  const all = outcome?.judgement.outputs ?? [];
  return new Map(
    all.map((it) => [it.name, (it.value ?? words.run.outputs.noValue).slice(0, OUTPUT_CHARS_MAX)]),
  );
}

function spanCount(outcome: Outcome | null | undefined): string | null {
  const spans = outcome?.settlement?.spans;
  return spans === undefined ? null : words.run.settlement.spans(spans);
}

function answerText(outcome: Outcome | null | undefined): string | null {
  const answer = outcome?.answer ?? null;
  if (answer === null || answer === "notFired") {
    return null;
  }
  if ("response" in answer) {
    return String(answer.response.status);
  }
  if ("exit" in answer) {
    return `${words.run.trigger.exit} ${answer.exit.code}`;
  }
  if ("reply" in answer) {
    return `${answer.reply.status} ${answer.reply.statusName}`.trimEnd();
  }
  return words.run.noAnswer[answer.noAnswer.kind] ?? answer.noAnswer.kind;
}

function answerNs(outcome: Outcome | null | undefined): number | null {
  const answer = outcome?.answer ?? null;
  if (answer === null || answer === "notFired" || "noAnswer" in answer) {
    return null;
  }
  return "response" in answer
    ? answer.response.durationNs
    : "exit" in answer
      ? answer.exit.durationNs
      : answer.reply.durationNs;
}
