/** What the server has, read as a program reads it: what the screens are compared with. */

import type { components } from "../src/api/schema.d.ts";
import { TOKEN, URL_OF_SERVER } from "./browser.ts";

type Schemas = components["schemas"];

export async function get<T>(path: string): Promise<T> {
  const answer = await fetch(`${URL_OF_SERVER}${path}`, { headers: authorization() });
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

/** The newest run with a verdict; the cases need a server that has one. */
export async function newestRun(verdict: Schemas["Verdict"]): Promise<Schemas["Run"] | null> {
  const page = await get<Schemas["Page_ListedRun"]>(`/api/v1/runs?verdict=${verdict}&limit=1`);
  const [listed] = page.items;
  return listed === undefined ? null : get<Schemas["Run"]>(`/api/v1/runs/${listed.id}`);
}

function authorization(): Record<string, string> {
  return TOKEN === "" ? {} : { authorization: `Bearer ${TOKEN}` };
}
