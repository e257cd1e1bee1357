/** A server with access on: the way in, and the way out. Runs with `QUALITYTRACE_TOKEN`. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { axeViolations, launch, open, picture, TOKEN, URL_OF_SERVER, visit } from "./browser.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});

describe.runIf(TOKEN !== "")("with access on", () => {
  it("the login leads back to where the reader wanted to go, and keeps no token", async () => {
    const visited = await visit(browser, { hasSession: false, expected: [401] });
    const { page } = visited;
    await page.goto(`${URL_OF_SERVER}/runs?verdict=failed`);
    await page.waitForURL(/\/login\?.*return=/);
    await page.getByLabel("Token").waitFor();
    expect(new URL(page.url()).searchParams.get("return")).toBe("/runs?verdict=failed");
    expect(await axeViolations(page)).toEqual([]);
    await picture(page, "login-1440-light");

    await page.getByLabel("Token").fill("qtt_this-is-no-token");
    await page.getByRole("button", { name: "Log in", exact: true }).click();
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("alert").innerText()).toContain("The server refused this token");
    await picture(page, "login-refused-1440-light");

    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Log in", exact: true }).click();
    await page.waitForURL(/\/runs\?verdict=failed/);
    await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]),
    );
    expect(kept).not.toContain(TOKEN);
    expect(visited.complaints).toEqual([]);

    await page.getByRole("button", { name: "Account" }).click();
    await page.getByRole("menuitem", { name: "Log out" }).click();
    await page.waitForURL(/\/login/);
    await page.goto(`${URL_OF_SERVER}/runs`);
    await page.waitForURL(/\/login\?.*return=/);
    await visited.context.close();
  });

  it("a return to another site leads to the tests", async () => {
    const visited = await visit(browser, { hasSession: false, expected: [401] });
    await open(visited, "/login?return=%2F%2Fevil.example");
    await visited.page.getByLabel("Token").fill(TOKEN);
    await visited.page.getByRole("button", { name: "Log in", exact: true }).click();
    await visited.page.getByRole("heading", { name: "Tests", level: 1 }).waitFor();
    expect(new URL(visited.page.url()).origin).toBe(new URL(URL_OF_SERVER).origin);
    await visited.context.close();
  });
});
