/**
 * The trace view in a real Chromium. The page is the built one; answers of the API are given by the cases, since they need
 * traces that no run of a test makes. A dropped file needs no answer at all.
 */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { columnsOf, fileTraces } from "../src/trace/fromOtlp.ts";
import { detailsOf } from "../src/trace/otlp.ts";
import { axeViolations, LOOKS, overflow, picture, type Visit, visit } from "./browser.ts";
import { answerRun, launchAlone, type RunAnswers, type StaticPage, servePage } from "./page.ts";
import { fileOf, hostileOtlp, largeColumns, shopOtlp, spanId } from "./traces.ts";

const RUN = "01a1dcee-cd00-7101-8101-010101010101";

let browser: Browser;
let site: StaticPage;
beforeAll(async () => {
  browser = await launchAlone();
  site = await servePage();
});
afterAll(async () => {
  await browser?.close();
  site?.close();
});

/** A failed run whose claim names the twelve statements. */
function shopRun(): RunAnswers {
  const [trace] = fileTraces(shopOtlp());
  const { columns, spans } = columnsOf(trace?.spans ?? []);
  const named = Array.from({ length: 12 }, (_, item) => ({
    spanId: spanId(10 + item),
    name: "SELECT stock",
    verdict: "failed",
    found: "12",
  }));
  const claim = {
    claim: "count(span[db.query.text exists] by parent_id) <= 1",
    name: null,
    place: { file: "checkout.yaml", line: 62, column: 14 },
    verdict: "failed",
    decided: "presence",
    reason: null,
    spans: named,
    moreSpans: 0,
  };
  return {
    run: {
      acceptedAt: "2026-11-15T02:00:00Z",
      id: RUN,
      outcome: {
        runId: RUN,
        test: "checkout",
        verdict: "failed",
        reasons: [],
        diagnoses: [],
        traceId: "ab".repeat(16),
        answer: null,
        settlement: null,
        overtaken: null,
        judgement: { verdict: "failed", specs: [], claims: [claim], outputs: [], tree: [] },
        analysis: null,
        steps: [],
      },
      provisionalVerdict: null,
      state: "ended",
      stopAt: null,
      test: "checkout",
      traceId: "ab".repeat(16),
      verdict: "failed",
      version: 7,
    },
    columns: Buffer.from(fileOf(columns)),
    span: (id) => {
      const found = spans.filter((it) => it.id === id);
      return { spans: found.map(detailsOf), total: found.length };
    },
    select: (selector) =>
      selector.includes("orders")
        ? {
            status: 200,
            body: {
              spans: spans.filter((it) => it.resource.service === "orders").map((it) => it.id),
              total: 18,
              cut: false,
            },
          }
        : {
            status: 422,
            body: {
              type: "about:blank",
              status: 422,
              code: "invalid-document",
              title: "Unprocessable Entity",
              detail: "1:6: unknown attribute `servce`; did you mean `service`?",
            },
          },
  };
}

async function openRun(visited: Visit, answers: RunAnswers, search = ""): Promise<void> {
  await answerRun(visited.page, answers);
  await visited.page.goto(`${site.url}/r/${RUN}/trace${search}`);
  await visited.page.locator("[data-stage], section svg, section table").first().waitFor();
}

async function dropFile(page: Page, name: string, text: string): Promise<void> {
  await page.goto(`${site.url}/trace`);
  await page.getByRole("heading", { name: "Drop a file here" }).waitFor();
  await page
    .locator('input[type="file"]')
    .setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(text) });
  await page.locator("[data-stage]").waitFor();
}

/** The names of the mirrored rows, which are those on the canvas. */
function rows(page: Page): Promise<string[]> {
  return page
    .locator('[role="row"]')
    .evaluateAll((all) => all.map((it) => it.firstElementChild?.textContent ?? ""));
}

async function problems(page: Page, visited: Visit): Promise<string[]> {
  const wide = await overflow(page);
  return [
    ...(await axeViolations(page)),
    ...(wide > 0 ? [`${wide} px wider than the window`] : []),
    ...visited.complaints.splice(0),
  ];
}

