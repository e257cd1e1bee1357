/** The requests of the page. Nothing else fetches, besides the live events. */

import createClient, { type FetchResponse } from "openapi-fetch";
import { LOGOUT_PATH, SESSION_PATH } from "./auth-paths.ts";
import { address, prefix } from "./place.ts";
import { asFailure, failureOf, RequestFailure } from "./problem.ts";
import type { components, paths } from "./schema.d.ts";

export type Schemas = components["schemas"];

/** The number of tests of a page, each with the trend of its last runs. */
const TESTS_LIMIT = 100;
const RUNS_LIMIT = 50;
const SUITES_LIMIT = 100;
/** The number of runs of a test's history. */
export const HISTORY_RUNS = 100;

export interface RunsFilter {
  readonly test?: string | undefined;
  readonly verdict?: string | undefined;
  readonly from?: string | undefined;
  readonly until?: string | undefined;
  readonly cursor?: string | undefined;
}

export interface TestsFilter {
  readonly q?: string | undefined;
  readonly sort: TestsSort;
  readonly cursor?: string | undefined;
}

/** The order of tests: those whose last verdict is the worst come first, or by id. */
export type TestsSort = "worst" | "id";

const api = createClient<paths>({ baseUrl: prefix, fetch: (request) => answerOf(fetch(request)) });

export function readServer(signal?: AbortSignal): Promise<Schemas["ServerFacts"]> {
  return data(api.GET("/api/v1/server", { ...given(signal) }));
}

export function readCaller(signal?: AbortSignal): Promise<Schemas["Caller"]> {
  return data(api.GET("/api/v1/me", { ...given(signal) }));
}

export function listTests(
  project: string,
  filter: TestsFilter,
  signal?: AbortSignal,
): Promise<Schemas["Page_TestTrend"]> {
  return data(
    api.GET("/api/v1/trends", {
      params: { query: { project, limit: TESTS_LIMIT, ...filter } },
      ...given(signal),
    }),
  );
}

export function readTest(project: string, id: string, signal?: AbortSignal): Promise<Schemas["Trend"]> {
  return data(
    api.GET("/api/v1/tests/{test}/trend", {
      params: { path: { test: id }, query: { project, last: HISTORY_RUNS } },
      ...given(signal),
    }),
  );
}

export function readVersions(
  project: string,
  id: string,
  signal?: AbortSignal,
): Promise<Schemas["Page_DocumentVersion"]> {
  return data(
    api.GET("/api/v1/tests/{id}/versions", {
      params: { path: { id }, query: { project, limit: 20 } },
      ...given(signal),
    }),
  );
}

export function listRuns(
  project: string,
  filter: RunsFilter,
  signal?: AbortSignal,
): Promise<Schemas["Page_ListedRun"]> {
  return data(
    api.GET("/api/v1/runs", {
      params: { query: { project, limit: RUNS_LIMIT, ...filter } },
      ...given(signal),
    }),
  );
}

export function readRun(project: string, run: string, signal?: AbortSignal): Promise<Schemas["Run"]> {
  return data(
    api.GET("/api/v1/runs/{run}", { params: { path: { run }, query: { project } }, ...given(signal) }),
  );
}

/** The last run of a test that passed before a moment; null if there is none. */
export async function readLastGreen(
  project: string,
  test: string,
  until: string,
  signal?: AbortSignal,
): Promise<Schemas["Run"] | null> {
  const query = { project, test, verdict: "passed", until, limit: 1 };
  const page = await data(api.GET("/api/v1/runs", { params: { query }, ...given(signal) }));
  const [green] = page.items;
  return green === undefined ? null : readRun(project, green.id, signal);
}

/** A version of a test, as JSON. */
export function readTestDocument(
  project: string,
  id: string,
  version: number,
  signal?: AbortSignal,
): Promise<Schemas["Document"]> {
  const headers = { accept: "application/json" };
  const params = { path: { id }, query: { project, version } };
  return data(api.GET("/api/v1/tests/{id}", { params, headers, ...given(signal) }));
}

export function startRun(project: string, test: string): Promise<Schemas["Run"]> {
  return data(
    api.POST("/api/v1/tests/{test}/runs", { params: { path: { test }, query: { project } }, body: {} }),
  );
}

export function stopRun(project: string, run: string): Promise<Schemas["Run"]> {
  return data(api.POST("/api/v1/runs/{run}/stop", { params: { path: { run }, query: { project } } }));
}

