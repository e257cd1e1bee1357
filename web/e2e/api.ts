/** What the server has, read as a program reads it: what the screens are compared with. */

import type { components } from "../src/api/schema.d.ts";
import { TOKEN, URL_OF_SERVER } from "./browser.ts";

type Schemas = components["schemas"];

export async function get<T>(path: string): Promise<T> {
  const answer = await fetch(`${URL_OF_SERVER}${path}`, {
    headers: { ...authorization(), accept: "application/json" },
  });
  if (!answer.ok) {
    throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
  }
  return (await answer.json()) as T;
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const answer = await fetch(`${URL_OF_SERVER}${path}`, {
    method: "POST",
    headers: { ...authorization(), "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) {
    throw new Error(`POST ${path}: ${answer.status} ${await answer.text()}`);
  }
  return (await answer.json()) as T;
}

export async function remove(path: string): Promise<void> {
  const answer = await fetch(`${URL_OF_SERVER}${path}`, { method: "DELETE", headers: authorization() });
  if (!answer.ok) {
    throw new Error(`DELETE ${path}: ${answer.status} ${await answer.text()}`);
  }
}

/** The newest run with a verdict; the cases need a server that has one. */
export async function newestRun(verdict: Schemas["Verdict"]): Promise<Schemas["Run"] | null> {
  const page = await get<Schemas["Page_ListedRun"]>(`/api/v1/runs?verdict=${verdict}&limit=1`);
  const [listed] = page.items;
  return listed === undefined ? null : get<Schemas["Run"]>(`/api/v1/runs/${listed.id}`);
}

export interface RunState {
  readonly id: string;
  readonly state: string;
  readonly test: string;
  readonly verdict: string | null;
}

/** The newest run that failed. */
export async function failedRun() {
  const run = await newestRun("failed");
  if (run?.outcome == null) {
    throw new Error("these cases need a server with a run that failed");
  }
  return { run, outcome: run.outcome };
}

const SLOW = "e2e-slow";

/** Stores a copy of a test whose runs take seconds, so that a person can watch and stop them; returns its id. */
export async function slowCopy(test: string, flush = "3s"): Promise<string> {
  const document = await get<{ readonly type: string; readonly spec: Record<string, unknown> }>(
    `/api/v1/tests/${test}`,
  );
  const spec = { ...document.spec, id: SLOW, name: "a slow copy", settle: { flush, timeout: "30s" } };
  const answer = await fetch(`${URL_OF_SERVER}/api/v1/tests/${SLOW}`, {
    method: "PUT",
    headers: { ...authorization(), "content-type": "application/json" },
    body: JSON.stringify({ ...document, spec }),
  });
  if (!answer.ok) {
    throw new Error(`PUT ${SLOW}: ${answer.status} ${await answer.text()}`);
  }
  return SLOW;
}

/** Its runs stay. */
export async function deleteSlowCopy(): Promise<void> {
  await fetch(`${URL_OF_SERVER}/api/v1/tests/${SLOW}`, { method: "DELETE", headers: authorization() });
}

function authorization(): Record<string, string> {
  return TOKEN === "" ? {} : { authorization: `Bearer ${TOKEN}` };
}
