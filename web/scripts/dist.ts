/** What the build wrote: its files, and which of them a first visit loads. */

import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const WEB: string = fileURLToPath(new URL("..", import.meta.url));
export const DIST: string = join(WEB, "dist");
/** The manifest is moved here: the server packs everything in `dist`. */
export const MANIFEST: string = join(WEB, ".build", "manifest.json");

export interface Chunk {
  readonly file: string;
  readonly isEntry?: boolean;
  readonly imports?: readonly string[];
  readonly css?: readonly string[];
}

export type Manifest = Readonly<Record<string, Chunk>>;

/** The files below a folder, by their paths from it, sorted. */
export function files(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const found = entries
    .filter((it) => it.isFile())
    .map((it) => relative(folder, join(it.parentPath, it.name)));
  return found.sort();
}

export function manifest(): Manifest {
  return JSON.parse(readFileSync(MANIFEST, "utf8")) as Manifest;
}

/** The chunks that the first visit loads, whatever the screen: the entry, and what it imports. */
export function initialChunks(chunks: Manifest): Chunk[] {
  const open = Object.entries(chunks).flatMap(([name, it]) => (it.isEntry === true ? [name] : []));
  const seen = new Set<string>();
  while (open.length > 0) {
    const name = open.pop();
    if (name === undefined || seen.has(name)) {
      continue;
    }
    seen.add(name);
    open.push(...(chunks[name]?.imports ?? []));
  }
  return [...seen].flatMap((name) => chunks[name] ?? []);
}
