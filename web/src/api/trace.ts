/** The columns of the trace of a run: the one answer that is not JSON. */

import { answerOf, bodyOf } from "./client.ts";
import { address } from "./place.ts";
import { failureOf } from "./problem.ts";

export interface TraceColumns {
  readonly buffer: ArrayBuffer;
  /** Whether the run has ended: these columns never change, which their entity tag promises. */
  readonly isFinal: boolean;
}

export async function readTraceColumns(
  project: string,
  run: string,
  signal: AbortSignal,
): Promise<TraceColumns> {
  const path = `/api/v1/runs/${encodeURIComponent(run)}/trace/columns`;
  const response = await answerOf(fetch(address(path, { project }), { signal }));
  if (!response.ok) {
    throw failureOf(response.status, await bodyOf(response));
  }
  return { buffer: await response.arrayBuffer(), isFinal: response.headers.has("etag") };
}
