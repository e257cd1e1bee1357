/** Why a trace is not complete, in words. */

import type { components } from "../api/schema.d.ts";
import { counted } from "../words.ts";

export type Unsettled = components["schemas"]["Unsettled"];

/** The upper bound for names and ids that are listed. */
const LISTED_MAX = 3;

const PLAIN: Readonly<Record<string, string>> = {
  noTelemetry: "no span of the system came",
  notAnswered: "the trigger has no answer",
  notQuiet: "spans were still arriving",
  notWaited: "the spans that arrived decide everything, further spans were not waited for",
  tooLarge: "it is larger than a run may keep",
  spansLost: "spans may have been lost",
  partial: "it was recorded in part",
  notSampled: "the system does not sample it",
};

export function unsettledWords(reason: Unsettled): string {
  if (typeof reason === "string") {
    return PLAIN[reason] ?? reason;
  }
  if ("sampled" in reason) {
    return `the span ${reason.sampled} states that only a share of spans is kept`;
  }
  if ("parentsAbsent" in reason) {
    return `${counted(reason.parentsAbsent.length, "span")} without a parent that is named: ${listed(reason.parentsAbsent)}`;
  }
  if ("edgesOpen" in reason) {
    return `${counted(reason.edgesOpen.length, "call")} without the other side: ${listed(reason.edgesOpen)}`;
  }
  if ("contextLost" in reason) {
    return `${counted(reason.contextLost.length, "call")} answered in a trace of its own: ${listed(reason.contextLost)}`;
  }
  if ("expectedAbsent" in reason) {
    return `expected, and did not come: ${listed(reason.expectedAbsent)}`;
  }
  if ("otherServers" in reason) {
    return `spans could also be received by ${listed(reason.otherServers)}`;
  }
  if ("unproved" in reason) {
    return `not all spans are known: ${reason.unproved}`;
  }
  if ("storeUnread" in reason) {
    return `the trace store ${reason.storeUnread.store} could not be read: ${reason.storeUnread.message}`;
  }
  if ("storePartial" in reason) {
    return `the trace store ${reason.storePartial.store} has only a part: ${reason.storePartial.message}`;
  }
  // A later server may know further reasons.
  return Object.keys(reason)[0] ?? "";
}

function listed(names: readonly string[]): string {
  return `${names.slice(0, LISTED_MAX).join(", ")}${names.length > LISTED_MAX ? ", …" : ""}`;
}
