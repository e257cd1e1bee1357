/** The parts of a test document that the first run explains. The document is what the server sent; unknown parts are passed over. */

export type PartKind = "trigger" | "settle" | "spec" | "claim";

export interface TestPart {
  readonly kind: PartKind;
  readonly text: string;
}

const PARTS_MAX = 40;

type Fields = Readonly<Record<string, unknown>>;

/** Returns the request, the waiting, and what must hold, in the order of the document. */
export function partsOf(document: { readonly spec?: unknown }): readonly TestPart[] {
  const spec = fields(document.spec);
  const request = fields(fields(spec.trigger).httpRequest);
  const settle = fields(spec.settle);
  const waits = Object.entries(settle).filter((it): it is [string, string] => typeof it[1] === "string");
  const parts: TestPart[] = [
    ...part("trigger", `${text(request.method) || "GET"} ${text(request.url)}`, text(request.url) !== ""),
    ...part("settle", waits.map(([key, value]) => `${key} ${value}`).join(", "), waits.length > 0),
    ...list(spec.specs).flatMap((it) => part("spec", text(fields(it).name) || text(fields(it).selector))),
    ...list(spec.trace).flatMap((it) =>
      part("claim", text(it) || text(fields(it).name) || text(fields(it).claim)),
    ),
  ];
  return parts.slice(0, PARTS_MAX);
}

function part(kind: PartKind, value: string, isThere = value !== ""): TestPart[] {
  return isThere ? [{ kind, text: value }] : [];
}

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
