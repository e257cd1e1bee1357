/** The parts of a test document that the first run explains. The document is what the server sent; unknown parts are passed over. */

export type PartKind = "trigger" | "settle" | "spec" | "claim";

export interface TestPart {
  readonly kind: PartKind;
  /** Its name, in words. */
  readonly text: string;
  /** What it states in the language of tests; empty if the text is that already. */
  readonly code: string;
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
    ...part(
      "trigger",
      text(request.url) === "" ? "" : `${text(request.method) || "GET"} ${text(request.url)}`,
    ),
    ...part("settle", waits.map(([key, value]) => `${key} ${value}`).join(", ")),
    ...list(spec.specs).flatMap((it) => named("spec", fields(it), assertions(fields(it)))),
    ...list(spec.trace).flatMap((it) =>
      typeof it === "string" ? part("claim", it) : named("claim", fields(it), text(fields(it).claim)),
    ),
  ];
  return parts.slice(0, PARTS_MAX);
}

/** The spans of a spec, and what is stated of each of them. */
function assertions(spec: Fields): string {
  const stated = list(spec.assertions).map(text);
  return [text(spec.selector), ...stated].filter((it) => it !== "").join("\n");
}

function named(kind: PartKind, { name }: Fields, code: string): TestPart[] {
  return text(name) === "" ? part(kind, code) : part(kind, text(name), code);
}

function part(kind: PartKind, value: string, code = ""): TestPart[] {
  return value === "" ? [] : [{ kind, text: value, code }];
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
