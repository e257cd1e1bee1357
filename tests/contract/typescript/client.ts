import createClient from "openapi-fetch";
import type { components, paths } from "./api";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:11633" });

export async function verdict(test: string): Promise<string | null> {
  const started = await client.POST("/api/v1/tests/{test}/runs", { params: { path: { test } } });
  if (started.error) {
    const problem: components["schemas"]["Problem"] = started.error;
    throw new Error(problem.detail);
  }
  const run = await client.GET("/api/v1/runs/{run}", { params: { path: { run: started.data.id } } });
  return run.data?.verdict ?? null;
}

export async function suites(): Promise<string[]> {
  const page = await client.GET("/api/v1/test-suites", { params: { query: { limit: 10 } } });
  return (page.data?.items ?? []).map((item) => `${item.id} ${item.version}`);
}
