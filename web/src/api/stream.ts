/**
 * Reads a stream of Server-Sent Events until it is over.
 *
 * A stream that was cut is requested again, after a pause that grows. It ends for good with the event that its reader takes as
 * the last, with 204, and with a refusal that a repetition does not change.
 */

import { asFailure, failureOf, type RequestFailure } from "./problem.ts";
import { type ServerSentEvent, SseParser } from "./sse.ts";

export interface StreamReader {
  /** The address to request, and the id of the last event that is known; empty if none is. */
  request(): { readonly url: string; readonly last: string };
  /** Returns whether this was the last event. */
  onEvent(event: ServerSentEvent): boolean;
  /** The stream is cut and will be requested again, unless the server refuses it. */
  onCut(failure: RequestFailure): void;
}

const PAUSES_MS = [500, 1000, 2000, 5000, 10_000] as const;

/** Returns whether the stream came to its end. */
export async function readStream(reader: StreamReader, signal: AbortSignal): Promise<boolean> {
  let cuts = 0;
  while (!signal.aborted) {
    try {
      const counted = {
        ...reader,
        onEvent: (event: ServerSentEvent) => {
          cuts = 0;
          return reader.onEvent(event);
        },
      };
      if (await readOnce(counted, signal)) {
        return true;
      }
    } catch (error) {
      if (signal.aborted) {
        return false;
      }
      const failure = asFailure(error);
      reader.onCut(failure);
      if (failure.status >= 400 && failure.status < 500 && failure.status !== 429) {
        return false;
      }
    }
    await pause(PAUSES_MS[Math.min(cuts, PAUSES_MS.length - 1)] ?? 1000, signal);
    cuts += 1;
  }
  return false;
}

async function readOnce(
  { request, onEvent }: Pick<StreamReader, "request" | "onEvent">,
  signal: AbortSignal,
): Promise<boolean> {
  const { url, last } = request();
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (last !== "") {
    headers["last-event-id"] = last;
  }
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
      if (onEvent(event)) {
        await reader.cancel();
        return true;
      }
    }
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
