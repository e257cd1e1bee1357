/** What a person does: find out why, filter, run, stop, and everything by keyboard. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { components } from "../src/api/schema.d.ts";
import { deleteSlowCopy, failedRun, get, post, type RunState, slowCopy } from "./api.ts";
import { launch, open, picture, settled, visit } from "./browser.ts";
import { tabTo } from "./keyboard.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await deleteSlowCopy();
  await browser?.close();
});

it("a failed run states in one sentence which statement is false, with its place and what was found", async () => {
  const { run, outcome } = await failedRun();
  const { claims, specs } = outcome.judgement;
  const wrong = [...specs.flatMap((it) => it.assertions), ...claims].filter((it) => it.verdict === "failed");
  const [first] = wrong;
  if (first === undefined) {
    throw new Error("the newest run that failed has no statement that is false");
  }
  const visited = await visit(browser);
  await open(visited, `/r/${run.id}`);
  const sentence = await visited.page.locator("[data-sentence]").innerText();
  const subject = "claim" in first ? (first.name ?? first.claim) : first.assertion;
  expect(sentence).toContain(`“${subject.replace(/\s*\n\s*/g, " ").trim()}” is false`);
  const cards = visited.page.getByRole("article");
  expect(await cards.count()).toBe(wrong.length);
  const card = await cards.first().innerText();
  expect(card).toContain(`${first.place.file}:${first.place.line}:${first.place.column}`);
  const found = first.spans.find((it) => it.verdict === "failed")?.found ?? first.reason ?? "";
  // What the server puts in backticks is shown as code.
  expect(card.replace(/\s+/g, " ")).toContain(found.replaceAll("`", "").replace(/\s+/g, " "));
  expect(card).toMatch(/Decided by (presence|absence|the response)/);
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});

it("a run is copied as Markdown with its sentence, its false statements and what was found", async () => {
  const { run, outcome } = await failedRun();
  const visited = await visit(browser);
  await open(visited, `/r/${run.id}`);
  await visited.page.getByRole("button", { name: "Copy as Markdown" }).click();
  await visited.page.getByText("Copied").waitFor();
  const copied = await visited.page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toContain(`(${new URL(visited.page.url()).origin}/r/${run.id})`);
  expect(copied).toContain("is false");
  const { claims, specs } = outcome.judgement;
  for (const statement of [...specs.flatMap((it) => it.assertions), ...claims]) {
    if (statement.verdict !== "failed") {
      continue;
    }
    const { place, evidence } = statement;
    expect(copied).toContain(`\`${place.file}:${place.line}:${place.column}\``);
    for (const span of evidence?.deciding?.slice(0, 5) ?? []) {
      expect(copied).toContain(span);
    }
    const [first] = evidence?.comparisons ?? [];
    expect(copied).toContain(first?.subject ?? statement.spans[0]?.spanId ?? "");
  }
  await visited.context.close();
});

it("a span that decided leads to its attributes in the trace, and a selector to the spans that it selects", async () => {
  const { run, outcome } = await failedRun();
  const { claims, specs } = outcome.judgement;
  const wrong = [...specs.flatMap((it) => it.assertions), ...claims].filter((it) => it.verdict === "failed");
  const [id] = wrong.flatMap((it) => it.evidence?.deciding ?? []);
  if (id === undefined) {
    throw new Error("the newest run that failed has no statement that a span decides");
  }
  type Copies = components["schemas"]["SpanCopies"];
  const copies = await get<Copies>(`/api/v1/runs/${run.id}/trace/spans/${id}`);
  const [span] = copies.spans;
  const texts = span?.attributes.filter((it) => it.type === "string") ?? [];
  expect(texts.length).toBeGreaterThan(0);
  const visited = await visit(browser, { expected: [422] });
  const { page } = visited;
  await open(visited, `/r/${run.id}`);
  await page.getByRole("article").first().getByRole("link", { name: id }).first().click();
  await page.waitForURL(new RegExp(`/r/${run.id}/trace\\?.*span=${id}`));
  const panel = page.getByRole("complementary", { name: "Details of the selected span" });
  await panel.getByRole("heading", { name: "Resource" }).waitFor();
  const shown = await panel.innerText();
  for (const { key, value } of texts) {
    expect(shown).toContain(key);
    expect(shown).toContain(String(value));
  }
  await page.keyboard.press("/");
  await page.keyboard.type(`span[name="${span?.name}"]`);
  const selected = `/api/v1/runs/${run.id}/trace/select?q=${encodeURIComponent(`span[name="${span?.name}"]`)}`;
  const { total } = await get<components["schemas"]["SelectedSpans"]>(selected);
  await page.getByText(`${total} of `).waitFor();
  // Each value that the language can write leads to the spans that have it, this one included.
  const [first] = texts;
  const row = panel.locator("dl > div", { hasText: first?.key ?? "" }).filter({ hasText: "only these" });
  await row.first().hover();
  await row.first().getByRole("button", { name: "only these" }).click();
  await page.waitForURL(/focus=hits/);
  const only = new URL(page.url()).searchParams.get("q") ?? "";
  const same = await get<components["schemas"]["SelectedSpans"]>(
    `/api/v1/runs/${run.id}/trace/select?q=${encodeURIComponent(only)}`,
  );
  expect(same.spans).toContain(id);
  await page.getByText(`${same.total} of `).waitFor();
  await page.getByRole("button", { name: "Table", exact: true }).click();
  await page.getByLabel("Group by").selectOption("attribute");
  await page.getByLabel("Attribute", { exact: true }).fill("service.name");
  await page.keyboard.press("Enter");
  await page
    .locator("table")
    .getByRole("button", { name: span?.service ?? "", exact: true })
    .waitFor();
  await page.getByLabel("Search in this trace").fill("span[name=");
  expect(await page.getByRole("alert").innerText()).toContain("expected a value, found the end");
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});

