/** Fails if a first visit loads more than it may. The sizes are those of the `.gz` files. */

import { statSync } from "node:fs";
import { join } from "node:path";
import { DIST, files, initialChunks, manifest } from "./dist.ts";

const KB = 1024;
const INITIAL_JS_BYTES_MAX = 250 * KB;
/** All style sheets together, those of the screens included. */
const CSS_BYTES_MAX = 30 * KB;

const script = initialChunks(manifest()).map((it) => it.file);
const styles = files(DIST).filter((it) => it.endsWith(".css"));
const lazy = files(DIST).filter((it) => it.endsWith(".js") && !script.includes(it));

const rows = [
  { what: "initial JavaScript", bytes: bytesOf(script), max: INITIAL_JS_BYTES_MAX },
  { what: "style sheets", bytes: bytesOf(styles), max: CSS_BYTES_MAX },
  { what: "JavaScript of the screens", bytes: bytesOf(lazy), max: null },
];
for (const { what, bytes, max } of rows) {
  const bound = max === null ? "" : ` of ${(max / KB).toFixed(0)} KB`;
  console.log(`${what}: ${(bytes / KB).toFixed(1)} KB${bound} (gzip)`);
}
const broken = rows.filter(({ bytes, max }) => max !== null && bytes > max);
if (broken.length > 0) {
  console.error(`over the budget: ${broken.map((it) => it.what).join(", ")}`);
  process.exitCode = 1;
}

function bytesOf(names: readonly string[]): number {
  return names.map(gzipBytes).reduce((sum, bytes) => sum + bytes, 0);
}

function gzipBytes(name: string): number {
  const path = join(DIST, name);
  return statSync(`${path}.gz`, { throwIfNoEntry: false })?.size ?? statSync(path).size;
}
