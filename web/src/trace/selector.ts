/** Selectors that the page writes for the reader. */

import type { SpanAttribute } from "./source.ts";

/** Where an attribute is: on the span, or on its resource. */
export type Place = "attr:" | "resource.";

/** A longer value is not written into a selector. */
const VALUE_CHARS_MAX = 500;
/** A name that needs no quotes. */
const PLAIN_NAME = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/;
const NUMBER = /^-?\d+(\.\d+)?$/;

/** Returns the selector of all spans with this value; null where the language has none for it. */
export function selectorOf(place: Place, { key, type, value }: SpanAttribute): string | null {
  const literal = literalOf(type, value);
  if (literal === null || key === "" || (place === "resource." && !PLAIN_NAME.test(key))) {
    return null;
  }
  return `span[${place}${PLAIN_NAME.test(key) ? key : quoted(key)}=${literal}]`;
}

function literalOf(type: string, value: unknown): string | null {
  switch (type) {
    case "string":
      return typeof value === "string" && value.length <= VALUE_CHARS_MAX ? quoted(value) : null;
    case "bool":
      return String(value);
    case "int":
    case "double":
      return NUMBER.test(String(value)) ? String(value) : null;
    default:
      return null;
  }
}

/** Writes a text of a selector: in double quotes, on one line, and without a character that could not be seen. */
function quoted(text: string): string {
  const escaped = text.replace(/["\\]/g, "\\$&");
  return `"${escaped.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, escapeOf)}"`;
}

function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff
    ? `\\U${code.toString(16).padStart(8, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
}