describe.each(LOOKS)("at $width px, $scheme", ({ width, scheme }) => {
  it("every view of the trace of a run shows its data, keeps the policy, and is accessible", async () => {
    const visited = await visit(browser, { width, scheme, hasSession: false, expected: [422] });
    const { page } = visited;
    const wrong: string[] = [];
    const look = async (name: string) => {
      await page.waitForTimeout(300);
      await picture(page, `trace-${name}-${width}-${scheme}`);
      wrong.push(...(await problems(page, visited)).map((it) => `${name}: ${it}`));
    };
    await openRun(visited, shopRun());
    expect(await rows(page)).toContain("12 alike: SELECT stock");
    await look("waterfall");
    await openRun(visited, shopRun(), "?focus=all&fold=off");
    await look("waterfall-all");
    await openRun(visited, shopRun(), `?focus=all&span=${spanId(36)}`);
    await page.getByText("order-confirmation").waitFor();
    await look("panel");
    await openRun(visited, shopRun(), "?view=flame");
    await look("flame");
    await openRun(visited, shopRun(), "?view=graph");
    await look("graph");
    await openRun(visited, shopRun(), "?view=table");
    await look("table");
    await openRun(visited, shopRun(), `?q=${encodeURIComponent('span[servce="x"]')}`);
    await page.getByRole("alert").waitFor();
    await look("selector-wrong");
    await openRun(visited, shopRun(), `?focus=hits&q=${encodeURIComponent('span[service="orders"]')}`);
    await page.getByText("18 of ").waitFor();
    await look("hits");
    await page.goto(`${site.url}/trace`);
    await page.getByRole("heading", { name: "Drop a file here" }).waitFor();
    await look("drop");
    await dropFile(page, "shop.json", shopOtlp());
    await look("file");
    await dropFile(page, "hostile.json", hostileOtlp());
    await look("hostile");
    await openRun(visited, { ...shopRun(), columns: Buffer.from(largeColumns(20_000)) }, "?focus=all");
    await look("large");
    await openRun(
      visited,
      { ...shopRun(), columns: Buffer.from(largeColumns(20_000)) },
      "?view=flame&focus=all",
    );
    await look("large-flame");
    await visited.context.close();
    expect(wrong).toEqual([]);
  });
});

it("where the system forces colours, the canvas keeps those of the services", async () => {
  const visited = await visit(browser, { hasSession: false, isPlain: true });
  await openRun(visited, shopRun(), "?focus=all");
  const colours = () =>
    visited.page.locator("[data-stage]").evaluate((it) => {
      const canvas = it as HTMLCanvasElement;
      const pixels = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data;
      return new Set(pixels === undefined ? [] : new Uint32Array(pixels.buffer)).size;
    });
  await expect.poll(colours, { timeout: 10_000 }).toBeGreaterThan(20);
  await picture(visited.page, "trace-forced");
  expect(visited.complaints).toEqual([]);
  await visited.context.close();
});

describe("by keyboard", () => {
  it("moves, opens, jumps to what decided, and comes back", async () => {
    const visited = await visit(browser, { hasSession: false });
    const { page } = visited;
    await openRun(visited, shopRun());
    const active = () =>
      page.evaluate(() => {
        const grid = document.querySelector('[role="treegrid"]');
        const id = grid?.getAttribute("aria-activedescendant");
        return id ? (document.getElementById(id)?.firstElementChild?.textContent ?? null) : null;
      });
    await page.keyboard.press("j");
    expect(await active()).toBe("POST /orders");
    await page.keyboard.press("n");
    expect(await active()).toBe("SELECT stock");
    expect(new URL(page.url()).searchParams.get("span")).toBe(spanId(10));
    await page.keyboard.press("n");
    expect(new URL(page.url()).searchParams.get("span")).toBe(spanId(11));
    await page.keyboard.press("Shift+N");
    expect(new URL(page.url()).searchParams.get("span")).toBe(spanId(10));
    await page.keyboard.press("ArrowLeft");
    expect(await active()).toBe("12 alike: SELECT stock");
    await page.keyboard.press("ArrowLeft");
    expect(await rows(page)).not.toContain("SELECT stock");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Show them one by one" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Show them one by one" }).waitFor({ state: "detached" });
    await page.keyboard.press("w");
    await page.waitForURL(/[?&]t=/);
    await page.keyboard.press("0");
    await page.waitForURL((url) => !url.searchParams.has("t"));
    await page.keyboard.press("e");
    await page.waitForURL(/focus=errors/);
    expect(await rows(page)).not.toContain("12 alike: SELECT stock");
    await page.keyboard.press("e");
    await page.waitForURL(/focus=all/);
    await page.keyboard.press("[");
    await page.waitForURL(/fold=/);
    await page.keyboard.press("2");
    await page.waitForURL(/view=flame/);
    await page.keyboard.press("4");
    await page.getByRole("columnheader", { name: "Self" }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "In a trace" }).waitFor();
    await picture(page, "trace-keys-1440-light");
    await page.keyboard.press("Escape");
    await page.keyboard.press("1");
    await page.locator("[data-stage]").waitFor();
    // Letters that are typed are no keys of the trace.
    await page.keyboard.press("/");
    await page.keyboard.type("stock");
    await page.waitForURL(/q=stock/);
    expect(new URL(page.url()).searchParams.get("view")).toBeNull();
    await page.getByText("13 of ").waitFor();
    expect(visited.complaints).toEqual([]);
    await visited.context.close();
  });

  it("a link shows the same span, window and focus", async () => {
    const visited = await visit(browser, { hasSession: false });
    const search = `?span=${spanId(34)}&t=20ms..30ms&focus=all`;
    await openRun(visited, shopRun(), search);
    await visited.page.getByRole("complementary").getByText("INSERT charges").first().waitFor();
    await visited.page.waitForTimeout(400);
    const { searchParams } = new URL(visited.page.url());
    expect(searchParams.get("span")).toBe(spanId(34));
    expect(searchParams.get("t")).toBe("20ms..30ms");
    expect(visited.complaints).toEqual([]);
    await visited.context.close();
  });
});

