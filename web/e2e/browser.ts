/**
 * A real Chromium on a real server, and what every screen has to keep.
 *
 * The server is named by `QUALITYTRACE_URL`; nothing is started here but the browser. With `QUALITYTRACE_PICTURES` each
 * screen is written there as PNG.
 */

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

export const URL_OF_SERVER = (process.env.QUALITYTRACE_URL ?? "").replace(/\/+$/, "");
/** The access-on tests run with it alone. */
export const TOKEN = process.env.QUALITYTRACE_TOKEN ?? "";
const PICTURES = process.env.QUALITYTRACE_PICTURES ?? "";
export const CHROMIUM: string = process.env.QUALITYTRACE_CHROMIUM ?? "/usr/bin/chromium";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export type Width = 1440 | 390;
export type Scheme = "light" | "dark";

interface Look {
  readonly width: Width;
  readonly scheme: Scheme;
}

const EACH_ONCE: readonly Look[] = [
  { width: 1440, scheme: "light" },
  { width: 390, scheme: "dark" },
];

const OTHERS: readonly Look[] = [
  { width: 1440, scheme: "dark" },
  { width: 390, scheme: "light" },
];

/** Each width and each scheme once; with `QUALITYTRACE_LOOKS=all` each width in each scheme. */
export const LOOKS = process.env.QUALITYTRACE_LOOKS === "all" ? [...EACH_ONCE, ...OTHERS] : EACH_ONCE;

/** A page, and what it reported that it should not have. */
export interface Visit {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Console errors, exceptions, violations of the policy, and answers with a server error. */
  readonly complaints: string[];
}

export async function launch(): Promise<Browser> {
  if (URL_OF_SERVER === "") {
    throw new Error("QUALITYTRACE_URL names no server, such as http://127.0.0.1:11633");
  }
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
}

interface Options {
  readonly width?: Width;
  readonly scheme?: Scheme;
  readonly hasSession?: boolean;
  /** The reader's system forces few colours, and wants no motion. */
  readonly isPlain?: boolean;
  /** Statuses that are part of the case, so that the browser's own line about them is no complaint. */
  readonly expected?: readonly number[];
}

export async function visit(browser: Browser, options: Options = {}): Promise<Visit> {
  const { width = 1440, scheme = "light", hasSession = true, isPlain = false, expected = [] } = options;
  const context = await browser.newContext({
    colorScheme: scheme,
    ...(isPlain && { forcedColors: "active", reducedMotion: "reduce" }),
    hasTouch: width === 390,
    permissions: ["clipboard-read", "clipboard-write"],
    viewport: { width, height: width === 390 ? 844 : 900 },
  });
  const complaints: string[] = [];
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      console.error(
        `policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`,
      );
    });
  });
  const page = await context.newPage();
  page.on("console", (message) => {
    const isExpected = expected.some((status) => message.text().includes(`status of ${status}`));
    if ((message.type() === "error" || message.type() === "warning") && !isExpected) {
      complaints.push(`${message.type()}: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => complaints.push(`exception: ${error.message}`));
  if (hasSession && TOKEN !== "") {
    await logInByRequest(context);
  }
  return { page, context, complaints };
}

/** Gets the cookie as the login screen does. */
async function logInByRequest(context: BrowserContext): Promise<void> {
  const answer = await context.request.post(`${URL_OF_SERVER}/auth/session`, {
    data: { token: TOKEN },
    headers: { origin: new URL(URL_OF_SERVER).origin, "sec-fetch-site": "same-origin" },
  });
  if (answer.status() !== 204) {
    throw new Error(`the server refused QUALITYTRACE_TOKEN: ${answer.status()} ${await answer.text()}`);
  }
}

/** Opens a screen, and waits until it shows data. */
export async function open(visit: Visit, path: string): Promise<void> {
  await visit.page.goto(`${URL_OF_SERVER}${path}`);
  await settled(visit.page);
}

/** Waits until nothing is loading and the first heading is there. */
export async function settled(page: Page): Promise<void> {
  await page.locator("h1").first().waitFor();
  await page.waitForFunction(() => !document.querySelector('main [role="status"]'));
}

/** The violations of the accessibility rules, a line each. */
export async function axeViolations(page: Page): Promise<string[]> {
  // By the debugger, since the policy of the page forbids scripts from elsewhere.
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const axe = (globalThis as unknown as { axe: { run(options: object): Promise<AxeResult> } }).axe;
    interface AxeResult {
      readonly violations: ReadonlyArray<{
        readonly id: string;
        readonly nodes: ReadonlyArray<{ readonly html: string; readonly failureSummary?: string }>;
      }>;
    }
    const { violations } = await axe.run({ resultTypes: ["violations"] });
    return violations.flatMap((it) =>
      it.nodes.map((node) => `${it.id}: ${node.html.slice(0, 200)} ${node.failureSummary ?? ""}`),
    );
  });
}

/** The names of what moves. */
export async function movements(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    document
      .getAnimations()
      .filter((it) => it.playState === "running")
      .map((it) => (it instanceof CSSAnimation ? it.animationName : it.id || it.constructor.name)),
  );
}

/** Elements that are wider than the page, which then scrolls sideways. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

export async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES !== "") {
    mkdirSync(PICTURES, { recursive: true });
    // What is sticky would else stand in the middle.
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true, animations: "disabled" });
  }
}
