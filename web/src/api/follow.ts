/**
 * Follows the live events of a run until its `end`.
 *
 * A stream that was cut is requested again from the last event, after a pause that grows. It ends for good with `end`, with
 * 204 (the run has ended and there is nothing new), and with a refusal that a repetition does not change.
 */

import { address } from "./place.ts";
import { asFailure, failureOf, type RequestFailure } from "./problem.ts";
import type { components } from "./schema.d.ts";
import { SseParser } from "./sse.ts";

export type NumberedEvent = components["schemas"]["NumberedEvent"];

export interface Follower {
  onEvent(event: NumberedEvent): void;
  onEnd(): void;
  /** The stream is cut and will be requested again. */
  onCut(failure: RequestFailure): void;
}

const PAUSES_MS = [500, 1000, 2000, 5000, 10_000] as const;

export async function followRun(
  project: string,
  run: string,
  follower: Follower,
  signal: AbortSignal,
): Promise<void> {
  let last = "";
  let cuts = 0;
  while (!signal.aborted) {
    let isOver = false;
    try {
      isOver = await readStream(project, run, last, signal, (id, event) => {
        last = id;
        cuts = 0;
        follower.onEvent(event);
      });
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      const failure = asFailure(error);
      follower.onCut(failure);
      if (failure.status >= 400 && failure.status < 500 && failure.status !== 429) {
        return;
      }
    }
    if (isOver) {
      follower.onEnd();
      return;
    }
    await pause(PAUSES_MS[Math.min(cuts, PAUSES_MS.length - 1)] ?? 1000, signal);
    cuts += 1;
  }
}

/** Reads one stream; returns whether the run is over. */
async function readStream(
  project: string,
  run: string,
  last: string,
  signal: AbortSignal,
  onEvent: (id: string, event: NumberedEvent) => void,
): Promise<boolean> {
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (last !== "") {
    headers["last-event-id"] = last;
  }
  const url = address(`/api/v1/runs/${encodeURIComponent(run)}/events`, { project });
  const response = await fetch(url, { headers, signal, cache: "no-store" });
  if (response.status === 204) {
    return true;
  }
  if (!response.ok || response.body === null) {
    throw failureOf(response.status, await response.json().catch(() => undefined));
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new SseParser();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return false;
    }
    for (const event of parser.push(value)) {
      if (event.event === "end") {
        await reader.cancel();
        return true;
      }
      const read = numbered(event.data);
      if (read !== null) {
        onEvent(event.id ?? String(read.n), read);
      }
    }
  }
}

/** Reads an event; null if it is not one, since later servers may send others. */
function numbered(data: string): NumberedEvent | null {
  try {
    const read = JSON.parse(data) as NumberedEvent;
    return typeof read.n === "number" && typeof read.event === "object" ? read : null;
  } catch {
    return null;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
