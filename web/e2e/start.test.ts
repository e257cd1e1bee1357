/**
 * The first run, from a server without tests to a green verdict: by mouse and by keyboard alone, with every action counted.
 *
 * It needs a server that offers the demo shop, and uses projects of its own. The shop is closed before each case.
 */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { get, remove } from "./api.ts";
import {
  axeViolations,
  LOOKS,
  launch,
  open,
  overflow,
  picture,
  settled,
  URL_OF_SERVER,
  visit,
} from "./browser.ts";
import { tabTo } from "./keyboard.ts";

/** An action is a click, or by keyboard one Enter on what the focus is on. */
const ACTIONS_MAX = 4;

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
beforeEach(async () => {
  await remove("/api/v1/demo");
});
afterAll(async () => {
  await browser?.close();
});

async function verdictOf(page: Page, verdict: string): Promise<void> {
  await page.waitForURL(/\/r\/[0-9a-f-]{36}/);
  await page.getByRole("button", { name: "Run again" }).waitFor({ timeout: 30_000 });
  expect(await page.locator("h1").innerText()).toContain(verdict);
}

it.each(LOOKS)("by mouse at $width px, $scheme: green, then broken and red", async ({ width, scheme }) => {
  const visited = await visit(browser, { width, scheme });
  const { page } = visited;
  const project = `mouse-${width}-${scheme}`;
  const wrong: string[] = [];
  const look = async (name: string) => {
    wrong.push(...(await axeViolations(page)).map((it) => `${name}: ${it}`));
    const wide = await overflow(page);
    if (wide > 0) {
      wrong.push(`${name}: ${wide} px wider than the window`);
    }
    await picture(page, `${name}-${width}-${scheme}`);
  };
  let clicks = 0;
  const click = async (role: "button" | "link", name: string) => {
    clicks += 1;
    await page.getByRole(role, { name, exact: true }).first().click();
  };

  await open(visited, `/?project=${project}`);
  await look("start-tests-empty");
  await click("link", "Start here");
  await page.waitForURL(/\/start/);
  await settled(page);
  await look("start-closed");
  await click("button", "Open the shop");
  await page.getByText("the money is taken once").waitFor();
  await settled(page);
  await look("start-open");
  await click("button", "Run the test");
  await verdictOf(page, "passed");
  expect(clicks).toBeLessThanOrEqual(ACTIONS_MAX);
  await look("start-green");

  await click("link", "Break the shop");
  await page.waitForURL(/\/start/);
  await click("button", "n-plus-one");
  await page.getByText("The shop is broken:").waitFor();
  await look("start-broken");
  await click("button", "Run the test");
  await verdictOf(page, "failed");
  expect(await page.locator("[data-sentence]").innerText()).toContain(
    "no statement is asked again and again",
  );
  await look("start-red");

  expect(wrong).toEqual([]);
  expect(visited.complaints).toEqual([]);
  const runs = await get<{ items: readonly unknown[] }>(`/api/v1/runs?project=${project}`);
  expect(runs.items).toHaveLength(2);
  await visited.context.close();
});

it("by keyboard alone: green", async () => {
  const visited = await visit(browser);
  const { page } = visited;
  await open(visited, "/?project=keyboard");
  let actions = 0;
  const act = async (name: string) => {
    await tabTo(page, { text: name });
    actions += 1;
    await page.keyboard.press("Enter");
  };
  await act("Start here");
  await page.waitForURL(/\/start/);
  await settled(page);
  await act("Open the shop");
  await page.getByRole("button", { name: "Run the test" }).waitFor();
  await act("Run the test");
  await verdictOf(page, "passed");
  expect(actions).toBeLessThanOrEqual(ACTIONS_MAX);
  await act("Break the shop");
  await page.waitForURL(/\/start/);
  await settled(page);
  await act("n-plus-one");
  await page.getByText("The shop is broken:").waitFor();
  await act("Run the test");
  await verdictOf(page, "failed");
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});

