/** What the files keep: who imports whom, who fetches, how long they are. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL(".", import.meta.url));
const LINES_MAX = 400;

/** The folders that the files of a folder may import from, besides their own. */
const FLOORS: Readonly<Record<string, readonly string[]>> = {
  api: [],
  kit: ["api"],
  verdict: ["api", "kit"],
  trace: ["api", "kit"],
  screens: ["api", "kit", "verdict", "trace"],
};

interface SourceFile {
  readonly path: string;
  readonly text: string;
}

const files: SourceFile[] = readdirSync(ROOT, { recursive: true, encoding: "utf8" })
  .filter((path) => /\.(tsx?|css)$/.test(path) && !path.endsWith("schema.d.ts"))
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));

const code = files.filter(({ path }) => /\.tsx?$/.test(path) && !path.includes(".test."));

it("reads the files", () => {
  expect(code.length).toBeGreaterThan(50);
});

it("a folder imports from lower floors only", () => {
  const wrong = code.flatMap(({ path, text }) => {
    const folder = path.split("/")[0] ?? "";
    const allowed = FLOORS[folder];
    const imported = [...text.matchAll(/from "\.\.\/(?:\.\.\/)?([a-z]+)\//g)].map((it) => it[1] ?? "");
    const depth = path.split("/").length;
    return allowed === undefined || depth < 2
      ? []
      : imported
          .filter((it) => it in FLOORS && it !== folder && !allowed.includes(it))
          .map((it) => `${path} imports from ${it}`);
  });
  expect(wrong).toEqual([]);
});

it("only `api` fetches", () => {
  const fetching = code.filter(({ text }) => /\bfetch\(|XMLHttpRequest|EventSource|WebSocket/.test(text));
  expect(fetching.map(({ path }) => path.split("/")[0])).toEqual(fetching.map(() => "api"));
  expect(fetching.length).toBeGreaterThan(0);
});

it("the trace view needs React in `*.tsx` only", () => {
  const wrong = code.filter(
    ({ path, text }) =>
      path.startsWith("trace/") && path.endsWith(".ts") && /from "(react|@tanstack|react-aria)/.test(text),
  );
  expect(wrong.map(({ path }) => path)).toEqual([]);
});

it("text becomes text nodes, and is never read as markup", () => {
  const markup = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/;
  expect(code.filter(({ text }) => markup.test(text)).map(({ path }) => path)).toEqual([]);
});

it("files are short", () => {
  const long = files.filter(({ text }) => text.split("\n").length > LINES_MAX);
  expect(long.map(({ path }) => path)).toEqual([]);
});

it("colours are in one file", () => {
  const sheets = files.filter(({ path }) => path.endsWith(".css") && path !== "kit/tokens.css");
  const coloured = sheets.filter(({ text }) => /#[0-9a-f]{3,8}\b/i.test(text));
  expect(coloured.map(({ path }) => path)).toEqual([]);
});