export function listSuites(
  project: string,
  cursor: string | undefined,
  signal?: AbortSignal,
): Promise<Schemas["Page_ListedDocument"]> {
  return data(
    api.GET("/api/v1/test-suites", {
      params: { query: { project, limit: SUITES_LIMIT, cursor } },
      ...given(signal),
    }),
  );
}

/** The spans of the trace of a run that have this id: one, unless a system sent several different ones. */
export function readTraceSpans(
  project: string,
  run: string,
  span: string,
  signal?: AbortSignal,
): Promise<Schemas["SpanCopies"]> {
  const params = { path: { run, span }, query: { project } };
  return data(api.GET("/api/v1/runs/{run}/trace/spans/{span}", { params, ...given(signal) }));
}

/** Evaluates a selector on the trace of a run. */
export function selectTraceSpans(
  project: string,
  run: string,
  selector: string,
  signal?: AbortSignal,
): Promise<Schemas["SelectedSpans"]> {
  const params = { path: { run }, query: { project, q: selector } };
  return data(api.GET("/api/v1/runs/{run}/trace/select", { params, ...given(signal) }));
}

export function readTraceAttribute(
  project: string,
  run: string,
  key: string,
  signal?: AbortSignal,
): Promise<Schemas["AttributeValues"]> {
  const params = { path: { run }, query: { project, key } };
  return data(api.GET("/api/v1/runs/{run}/trace/attribute", { params, ...given(signal) }));
}

export function readDemo(project: string, signal?: AbortSignal): Promise<Schemas["Demo"]> {
  return data(api.GET("/api/v1/demo", { params: { query: { project } }, ...given(signal) }));
}

/** Opens the demo shop of the server, or opens it again with these faults. */
export function startDemo(project: string, faults: readonly string[]): Promise<Schemas["Demo"]> {
  return data(api.POST("/api/v1/demo", { params: { query: { project } }, body: { faults: [...faults] } }));
}

export function stopDemo(project: string): Promise<Schemas["Demo"]> {
  return data(api.DELETE("/api/v1/demo", { params: { query: { project } } }));
}

export function readReceiver(project: string, signal?: AbortSignal): Promise<Schemas["Receiver"]> {
  return data(api.GET("/api/v1/receiver", { params: { query: { project } }, ...given(signal) }));
}

/** Stores a test that is not there yet. */
export function createTest(
  project: string,
  id: string,
  document: { readonly type: string; readonly spec: Readonly<Record<string, unknown>> },
): Promise<Schemas["AppliedDocuments"]> {
  return data(
    api.PUT("/api/v1/tests/{id}", {
      params: { path: { id }, query: { project } },
      headers: { "if-none-match": "*" },
      // The generated type of an object with any keys has none.
      body: document as Schemas["Document"],
    }),
  );
}

export type ReportFormat = "html" | "junit";

export function reportAddress(project: string, run: string, format: ReportFormat): string {
  return address(`/api/v1/runs/${encodeURIComponent(run)}/report`, { project, format });
}

/** Exchanges a token for a cookie that no script reads. The token is not kept. */
export async function logIn(token: string): Promise<void> {
  await post(SESSION_PATH, JSON.stringify({ token }));
}

export async function logOut(): Promise<void> {
  await post(LOGOUT_PATH, null);
}

async function post(path: string, body: string | null): Promise<void> {
  const headers: HeadersInit = body === null ? {} : { "content-type": "application/json" };
  const response = await answerOf(fetch(address(path), { method: "POST", headers, body }));
  if (!response.ok) {
    throw failureOf(response.status, await bodyOf(response));
  }
}

async function data<T extends Record<string | number, unknown>, O, M extends `${string}/${string}`>(
  answer: Promise<FetchResponse<T, O, M>>,
): Promise<NonNullable<FetchResponse<T, O, M>["data"]>> {
  let got: FetchResponse<T, O, M>;
  try {
    got = await answer;
  } catch (error) {
    // An answer that is not JSON, such as that of a proxy.
    throw isAbort(error) ? error : asFailure(error);
  }
  if (got.data === undefined || got.data === null) {
    throw failureOf(got.response.status, got.error);
  }
  return got.data;
}

/** Waits for the answer; that there is none is a failure too, unless the page gave up by itself. */
export async function answerOf(request: Promise<Response>): Promise<Response> {
  try {
    return await request;
  } catch (error) {
    throw isAbort(error) ? error : new RequestFailure(0, null);
  }
}

/** The body as JSON; undefined if it is none. */
export async function bodyOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

function given(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
