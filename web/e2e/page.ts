/**
 * The built page without a server, for what a server is no part of: how the trace view paints.
 *
 * Files of `dist` come from here with the policy of the server; answers of the API are given by the case, on their way to
 * the browser. They stand for the real ones, which the other cases use.
 */

import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page, type Route } from "playwright-core";
import type { components } from "../src/api/schema.d.ts";
import { CHROMIUM } from "./browser.ts";

const DIST = fileURLToPath(new URL("../dist", import.meta.url));
const NONCE = "0123456789abcdef";
/** As the server sends it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  `style-src 'self' 'nonce-${NONCE}'`,
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};

export interface StaticPage {
  readonly url: string;
  readonly close: () => void;
}

/** Serves `dist`, which `npm run build` writes. */
export async function servePage(): Promise<StaticPage> {
  const index = join(DIST, "index.html");
  if (!existsSync(index)) {
    throw new Error("there is no `dist`: run `npm run build`");
  }
  const html = readFileSync(index, "utf8")
    .replaceAll("__QUALITYTRACE_PREFIX__", "")
    .replaceAll("__QUALITYTRACE_NONCE__", NONCE);
  const server = createServer((request, answer) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const file = join(DIST, path);
    const isFile = extname(path) !== "" && file.startsWith(DIST) && existsSync(file);
    answer.setHeader("content-security-policy", POLICY);
    answer.setHeader("content-type", isFile ? (TYPES[extname(path)] ?? "text/plain") : "text/html");
    answer.end(isFile ? readFileSync(file) : html);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
}

export function launchAlone(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", ...args] });
}

interface ProblemAnswer {
  readonly status: 422;
  readonly body: components["schemas"]["Problem"];
}

export interface RunAnswers {
  readonly run: unknown;
  readonly columns: ArrayBuffer;
  /** The spans with an id. */
  readonly span?: (id: string) => components["schemas"]["SpanCopies"];
  readonly select?: (
    selector: string,
  ) => { readonly status: 200; readonly body: components["schemas"]["SelectedSpans"] } | ProblemAnswer;
}

/** Gives the answers of the API for one run, whatever its id. */
export async function answerRun(page: Page, answers: RunAnswers): Promise<void> {
  const json = (route: Route, body: unknown, status = 200) =>
    route.fulfill({ status, contentType: "application/json", body: JSON.stringify(body) });
  await page.route("**/api/v1/**", (route) => {
    const url = new URL(route.request().url());
    const path = url.pathname.replace(/^\/api\/v1/, "");
    const span = /\/trace\/spans\/([0-9a-f]{16})$/.exec(path)?.[1];
    if (path === "/server") {
      return json(route, { version: "0.0.0", access: "off", login: { oidc: false } });
    }
    if (path === "/me") {
      return json(route, { name: "ada", role: "admin", projects: [] });
    }
    if (path.endsWith("/trace/columns")) {
      return route.fulfill({
        contentType: "application/vnd.qualitytrace.columns",
        body: Buffer.from(answers.columns),
      });
    }
    if (span !== undefined && answers.span !== undefined) {
      return json(route, answers.span(span));
    }
    if (path.endsWith("/trace/select") && answers.select !== undefined) {
      const { status, body } = answers.select(url.searchParams.get("q") ?? "");
      return json(route, body, status);
    }
    return /^\/runs\/[^/]+$/.test(path)
      ? json(route, answers.run)
      : json(route, { code: "not-found", title: "Not found", detail: "this case has no such answer" }, 404);
  });
}
