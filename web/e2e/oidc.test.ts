/** Logins at a real identity provider. Runs with `QUALITYTRACE_PEOPLE`: names, whose passwords are `NAME-password`. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { axeViolations, launch, picture, URL_OF_SERVER, type Visit, visit } from "./browser.ts";

const PEOPLE = process.env.QUALITYTRACE_PEOPLE ?? "";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
});

async function enter(page: Page, name: string): Promise<void> {
  await page.getByRole("link", { name: "Log in with your identity provider" }).click();
  await page.getByRole("textbox", { name: "Username" }).fill(name);
  await page.locator("input[type=password]").fill(`${name}-password`);
  await page.keyboard.press("Enter");
}

/** Opens the page of a browser that has no session. The pages of the provider are not ours, and neither is what they report. */
async function arrive(path: string): Promise<Visit> {
  const visited = await visit(browser, { hasSession: false, expected: [401] });
  await visited.page.goto(`${URL_OF_SERVER}${path}`);
  await visited.page.waitForURL(/\/login\?/);
  await visited.page.getByRole("link", { name: "Log in with your identity provider" }).waitFor();
  return visited;
}

describe.runIf(PEOPLE !== "")("with an identity provider", () => {
  it("a login leads back to where the reader wanted to go, and out again", async () => {
    const visited = await arrive("/runs?verdict=failed");
    const { page } = visited;
    expect(await axeViolations(page)).toEqual([]);
    await picture(page, "login-oidc-1440-light");
    await enter(page, "ann");
    await page.waitForURL(`${URL_OF_SERVER}/runs?verdict=failed`);
    await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    await page.getByRole("button", { name: "Account" }).click();
    await page.getByText("ann", { exact: true }).first().waitFor();
    await page.getByRole("menuitem", { name: "Log out" }).click();
    await page.waitForURL(/\/login/);
    await page.goto(`${URL_OF_SERVER}/runs`);
    await page.waitForURL(/\/login\?.*return=/);
    await visited.context.close();
  });

  it("a viewer cannot start runs, and is shown so", async () => {
    const visited = await arrive("/t/checkout");
    await enter(visited.page, "vic");
    await visited.page.waitForURL(`${URL_OF_SERVER}/t/checkout`);
    // Until the role is known, nothing is taken away.
    await visited.page.getByText("Your role may not start runs").first().waitFor();
    const buttons = visited.page.getByRole("button", { name: "Run", exact: true });
    expect(await buttons.count()).toBeGreaterThan(0);
    for (const button of await buttons.all()) {
      expect(await button.isDisabled()).toBe(true);
    }
    await visited.context.close();
  });

  it("a person without a role reads why, on a page, and an address adds no words", async () => {
    const visited = await arrive("/");
    const { page } = visited;
    await enter(page, "nob");
    await page.waitForURL(/\/login\?failed=role/);
    const alert = page.getByRole("alert");
    expect(await alert.innerText()).toContain("Your account has no role here");
    expect(await axeViolations(page)).toEqual([]);
    await picture(page, "login-no-role-1440-light");
    await page.goto(`${URL_OF_SERVER}/login?failed=Call%20us%20at%20555`);
    await page.getByRole("link", { name: "Log in with your identity provider" }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await page.goto(`${URL_OF_SERVER}/auth/callback?state=x&code=y`);
    await page.waitForURL(/\/login\?failed=elsewhere/);
    await visited.context.close();
  });
});
