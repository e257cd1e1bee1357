/**
 * Writes `.br` and `.gz` next to each file of `dist` that can be compressed, so that the server compresses nothing.
 *
 * `index.html` is left out: the server changes it in every answer. The same input gives the same bytes.
 */

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { DIST, files, MANIFEST } from "./dist.ts";

const COMPRESSIBLE = /\.(css|js|json|map|svg|txt|wasm|woff)$/;
const built = join(DIST, ".vite", "manifest.json");

if (existsSync(built)) {
  mkdirSync(dirname(MANIFEST), { recursive: true });
  renameSync(built, MANIFEST);
  rmSync(dirname(built), { recursive: true });
}

for (const name of files(DIST).filter((it) => COMPRESSIBLE.test(it))) {
  const path = join(DIST, name);
  const bytes = readFileSync(path);
  const brotli = brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_MODE]: name.endsWith(".wasm")
        ? constants.BROTLI_MODE_GENERIC
        : constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  writeFileSync(`${path}.br`, brotli);
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
}
