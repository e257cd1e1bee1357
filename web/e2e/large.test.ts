/**
 * One slow call among 100,000 spans, found by mouse and by keyboard alone, with every action counted.
 *
 * The newest run of the server has such a trace: the call `RESERVE stock` waited for a lock, and takes less time in sum than
 * the calls of any other kind.
 */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { components } from "../src/api/schema.d.ts";
import { get } from "./api.ts";
import { launch, open, picture, type Visit, visit } from "./browser.ts";
import { tabTo } from "./keyboard.ts";

const SPANS = 100_000;
const SLOW = "RESERVE stock";
const STATEMENT = "SELECT … FOR UPDATE";
/** An action is a click, a key of the page, or Enter on what the focus is on. */
const ACTIONS_MAX = 4;

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});

async function openRun(visited: Visit): Promise<void> {
  const runs = await get<components["schemas"]["Page_ListedRun"]>("/api/v1/runs?limit=1");
  const run = await get<components["schemas"]["Run"]>(`/api/v1/runs/${runs.items[0]?.id}`);
  expect(run.trace.spans).toBe(SPANS);
  await open(visited, `/r/${run.id}`);
}

/** The side panel names the call and what it waited for. */
async function expectFound(page: Page): Promise<void> {
  const panel = page.getByRole("complementary", { name: "Details of the selected span" });
  await panel.getByRole("heading", { name: "Resource" }).waitFor();
  const shown = await panel.innerText();
  expect(shown).toContain(SLOW);
  expect(shown).toContain(STATEMENT);
}

it("by mouse", async () => {
  const visited = await visit(browser);
  const { page } = visited;
  await openRun(visited);
  let actions = 0;
  const click = async (role: "link" | "button", name: string) => {
    actions += 1;
    await page.getByRole(role, { name, exact: true }).first().click();
  };
  await click("link", "Open the trace");
  await page.locator("[data-stage]").waitFor();
  await picture(page, "large-1440-light");
  await click("button", "Table");
  await page.locator("table").waitFor();
  await click("button", "Max");
  await picture(page, "large-table-1440-light");
  await click("button", SLOW);
  await expectFound(page);
  await picture(page, "large-found-1440-light");
  console.log(`by mouse: ${actions} actions`);
  expect(actions).toBeLessThanOrEqual(ACTIONS_MAX);
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});

it("by keyboard alone", async () => {
  const visited = await visit(browser);
  const { page } = visited;
  await openRun(visited);
  let [actions, tabs] = [0, 0];
  const act = async (text: string) => {
    tabs += await tabTo(page, { text });
    actions += 1;
    await page.keyboard.press("Enter");
  };
  await act("Open the trace");
  await page.locator("[data-stage]").waitFor();
  actions += 1;
  await page.keyboard.press("4");
  await page.locator("table").waitFor();
  await act("Max");
  await act(SLOW);
  await expectFound(page);
  console.log(`by keyboard: ${actions} actions, and ${tabs} steps of Tab`);
  expect(actions).toBeLessThanOrEqual(ACTIONS_MAX);
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});
