/** The trace of a run: its columns, single spans, and what a selector finds. */

import { answerOf, bodyOf } from "./client.ts";
import { address } from "./place.ts";
import { failureOf } from "./problem.ts";

export interface NamedValue {
  readonly key: string;
  /** As JSON types it: text, number, boolean, list or object. */
  readonly value: unknown;
}

export interface SpanEvent {
  readonly name: string;
  /** Unix nanoseconds. */
  readonly time: string;
  readonly attributes: readonly NamedValue[];
}

export interface SpanLink {
  readonly traceId: string;
  readonly spanId: string;
  readonly attributes: readonly NamedValue[];
}

/** Everything about one span. */
export interface SpanDetails {
  readonly name: string;
  readonly kind: string | number;
  readonly service: string | null;
  readonly status: { readonly code: string | number; readonly message?: string | null } | null;
  /** Unix nanoseconds. */
  readonly start: string;
  readonly end: string;
  readonly parentSpanId: string | null;
  readonly attributes: readonly NamedValue[];
  readonly events: readonly SpanEvent[];
  readonly links: readonly SpanLink[];
  readonly resource: readonly NamedValue[];
  readonly scope: { readonly name?: string | null; readonly version?: string | null } | null;
}

/** The spans that a selector finds, by their ids; `cut` where there are more than are listed. */
export interface SelectedSpans {
  readonly spans: readonly string[];
  readonly total: number;
  readonly cut: boolean;
}

/** Reads the columns of the trace of a run. */
export async function readTraceColumns(
  project: string,
  run: string,
  signal: AbortSignal,
): Promise<ArrayBuffer> {
  return (await read(tracePath(run, "columns"), { project }, signal)).arrayBuffer();
}

export async function readTraceSpan(
  project: string,
  run: string,
  span: string,
  signal: AbortSignal,
): Promise<SpanDetails> {
  const path = tracePath(run, `spans/${encodeURIComponent(span)}`);
  return (await (await read(path, { project }, signal)).json()) as SpanDetails;
}

/** Evaluates a selector on the trace of a run. */
export async function selectTraceSpans(
  project: string,
  run: string,
  selector: string,
  signal: AbortSignal,
): Promise<SelectedSpans> {
  const answer = await read(tracePath(run, "select"), { project, q: selector }, signal);
  return (await answer.json()) as SelectedSpans;
}

function tracePath(run: string, rest: string): string {
  return `/api/v1/runs/${encodeURIComponent(run)}/trace/${rest}`;
}

async function read(
  path: string,
  query: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  const response = await answerOf(fetch(address(path, query), { signal }));
  if (!response.ok) {
    throw failureOf(response.status, await bodyOf(response));
  }
  return response;
}
