import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** The word that the server replaces by the path prefix in every answer with `index.html`. */
const PREFIX = "__QUALITYTRACE_PREFIX__";

/** The order of the cascade layers. The bundler orders the sheets by its chunks, so each one states it. */
const LAYERS = "@layer reset, tokens, base, kit, verdict, trace, screens;";

const layers: Plugin = {
  name: "layers",
  enforce: "pre",
  transform: {
    filter: { id: /\.css$/ },
    handler: (code) => `${LAYERS}\n${code}`,
  },
};

export default defineConfig({
  plugins: [react(), layers],
  // `light-dark()` and cascade layers are not compiled down.
  build: {
    target: ["chrome123", "firefox121", "safari17.5"],
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
    // An inlined asset would be a `data:` address, and each has to be a file that the server packs.
    assetsInlineLimit: 0,
    // All styles are small, and one sheet keeps the order of the layers.
    cssCodeSplit: false,
    manifest: true,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { hashCharacters: "hex" } },
  },
  experimental: {
    // Only `index.html` knows the prefix. Scripts and styles name each other relative to themselves.
    renderBuiltUrl: (file, { hostType }) => (hostType === "html" ? `${PREFIX}/${file}` : { relative: true }),
  },
});
