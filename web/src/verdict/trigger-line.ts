import type { Schemas } from "../api/client.ts";
import { duration } from "../kit/time.ts";
import { words } from "../words.ts";

/** What the trigger came to, in one line. */
export function triggerLine(answer: Schemas["Answer"] | null): string {
  const labels = words.run.trigger;
  if (answer === null) {
    return labels.notFired;
  }
  if (answer === "notFired") {
    return labels.external;
  }
  if ("response" in answer) {
    const { status, durationNs } = answer.response;
    return `${labels.status} ${status} ${labels.in} ${duration(durationNs)}`;
  }
  if ("exit" in answer) {
    return `${labels.exit} ${answer.exit.code} ${labels.in} ${duration(answer.exit.durationNs)}`;
  }
  if ("reply" in answer) {
    const { status, statusName, durationNs } = answer.reply;
    return `${labels.status} ${status} ${statusName} ${labels.in} ${duration(durationNs)}`;
  }
  return `${labels.noAnswer}: ${words.run.noAnswer[answer.noAnswer.kind] ?? answer.noAnswer.kind}`;
}
