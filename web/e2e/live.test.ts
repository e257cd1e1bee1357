/** What a person sees while it happens: events, spans and lists. The server may be several behind a load balancer. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { deleteSlowCopy, failedRun, get, post, type RunState, slowCopy } from "./api.ts";
import { launch, open, picture, URL_OF_SERVER, visit } from "./browser.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await deleteSlowCopy();
  await browser?.close();
});

it("a run that the page starts is followed live until its verdict", async () => {
  const { run } = await failedRun();
  const test = await slowCopy(run.test);
  const visited = await visit(browser);
  const { page } = visited;
  const streams: string[] = [];
  page.on("response", (response) => {
    if (/\/runs\/[^/]+\/events\?/.test(response.url())) {
      streams.push(`${response.status()} ${response.headers()["content-type"]}`);
    }
  });
  await open(visited, `/t/${test}`);
  await page.getByRole("button", { name: "Run", exact: true }).first().click();
  await page.waitForURL(/\/r\/[0-9a-f-]{36}/);
  const id = /\/r\/([0-9a-f-]{36})/.exec(page.url())?.[1];
  const live = page.getByRole("region", { name: "Live" });
  await live.getByText("the trigger was fired").waitFor({ timeout: 10_000 });
  await live.getByText(/the system answered with status|the trigger was not answered/).waitFor();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  expect(streams).toEqual(["200 text/event-stream"]);
  await picture(page, "run-live-1440-light");
  await page.getByRole("button", { name: "Run again" }).waitFor({ timeout: 60_000 });
  const ended = await get<RunState>(`/api/v1/runs/${id}`);
  expect(ended.state).toBe("ended");
  expect(await page.locator("h1").innerText()).toContain(ended.verdict);
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});

it("a run shows what arrives while it waits, and the spans that it has in its trace", async () => {
  const { run } = await failedRun();
  const test = await slowCopy(run.test, "12s");
  const started = await post<RunState>(`/api/v1/tests/${test}/runs`, {});
  const visited = await visit(browser, { expected: [404] });
  const { page } = visited;
  await open(visited, `/r/${started.id}`);
  const gathering = page.getByRole("region", { name: "The trace so far" });
  await gathering.getByText("spans were still arriving").waitFor({ timeout: 10_000 });
  await gathering.getByText("spans came").waitFor();
  const waited = gathering.getByText(/^now \+/);
  const first = await waited.innerText();
  await page.waitForFunction((text) => !document.body.innerText.includes(text), first);
  await picture(page, "run-gathering-1440-light");
  await gathering.getByRole("link", { name: "Open the trace" }).click();
  await page.waitForURL(/\/trace/);
  await page.getByText("The run still collects its spans.").waitFor();
  expect((await get<RunState>(`/api/v1/runs/${started.id}`)).state).not.toBe("ended");
  const rows = page.getByRole("treegrid", { name: "Spans of the trace" });
  await rows.waitFor();
  expect(Number(await rows.getAttribute("aria-rowcount"))).toBeGreaterThan(1);
  await picture(page, "trace-active-1440-light");
  // The page reads the trace that was judged once there is one.
  await page.getByText("The run still collects its spans.").waitFor({ state: "detached", timeout: 60_000 });
  await rows.waitFor();
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});

it("a stream that was cut is continued behind its last event", async () => {
  const { run } = await failedRun();
  const test = await slowCopy(run.test);
  const visited = await visit(browser);
  const { page } = visited;
  const lastIds: Array<string | undefined> = [];
  await page.route("**/runs/*/events?*", async (route) => {
    lastIds.push(route.request().headers()["last-event-id"]);
    if (lastIds.length === 1) {
      const event = { at: new Date().toISOString(), what: "accepted" };
      const body = `id: 1\nevent: accepted\ndata: ${JSON.stringify({ n: 1, event })}\n\nid: 2\ndata: {"n":`;
      await route.fulfill({ contentType: "text/event-stream", body });
    } else {
      await route.continue();
    }
  });
  const started = await post<RunState>(`/api/v1/tests/${test}/runs`, {});
  await page.goto(`${URL_OF_SERVER}/r/${started.id}`);
  const live = page.getByRole("region", { name: "Live" });
  await live.getByText("the trigger was fired").waitFor({ timeout: 10_000 });
  expect(lastIds.slice(0, 2)).toEqual([undefined, "1"]);
  expect(await live.getByText("accepted").count()).toBe(1);
  await visited.context.close();
});

it("a list shows a run that somebody else starts, within seconds", async () => {
  const { run } = await failedRun();
  const test = await slowCopy(run.test);
  const visited = await visit(browser);
  const { page } = visited;
  const following = page.waitForResponse((response) =>
    new URL(response.url()).pathname.endsWith("/v1/events"),
  );
  await open(visited, "/runs");
  expect((await following).status()).toBe(200);
  const started = await post<RunState>(`/api/v1/tests/${test}/runs`, {});
  // Without a notification the list is read again after 15 s.
  await page.locator(`a[href*="${started.id}"]`).first().waitFor({ timeout: 8000 });
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});
