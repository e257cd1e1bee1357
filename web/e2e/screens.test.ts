/** Every screen on the real data of a server, in both themes and at two widths. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { get, newestRun } from "./api.ts";
import {
  axeViolations,
  LOOKS,
  launch,
  movements,
  open,
  overflow,
  picture,
  URL_OF_SERVER,
  visit,
} from "./browser.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});

interface Listed {
  readonly items: ReadonlyArray<{ readonly id: string; readonly name: string }>;
}

/** The screens with their addresses, and a text that each has to show. */
async function screens(): Promise<Array<readonly [string, string, string]>> {
  const tests = await get<Listed>("/api/v1/tests?limit=1");
  const [test] = tests.items;
  const [failed, passed, open_] = [
    await newestRun("failed"),
    await newestRun("passed"),
    await newestRun("inconclusive"),
  ];
  if (test === undefined || failed === null || passed === null) {
    throw new Error("these cases need a server with a test, a run that failed, and one that passed");
  }
  const found: Array<readonly [string, string, string]> = [
    ["tests", "/", test.name],
    ["tests-no-match", "/?q=there-is-no-such-test", "No test matches the filter"],
    ["tests-empty", "/?project=nothing-here", "There are no tests in this project"],
    ["test", `/t/${test.id}`, test.name],
    ["test-missing", "/t/there-is-no-such-test", "Not found"],
    ["runs", "/runs", "Runs"],
    ["runs-failed", `/runs?verdict=failed&test=${failed.test}`, failed.id.slice(-12)],
    ["runs-empty", "/runs?project=nothing-here", "There are no runs in this project"],
    ["runs-no-match", "/runs?until=2000-01-01T00:00:00Z", "No run matches the filters"],
    ["run-failed", `/r/${failed.id}`, "is false"],
    ["run-passed", `/r/${passed.id}`, "statements hold."],
    ["trace", `/r/${failed.id}/trace`, "Waterfall"],
    ["trace-flame", `/r/${failed.id}/trace?view=flame`, "Flame"],
    ["trace-graph", `/r/${failed.id}/trace?view=graph`, "Graph"],
    ["trace-table", `/r/${failed.id}/trace?view=table`, "Table"],
    ["trace-file", "/trace", "trace"],
    ["run-missing", "/r/01a1dcee-cd00-7101-8101-010101010101", "Not found"],
    ["suites", "/suites", "Suites"],
    ["suites-empty", "/suites?project=nothing-here", "There are no suites in this project"],
    ["start", "/start?project=nothing-here", "Open the shop"],
    ["start-own", "/start?project=nothing-here&door=own", "Send spans here"],
    ["login-off-or-on", "/login", "Log in"],
  ];
  if (open_ !== null) {
    found.push(["run-inconclusive", `/r/${open_.id}`, open_.outcome?.test ?? ""]);
  }
  return found;
}

describe.each(LOOKS)("at $width px, $scheme", ({ width, scheme }) => {
  it("every screen shows its data, keeps the policy, and is accessible", async () => {
    const wrong: string[] = [];
    const visited = await visit(browser, { width, scheme, expected: [404] });
    for (const [name, path, text] of await screens()) {
      await open(visited, path);
      const body = await visited.page.locator("main").innerText();
      if (!body.includes(text)) {
        wrong.push(`${name}: shows no “${text}” but: ${body.slice(0, 300)}`);
      }
      wrong.push(...(await axeViolations(visited.page)).map((it) => `${name}: ${it}`));
      const wide = await overflow(visited.page);
      if (wide > 0) {
        wrong.push(`${name}: ${wide} px wider than the window`);
      }
      await picture(visited.page, `${name}-${width}-${scheme}`);
      wrong.push(...visited.complaints.splice(0).map((it) => `${name}: ${it}`));
    }
    await visited.context.close();
    expect(wrong).toEqual([]);
  });
});

it("where the system forces colours and wants no motion, every screen is accessible and nothing moves", async () => {
  const wrong: string[] = [];
  const visited = await visit(browser, { isPlain: true, expected: [404] });
  for (const [name, path] of await screens()) {
    await open(visited, path);
    wrong.push(...(await axeViolations(visited.page)).map((it) => `${name}: ${it}`));
    wrong.push(...(await movements(visited.page)).map((it) => `${name}: ${it} moves`));
    await picture(visited.page, `${name}-forced`);
    wrong.push(...visited.complaints.splice(0).map((it) => `${name}: ${it}`));
  }
  await visited.context.close();
  expect(wrong).toEqual([]);
});

describe("a theme that the reader chose", () => {
  it("wins over that of the system, and is kept", async () => {
    const visited = await visit(browser, { scheme: "light" });
    await open(visited, "/");
    const surface = () =>
      visited.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const before = await surface();
    await visited.page.getByRole("button", { name: "Account" }).click();
    await visited.page.getByRole("menuitemradio", { name: "Dark" }).click();
    const chosen = await surface();
    expect(chosen).not.toBe(before);
    await visited.page.reload();
    await visited.page.locator("h1").first().waitFor();
    expect(await surface()).toBe(chosen);
    expect(visited.complaints).toEqual([]);
    await visited.context.close();
  });
});

it("the page loads nothing from another server", async () => {
  const visited = await visit(browser);
  const foreign: string[] = [];
  visited.page.on("request", (request) => {
    if (!request.url().startsWith(new URL(URL_OF_SERVER).origin)) {
      foreign.push(request.url());
    }
  });
  await open(visited, "/");
  await open(visited, "/runs");
  expect(foreign).toEqual([]);
  await visited.context.close();
});