it.each(LOOKS)(
  "the own system at $width px, $scheme: a light, and a test from a curl command",
  async (look) => {
    const visited = await visit(browser, look);
    const { page } = visited;
    const project = `own-${look.width}-${look.scheme}`;
    const receiver = await get<{ endpoint: { httpPort: number } }>(`/api/v1/receiver?project=${project}`);
    const isFirst = look === LOOKS[0];
    await open(visited, `/start?project=${project}&door=own`);
    const light = page.getByRole("region", { name: "Light of the receiver" });
    await page.getByText("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:").first().waitFor();
    if (isFirst) {
      await light.getByText("No span of a system has come yet").waitFor();
      await picture(page, `start-own-dark-${look.width}-${look.scheme}`);
    }
    await sendSpan(receiver.endpoint.httpPort);
    await light.getByText("Spans of one service have come").waitFor({ timeout: 10_000 });
    await light.getByText("first-service").waitFor();

    await page.getByLabel("The command").fill("curl http://127.0.0.1:1/orders?x=1 -F a=b");
    await page.getByText("This command becomes no test").waitFor();
    await page.getByLabel("The command").fill('curl http://127.0.0.1:1/orders?x=1 --json \'{"sku": "tea"}\'');
    expect(await page.getByLabel("Name of the test").inputValue()).toBe("post-orders");
    await page.getByRole("button", { name: "Make a test" }).click();
    await page.getByRole("button", { name: "Run the test" }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    expect(await overflow(page)).toBe(0);
    await picture(page, `start-own-${look.width}-${look.scheme}`);
    const stored = await get<{ spec: { trigger: { httpRequest: { url: string; body: string } } } }>(
      `/api/v1/tests/post-orders?project=${project}`,
    );
    expect(stored.spec.trigger.httpRequest).toMatchObject({
      url: "http://127.0.0.1:1/orders?x=1",
      body: '{"sku": "tea"}',
    });
    await page.getByRole("button", { name: "Run the test" }).click();
    // Nothing listens at that port: the run says so, and is not green.
    await verdictOf(page, "inconclusive");
    expect(visited.complaints).toEqual([]);
    await visited.context.close();
  },
);

/** Sends a span of no run, as an instrumented service does. */
async function sendSpan(port: number): Promise<void> {
  const hex = (bytes: number) =>
    Array.from({ length: bytes * 2 }, () => "123456789abcdef"[Math.floor(Math.random() * 15)]).join("");
  const now = `${Date.now()}000000`;
  const span = {
    traceId: hex(16),
    spanId: hex(8),
    name: "GET /",
    kind: 2,
    startTimeUnixNano: now,
    endTimeUnixNano: now,
  };
  const attributes = [{ key: "service.name", value: { stringValue: "first-service" } }];
  const answer = await fetch(`http://127.0.0.1:${port}/v1/traces`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ resourceSpans: [{ resource: { attributes }, scopeSpans: [{ spans: [span] }] }] }),
  });
  expect(answer.status).toBe(200);
}

it("a server that does not offer the shop names what to do", async () => {
  const visited = await visit(browser);
  const { page } = visited;
  const reason = "the demo shop is not offered here: access is on: set `server.demo: true`";
  await page.route("**/api/v1/server", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), demo: "off" } });
  });
  await page.route("**/api/v1/demo?*", (route) =>
    route.fulfill({
      json: { isOffered: false, reason, url: null, faults: [], knownFaults: [], test: null, otherServers: 0 },
    }),
  );
  await page.goto(`${URL_OF_SERVER}/start?project=off`);
  await page.getByText("Send spans here").waitFor();
  await page.getByRole("link", { name: /Try it on the demo shop/ }).click();
  await page.getByText("Not on this server").waitFor();
  await page.getByText("server.demo: true").waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await picture(page, "start-off-1440-light");
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});
