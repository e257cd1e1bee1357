/**
 * Checks the licences of all packages that become part of the page, and writes their notices into `dist/licences.txt`.
 *
 * These are the packages of the lockfile that are not only for development, at the versions that are installed.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DIST, WEB } from "./dist.ts";

const ALLOWED: ReadonlySet<string> = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "Unlicense",
]);
const NOTICE = /^(licen[cs]e|copying|notice|unlicense)/i;

interface Locked {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
}

const lock = JSON.parse(readFileSync(join(WEB, "package-lock.json"), "utf8")) as {
  packages: Record<string, Locked>;
};
const runtime = Object.entries(lock.packages).filter(
  ([path, it]) => path !== "" && it.dev !== true && it.devOptional !== true,
);
const refused: string[] = [];
const notices: string[] = [];
for (const [path, locked] of runtime) {
  const folder = join(WEB, path);
  const manifestPath = join(folder, "package.json");
  if (!existsSync(manifestPath)) {
    if (locked.optional !== true) {
      refused.push(`${path} is not installed`);
    }
    continue;
  }
  const { name, version, license } = JSON.parse(readFileSync(manifestPath, "utf8")) as {
    name: string;
    version: string;
    license?: unknown;
  };
  const word = typeof license === "string" ? license : "none";
  if (!isAllowed(word)) {
    refused.push(`${name} ${version} has the licence ${word}`);
  }
  const texts = readdirSync(folder)
    .filter((file) => NOTICE.test(file))
    .sort()
    .map((file) => readFileSync(join(folder, file), "utf8").trim());
  notices.push([`${name} ${version}`, `Licence: ${word}`, ...texts].join("\n\n"));
}
if (refused.length > 0) {
  console.error(`${refused.join("\n")}\nallowed: ${[...ALLOWED].sort().join(", ")}`);
  process.exitCode = 1;
} else {
  mkdirSync(DIST, { recursive: true });
  writeFileSync(join(DIST, "licences.txt"), `${notices.sort().join(`\n\n${"-".repeat(80)}\n\n`)}\n`);
  console.log(`${notices.length} packages, all with an allowed licence`);
}

/** Whether an SPDX expression is allowed: one alternative of it is. */
function isAllowed(expression: string): boolean {
  return expression
    .replace(/^\(|\)$/g, "")
    .split(" OR ")
    .some((alternative) => alternative.split(" AND ").every((word) => ALLOWED.has(word.trim())));
}
