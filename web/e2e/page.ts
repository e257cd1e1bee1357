/**
 * The built page without a server, for what a server is no part of: how the trace view paints.
 *
 * Files of `dist` come from here with the policy of the server; answers of the API are given by the case. They stand for the
 * real ones, which the other cases use.
 */

import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { zstdCompressSync } from "node:zlib";
import { type Browser, chromium, type Page } from "playwright-core";
import type { components } from "../src/api/schema.d.ts";
import { CHROMIUM } from "./browser.ts";

const DIST = fileURLToPath(new URL("../dist", import.meta.url));
const NONCE = "0123456789abcdef";
/** As the server sends it. */
const POLICY = readFileSync(new URL("../../crates/server/src/ui/policy.txt", import.meta.url), "utf8")
  .trimEnd()
  .replaceAll("\n", "; ")
  .replaceAll("{nonce}", NONCE);
const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};

export interface StaticPage {
  readonly url: string;
  readonly close: () => void;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Serves `dist`, which `npm run build` writes. `answer` is that of the API; without one, a request waits for ever. */
export async function servePage(
  answer: (url: URL) => Answer | undefined = () => undefined,
): Promise<StaticPage> {
  const index = join(DIST, "index.html");
  if (!existsSync(index)) {
    throw new Error("there is no `dist`: run `npm run build`");
  }
  const html = readFileSync(index, "utf8")
    .replaceAll("__QUALITYTRACE_PREFIX__", "")
    .replaceAll("__QUALITYTRACE_NONCE__", NONCE);
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname.startsWith("/api/")) {
      const found = answer(url);
      if (found !== undefined) {
        send(request, response, found);
      }
      return;
    }
    const file = join(DIST, url.pathname);
    const isFile = extname(url.pathname) !== "" && file.startsWith(DIST) && existsSync(file);
    response.setHeader("content-security-policy", POLICY);
    response.setHeader("content-type", isFile ? (TYPES[extname(file)] ?? "text/plain") : "text/html");
    response.end(isFile ? readFileSync(file) : html);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, close };
}

/** With zstd where the browser accepts it, as the server does. */
function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, contentType, body, headers }: Answer,
): void {
  const isZstd = String(request.headers["accept-encoding"] ?? "").includes("zstd") && body.length > 1024;
  response.writeHead(status, {
    "content-type": contentType,
    ...headers,
    ...(isZstd && { "content-encoding": "zstd" }),
  });
  response.end(isZstd ? zstd(body) : body);
}

const compressed = new WeakMap<Buffer, Buffer>();

/** Compresses once: the server keeps the columns compressed. */
function zstd(body: string | Buffer): Buffer {
  if (typeof body === "string") {
    return zstdCompressSync(body);
  }
  const known = compressed.get(body) ?? zstdCompressSync(body);
  compressed.set(body, known);
  return known;
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
  readonly columns: Buffer;
  /** The spans with an id. */
  readonly span?: (id: string) => components["schemas"]["SpanCopies"];
  readonly select?: (
    selector: string,
  ) => { readonly status: 200; readonly body: components["schemas"]["SelectedSpans"] } | ProblemAnswer;
}

/** Gives the answers of the API for one run, whatever its id, on their way to the browser. */
export async function answerRun(page: Page, answers: RunAnswers): Promise<void> {
  await page.route("**/api/v1/**", (route) =>
    route.fulfill(answerOf(new URL(route.request().url()), answers)),
  );
}

/** The answer of the API for one run, whatever its id. */
export function answerOf(url: URL, answers: RunAnswers): Answer {
  const json = (body: unknown, status = 200): Answer => ({
    status,
    contentType: "application/json",
    body: JSON.stringify(body),
  });
  const path = url.pathname.replace(/^\/api\/v1/, "");
  const span = /\/trace\/spans\/([0-9a-f]{16})$/.exec(path)?.[1];
  if (path === "/server") {
    return json({ version: "0.1.0", access: "off", login: { oidc: false } });
  }
  if (path === "/me") {
    return json({ name: "ada", role: "admin", projects: [] });
  }
  if (path.endsWith("/trace/columns")) {
    const contentType = "application/vnd.qualitytrace.columns";
    return { status: 200, contentType, body: answers.columns, headers: { etag: '"columns"' } };
  }
  if (span !== undefined && answers.span !== undefined) {
    return json(answers.span(span));
  }
  if (path.endsWith("/trace/select") && answers.select !== undefined) {
    const { status, body } = answers.select(url.searchParams.get("q") ?? "");
    return json(body, status);
  }
  return /^\/runs\/[^/]+$/.test(path)
    ? json(answers.run)
    : json({ code: "not-found", title: "Not found", detail: "this case has no such answer" }, 404);
}