describe("a dropped file", () => {
  it("opens without a request, by dropping too", async () => {
    const visited = await visit(browser, { hasSession: false, expected: [404] });
    const { page } = visited;
    await page.goto(`${site.url}/trace`);
    await page.getByRole("heading", { name: "Drop a file here" }).waitFor();
    const requests: string[] = [];
    page.on("request", (request) => requests.push(`${request.method()} ${new URL(request.url()).pathname}`));
    const file = await page.evaluateHandle((text) => {
      const data = new DataTransfer();
      data.items.add(new File([text], "shop.json"));
      return data;
    }, shopOtlp());
    await page.dispatchEvent("h2", "drop", { dataTransfer: file });
    await page.locator("[data-stage]").waitFor();
    expect(await rows(page)).toContain("12 alike: SELECT stock");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByText("http.route").waitFor();
    expect(requests.filter((it) => !/\/api\/v1\/(server|me)$|\.svg$/.test(it))).toEqual([]);
    await visited.context.close();
  });

  it.each([
    ["not JSON", "{", "The file is not JSON"],
    ["without spans", '{"resourceSpans":[]}', "The file has no spans"],
  ])("%s is refused with the reason", async (_, text, reason) => {
    const visited = await visit(browser, { hasSession: false, expected: [404] });
    const { page } = visited;
    await page.goto(`${site.url}/trace`);
    await page
      .locator('input[type="file"]')
      .setInputFiles({ name: "a.json", mimeType: "application/json", buffer: Buffer.from(text) });
    expect(await page.getByRole("alert").innerText()).toContain(reason);
    await visited.context.close();
  });

  it("a hostile trace becomes text, and the page goes on", async () => {
    const visited = await visit(browser, { hasSession: false, expected: [404] });
    const { page } = visited;
    await dropFile(page, "hostile.json", hostileOtlp());
    const names = [
      "<img",
      "left",
      "a large value",
      "many attributes",
      "ends before",
      "deep value",
      "circle a",
      "its own",
    ];
    for (const name of names) {
      await page.getByRole("searchbox").or(page.getByLabel("Search in this trace")).first().fill(name);
      await page.waitForURL((url) => url.searchParams.get("q") === name);
      await page.getByRole("button", { name: "Next (n)" }).click();
      await page
        .getByRole("complementary")
        .or(page.locator('[role="row"][aria-selected="true"]'))
        .first()
        .waitFor();
      await page.locator('[role="treegrid"]').focus();
      await page.keyboard.press("Enter");
      await page.getByRole("complementary").getByRole("heading", { level: 3, name: "Attributes" }).waitFor();
    }
    expect(await page.title()).not.toBe("broken");
    expect(await page.locator("img, main script, main b").count()).toBe(0);
    // No element has the text of the large value as a whole.
    const longest = await page.evaluate(() =>
      Math.max(...[...document.querySelectorAll("main *")].map((it) => it.textContent?.length ?? 0)),
    );
    expect(longest).toBeLessThan(60_000);
    const hidden = await page.evaluate(() =>
      /[\p{Cf}\p{Cc}]/u.test(document.body.innerText.replaceAll(/[\n\t]/g, "")),
    );
    expect(hidden).toBe(false);
    await page.keyboard.press("2");
    await page.waitForURL(/view=flame/);
    await page.keyboard.press("3");
    await page.getByRole("img", { name: "Service graph" }).waitFor();
    await page.keyboard.press("4");
    await page.getByRole("columnheader", { name: "Self" }).waitFor();
    expect(visited.complaints.filter((it) => !it.includes("404"))).toEqual([]);
    await visited.context.close();
  });
});
