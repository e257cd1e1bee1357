/** The values of a span as text. */

/** Deeper values are shown as `…`. */
const DEPTH_MAX = 12;

/** Writes a value as text: texts as they are, the others as JSON. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(bounded(value, DEPTH_MAX)) ?? "");
}

function bounded(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null) {
    return typeof value === "bigint" ? String(value) : value;
  }
  if (depth === 0) {
    return "…";
  }
  return Array.isArray(value)
    ? value.map((it) => bounded(it, depth - 1))
    : Object.fromEntries(Object.entries(value).map(([key, it]) => [key, bounded(it, depth - 1)]));
}
