/** The values of a span as text. */

/** Deeper values are shown as `…`. */
const DEPTH_MAX = 12;

/** Writes a value as text: texts as they are, the others as JSON. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(bounded(value, DEPTH_MAX)) ?? "");
}

/** The word for the type of a value; texts have none. */
export function typeWord(value: unknown): "number" | "boolean" | "list" | "object" | "null" | null {
  if (value === null || value === undefined) {
    return "null";
  }
  if (Array.isArray(value)) {
    return "list";
  }
  switch (typeof value) {
    case "number":
    case "bigint":
      return "number";
    case "boolean":
      return "boolean";
    case "object":
      return "object";
    default:
      return null;
  }
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
