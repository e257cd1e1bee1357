/** Follows the live events of a run until its `end`, and those of a project. */

import { address } from "./place.ts";
import type { RequestFailure } from "./problem.ts";
import type { components } from "./schema.d.ts";
import { readStream } from "./stream.ts";

export type NumberedEvent = components["schemas"]["NumberedEvent"];
export type Settlement = components["schemas"]["Settlement"];

export interface Follower {
  onEvent(event: NumberedEvent): void;
  /** What the run has of its trace, a few times a second while its spans arrive. */
  onGathering(settlement: Settlement): void;
  onEnd(): void;
  /** The stream is cut and will be requested again from its last event. */
  onCut(failure: RequestFailure): void;
}

export async function followRun(
  project: string,
  run: string,
  follower: Follower,
  signal: AbortSignal,
): Promise<void> {
  const url = address(`/api/v1/runs/${encodeURIComponent(run)}/events`, { project, gathering: "true" });
  let last = "";
  const isOver = await readStream(
    {
      request: () => ({ url, last }),
      onEvent: ({ event, id, data }) => {
        if (event === "end") {
          return true;
        }
        const read = parsed(data);
        if (event === "gathering") {
          if (isSettlement(read)) {
            follower.onGathering(read);
          }
        } else if (isNumbered(read)) {
          last = id ?? String(read.n);
          follower.onEvent(read);
        }
        return false;
      },
      onCut: (failure) => follower.onCut(failure),
    },
    signal,
  );
  if (isOver) {
    follower.onEnd();
  }
}

/** Follows a project: `onChange` is called when a run of it was accepted or has ended. */
export async function followProject(
  project: string,
  onChange: () => void,
  signal: AbortSignal,
): Promise<void> {
  const url = address("/api/v1/events", { project });
  await readStream(
    {
      request: () => ({ url, last: "" }),
      onEvent: ({ event }) => {
        if (event === "runs") {
          onChange();
        }
        return false;
      },
      // Lists are read now and then without it.
      onCut: () => undefined,
    },
    signal,
  );
}

/** Returns what a text is as JSON; null if it is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Whether it is an event: later servers may send others. */
function isNumbered(read: unknown): read is NumberedEvent {
  const it = read as NumberedEvent | null;
  return typeof it?.n === "number" && typeof it.event === "object";
}

function isSettlement(read: unknown): read is Settlement {
  const it = read as Settlement | null;
  return Array.isArray(it?.processes) && typeof it.waitedNs === "number";
}
