/**
 * What the screens show when an answer is not the usual one.
 *
 * The page and its policy come from the real server. Single answers of the API are replaced on their way to the browser:
 * a server that is up cannot give them.
 */

import { readFileSync } from "node:fs";
import type { Browser, Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { components } from "../src/api/schema.d.ts";
import { axeViolations, LOOKS, launch, overflow, picture, URL_OF_SERVER, visit } from "./browser.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});

/** Control characters and format characters, of which the golden outcome has no legitimate one. */
const HIDDEN = /[\p{Cc}\p{Cf}]/u;
const RUN = "01a1dcee-cd00-7101-8101-010101010101";

function problem(status: number, code: string, title: string, detail: string) {
  return (route: Route) =>
    route.fulfill({
      status,
      contentType: "application/problem+json",
      body: JSON.stringify({ type: "about:blank", status, code, title, detail }),
    });
}

/** A run with the outcome of a golden file of the reports. */
function goldenRun(name: string): string {
  const file = new URL(`../../crates/report/tests/golden/${name}-v1.json`, import.meta.url);
  const { outcome } = JSON.parse(readFileSync(file, "utf8")) as {
    outcome: components["schemas"]["Outcome"];
  };
  const run: components["schemas"]["Run"] = {
    acceptedAt: "2026-11-15T02:00:00.000000000Z",
    id: RUN,
    outcome,
    provisionalVerdict: null,
    state: "ended",
    stopAt: null,
    test: "cart",
    trace: { state: "none" },
    traceId: outcome.traceId,
    variableSets: [],
    variables: {},
    verdict: outcome.verdict,
    version: 3,
  };
  return JSON.stringify(run);
}

/** Answers for a run with this body, and for its test: an outcome may have no request, and then the page shows that of the test. */
async function answerRun(page: Page, body: string): Promise<void> {
  const contentType = "application/json";
  await page.route(`**/api/v1/runs/${RUN}?*`, (route) => route.fulfill({ contentType, body }));
  const document = { type: "Test", spec: { id: "cart", trigger: { type: "http" } } };
  await page.route("**/api/v1/tests/cart?*", (route) =>
    route.fulfill({ contentType, body: JSON.stringify(document) }),
  );
}

describe("failures", () => {
  it.each([
    [
      "forbidden",
      problem(403, "forbidden", "Forbidden", "`ada` has no access to the project `shop`"),
      ["You may not see this", "ada has no access to the project shop", "403 · code forbidden"],
    ],
    [
      "internal",
      problem(500, "internal", "Internal Server Error", "the server has a bug; its log has the details"),
      ["Internal Server Error", "the server has a bug", "500 · code internal"],
    ],
    [
      "not-json",
      (route: Route) =>
        route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad Gateway</h1>" }),
      ["The request failed", "status 502"],
    ],
    [
      "no-answer",
      (route: Route) => route.abort("connectionrefused"),
      ["The server does not answer", "code no-answer"],
    ],
  ] as const)("%s: the Problem as given, and a retry that works", async (name, answer, texts) => {
    const visited = await visit(browser, { expected: [403, 500, 502] });
    const { page } = visited;
    await page.route("**/api/v1/runs?*", answer);
    await page.goto(`${URL_OF_SERVER}/runs`);
    const alert = page.locator("main").getByRole("alert");
    await alert.waitFor();
    const shown = await alert.innerText();
    for (const text of texts) {
      expect(shown).toContain(text);
    }
    expect(await axeViolations(page)).toEqual([]);
    await picture(page, `state-${name}-1440-light`);
    await page.unroute("**/api/v1/runs?*");
    await page.getByRole("button", { name: "Try again" }).click();
    await alert.waitFor({ state: "detached" });
    expect(visited.complaints.filter((it) => !it.includes("ERR_CONNECTION_REFUSED"))).toEqual([]);
    await visited.context.close();
  });

  it("the page requests again while the server waits for its database, without a click", async () => {
    const visited = await visit(browser, { expected: [503] });
    const { page } = visited;
    await page.route(
      "**/api/v1/runs?*",
      problem(503, "not-ready", "Service Unavailable", "the server waits for Postgres: connection refused"),
    );
    await page.goto(`${URL_OF_SERVER}/runs`);
    await page.getByText("Waiting for the server").waitFor();
    await picture(page, "state-waiting-1440-light");
    // It does not fall back to the skeleton while it asks.
    await page.waitForTimeout(2500);
    expect(await page.locator("main").innerText()).toContain("the server waits for Postgres");
    await page.unroute("**/api/v1/runs?*");
    await page.getByText("Waiting for the server").waitFor({ state: "detached", timeout: 10_000 });
    expect(visited.complaints).toEqual([]);
    await visited.context.close();
  });

  it("the skeleton appears only where an answer takes its time", async () => {
    const visited = await visit(browser);
    const { page } = visited;
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route("**/api/v1/runs?*", async (route) => {
      await held;
      await route.continue();
    });
    await page.goto(`${URL_OF_SERVER}/runs`);
    const skeleton = page.locator('main [role="status"]');
    await skeleton.waitFor();
    await page.waitForFunction(() => {
      const it = document.querySelector('main [role="status"]');
      return it !== null && getComputedStyle(it).opacity === "1";
    });
    await picture(page, "state-loading-1440-light");
    release();
    await skeleton.waitFor({ state: "detached" });
    await visited.context.close();
  });
});

describe("outcomes of all kinds", () => {
  const NAMES = [
    "checkout",
    "command",
    "diagnosed",
    "failed",
    "flaky",
    "gated",
    "hostile",
    "many-spans",
    "no-answer",
    "no-telemetry",
    "not-whole",
    "overtaken",
  ];

  it.each(LOOKS)("are shown, accessible and within the window, at $width px, $scheme", async (look) => {
    const wrong: string[] = [];
    const visited = await visit(browser, look);
    const { page } = visited;
    for (const name of NAMES) {
      await page.unrouteAll();
      await answerRun(page, goldenRun(name));
      await page.goto(`${URL_OF_SERVER}/r/${RUN}`);
      await page.locator("[data-sentence]").waitFor();
      const folded = page.locator('main button[aria-expanded="false"]');
      while ((await folded.count()) > 0) {
        await folded.first().click();
      }
      wrong.push(...(await axeViolations(page)).map((it) => `${name}: ${it}`));
      const wide = await overflow(page);
      if (wide > 0) {
        wrong.push(`${name}: ${wide} px wider than the window`);
      }
      await picture(page, `outcome-${name}-${look.width}-${look.scheme}`);
      wrong.push(...visited.complaints.splice(0).map((it) => `${name}: ${it}`));
    }
    await visited.context.close();
    expect(wrong).toEqual([]);
  });

  it("hostile texts stay texts: no element, no direction, no invisible character", async () => {
    const visited = await visit(browser);
    const { page } = visited;
    const body = goldenRun("hostile").replaceAll(
      "all is well",
      "<img src=x onerror=alert(1)><script>alert(2)</script>",
    );
    await answerRun(page, body);
    await page.goto(`${URL_OF_SERVER}/r/${RUN}`);
    await page.locator("[data-sentence]").waitFor();
    const found = await page.evaluate(() => ({
      elements: document.querySelectorAll("main img, main script, main iframe").length,
      text: document.querySelector("main")?.textContent ?? "",
      title: document.title,
    }));
    expect(found.elements).toBe(0);
    expect(found.text).toContain("<img src=x onerror=alert(1)>");
    expect(found.text).toContain("RLO");
    for (const text of [found.text, found.title]) {
      expect(Array.from(text).filter((it) => it !== "\n" && HIDDEN.test(it))).toEqual([]);
    }
    expect(visited.complaints).toEqual([]);
    await visited.context.close();
  });
});