it("the list of runs keeps its filters in the address", async () => {
  const { run } = await failedRun();
  const visited = await visit(browser);
  const { page } = visited;
  await open(visited, "/runs");
  await page.getByLabel("Test", { exact: true }).fill(run.test);
  await page.getByRole("button", { name: "Apply" }).click();
  await page.waitForURL(/test=/);
  await page.getByRole("button", { name: /any verdict/ }).click();
  await page.getByRole("option", { name: "failed" }).click();
  await page.waitForURL(/verdict=failed/);
  await settled(page);
  const rows = page.locator("tbody tr");
  await rows.first().waitFor();
  for (const row of await rows.allInnerTexts()) {
    expect(row).toContain("failed");
    expect(row).toContain(run.test);
  }
  await page.goBack();
  expect(page.url()).not.toContain("verdict=");
  await page.goForward();
  await page.reload();
  await settled(page);
  expect(await page.locator("tbody tr").first().innerText()).toContain("failed");
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});

it("older runs are a page away, and the address names the page", async () => {
  const visited = await visit(browser);
  const { page } = visited;
  // Pages of two runs, so that any server with three runs has two of them.
  await page.route("**/api/v1/runs?*", (route) =>
    route.continue({ url: route.request().url().replace("limit=50", "limit=2") }),
  );
  await open(visited, "/runs");
  const runs = () =>
    page
      .locator("tbody tr a[title]")
      .evaluateAll((links) => links.map((it) => it.getAttribute("title") ?? ""));
  const first = await runs();
  expect(first).toHaveLength(2);
  await page.getByRole("link", { name: "Older" }).click();
  await page.waitForURL(/cursor=/);
  await page.getByRole("link", { name: "Newest" }).waitFor();
  await settled(page);
  const second = await runs();
  expect(second.length).toBeGreaterThan(0);
  expect(second.filter((it) => first.includes(it))).toEqual([]);
  await page.reload();
  await settled(page);
  expect(await runs()).toEqual(second);
  await page.getByRole("link", { name: "Newest" }).click();
  await page.waitForURL((url) => !url.searchParams.has("cursor"));
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});

it("tests are found and ordered by the server, also those that are not loaded", async () => {
  const { run } = await failedRun();
  const visited = await visit(browser);
  const { page } = visited;
  // Pages of one test: what is shown first is what the server put first.
  await page.route("**/api/v1/trends?*", (route) =>
    route.continue({ url: route.request().url().replace("limit=100", "limit=1") }),
  );
  await open(visited, "/");
  const rows = page.locator("tbody tr");
  expect(await rows.count()).toBe(1);
  expect(await rows.first().innerText()).toContain("failed");
  await page.getByRole("link", { name: "By id" }).click();
  await page.waitForURL(/sort=id/);
  const [first] = (await get<components["schemas"]["Page_ListedDocument"]>("/api/v1/tests?limit=1")).items;
  await page.locator("tbody tr", { hasText: first?.name ?? "" }).waitFor();
  expect(await page.getByRole("link", { name: "By id" }).getAttribute("aria-current")).toBe("page");
  expect(await page.getByRole("link", { name: "Worst first" }).getAttribute("aria-current")).toBeNull();
  await page.getByRole("searchbox", { name: "Filter by name or id" }).fill(run.test.toUpperCase());
  await page.locator(`tbody tr a[href*="/t/${run.test}"]`).waitFor();
  await page.getByRole("searchbox").fill("%");
  await page.getByText("No test matches the filter").waitFor();
  await page.reload();
  await page.getByText("No test matches the filter").waitFor();
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await rows.first().waitFor();
  expect(page.url()).not.toContain("q=");
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});

describe("by keyboard alone", () => {
  it("go to screens, search, and open the help", async () => {
    const visited = await visit(browser);
    const { page } = visited;
    await open(visited, "/");
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await page.waitForURL(/\/runs/);
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.waitForURL(/\/suites/);
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.getByRole("heading", { name: "Tests", level: 1 }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("g t?");
    expect(new URL(page.url()).searchParams.get("q")).toBe("g t?");
    await page.keyboard.press("Escape");
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await picture(page, "help-1440-light");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press(".");
    await page
      .getByRole("dialog", { name: "The command for this screen" })
      .getByText("qualitytrace trend")
      .waitFor();
    await picture(page, "command-1440-light");
    expect(visited.complaints).toEqual([]);
    await visited.context.close();
  });

  it("from the tests to why a run failed, each stop with a visible focus", async () => {
    const { run } = await failedRun();
    const visited = await visit(browser);
    const { page } = visited;
    await open(visited, "/");
    await tabTo(page, { selector: `a[href*="/r/"]` });
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/r\//);
    await open(visited, `/r/${run.id}`);
    const trigger = 'main button[aria-expanded="false"]';
    await tabTo(page, { selector: trigger });
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-expanded"))).toBe("true");
    await visited.context.close();
  });
});

it("a run is stopped by its button", async () => {
  const { run } = await failedRun();
  const test = await slowCopy(run.test);
  const started = await post<RunState>(`/api/v1/tests/${test}/runs`, {});
  const visited = await visit(browser);
  await open(visited, `/r/${started.id}`);
  await visited.page.getByRole("button", { name: "Stop" }).click();
  await visited.page.getByRole("button", { name: "Run again" }).waitFor({ timeout: 30_000 });
  const ended = await get<RunState & { readonly stopAt: string | null }>(`/api/v1/runs/${started.id}`);
  expect(ended.state).toBe("ended");
  expect(ended.stopAt).not.toBeNull();
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});
