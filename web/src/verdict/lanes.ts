/** The settlement of a trace as a line of time: for each process its arrivals, and how long it had to be quiet. */

import type { components } from "../api/schema.d.ts";

type Settlement = components["schemas"]["Settlement"];
type Process = components["schemas"]["ProcessQuiet"];

/** How far a quiet period is shown beyond the decision, in relation to the time before it. */
const BEYOND_MAX = 0.25;

/** Spans that arrived between two places. */
export interface Arrived {
  readonly from: number;
  readonly to: number;
  /** Their number, in relation to the most in such a time, of any process. */
  readonly height: number;
}

/** A process on the line; places are shares of its length, from 0 to 1. */
export interface Lane {
  readonly process: Process;
  /** When its spans arrived; null if the record is too old to know more than the last of them. */
  readonly arrived: readonly Arrived[] | null;
  /** When its last span arrived. */
  readonly last: number;
  /** The end of its quiet period, as far as it is shown. */
  readonly due: number;
  /** Whether the quiet period ends after what is shown. */
  readonly isCut: boolean;
  /** Whether it was quiet for long enough. */
  readonly isReached: boolean;
}

export interface Timeline {
  /** From the start of the line to its end, in nanoseconds. */
  readonly nanos: number;
  /** When the trigger was answered. */
  readonly answered: number;
  /** When it was decided whether the trace is complete. */
  readonly decided: number;
  readonly lanes: readonly Lane[];
}

/** Returns null if no process sent a span, or if no time passed. */
export function timeline(settlement: Settlement): Timeline | null {
  const { processes, waitedNs } = settlement;
  if (processes.length === 0) {
    return null;
  }
  const lasts = processes.map((it) => waitedNs - it.silentNs);
  const firsts = processes.map((it) => waitedNs - (it.arrivals?.firstNs ?? it.silentNs));
  const fromNs = Math.min(0, ...lasts, ...firsts);
  const beforeNs = waitedNs - fromNs;
  const latestNs = Math.max(waitedNs, ...processes.map((it, at) => (lasts[at] ?? 0) + it.quietNs));
  const untilNs = Math.min(latestNs, waitedNs + beforeNs * BEYOND_MAX);
  const nanos = untilNs - fromNs;
  if (nanos <= 0) {
    return null;
  }
  const place = (atNs: number) => (Math.min(Math.max(atNs, fromNs), untilNs) - fromNs) / nanos;
  // The times of two processes differ in length.
  const densest = Math.max(...processes.flatMap((it) => it.arrivals ?? []).map(density));
  const arrived = ({ arrivals }: Process): Arrived[] | null => {
    if (arrivals === undefined) {
      return null;
    }
    const { firstNs, everyNs, spans } = arrivals;
    const at = (time: number) => waitedNs - firstNs + time * everyNs;
    return spans.flatMap((count, time) =>
      count === 0
        ? []
        : [{ from: place(at(time)), to: place(at(time + 1)), height: count / everyNs / densest }],
    );
  };
  return {
    nanos,
    answered: place(0),
    decided: place(waitedNs),
    lanes: processes.map((process, at) => {
      const dueNs = (lasts[at] ?? 0) + process.quietNs;
      return {
        process,
        arrived: arrived(process),
        last: place(lasts[at] ?? 0),
        due: place(dueNs),
        isCut: dueNs > untilNs,
        isReached: process.silentNs >= process.quietNs,
      };
    }),
  };
}

/** The most spans in a nanosecond. */
function density({ everyNs, spans }: components["schemas"]["Arrivals"]): number {
  return Math.max(...spans) / everyNs;
}
