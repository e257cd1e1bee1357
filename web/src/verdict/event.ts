/** A live event of a run in words, with its tone. */

import type { NumberedEvent } from "../api/follow.ts";
import { words } from "../words.ts";

export interface EventLine {
  readonly text: string;
  /** What the system or the test labels, as a text of its own. */
  readonly detail: string | null;
}

export function eventLine({ event }: NumberedEvent): EventLine {
  const { live } = words.run;
  const { what } = event;
  if (typeof what === "string") {
    return line(what === "accepted" ? live.accepted : what === "notFired" ? live.notFired : what);
  }
  if ("taken" in what) {
    return line(live.taken);
  }
  if ("attempted" in what) {
    return { text: live.attempted, detail: what.attempted.traceId };
  }
  if ("answered" in what) {
    return line(live.answered(what.answered.status));
  }
  if ("exited" in what) {
    return line(live.exited(what.exited.code));
  }
  if ("notAnswered" in what) {
    return { text: live.notAnswered, detail: what.notAnswered.message };
  }
  if ("settled" in what) {
    const { unsettled, spans } = what.settled;
    return line(unsettled.length === 0 ? live.settled(spans) : live.unsettled(spans));
  }
  if ("provisional" in what) {
    return line(live.provisional(what.provisional.verdict));
  }
  if ("judged" in what) {
    return line(live.judged(what.judged.verdict));
  }
  if ("overtaken" in what) {
    return line(live.overtaken);
  }
  // A later server may send others.
  return line(Object.keys(what)[0] ?? "");
}

function line(text: string): EventLine {
  return { text, detail: null };
}
