/** OTLP as JSON, as far as the page reads it: untrusted, so that every field may be missing or of another type. */

import type { SpanAttribute, SpanDetails } from "./source.ts";

/** A larger file is refused: the text and what it parses to are in memory at once. */
export const FILE_BYTES_MAX = 64 * 1024 * 1024;
export const FILE_SPANS_MAX = 500_000;
const VALUE_DEPTH_MAX = 12;

export type Json = Readonly<Record<string, unknown>>;

export interface RawResource {
  readonly attributes: unknown;
  readonly service: string;
  /** What tells the instances of a service apart. */
  readonly process: string;
}

export interface RawSpan {
  readonly json: Json;
  readonly resource: RawResource;
  readonly scope: unknown;
  readonly traceId: string;
  readonly id: string;
  readonly parent: string;
  readonly start: bigint;
  readonly end: bigint;
}

/** A file that has no spans that the page can read. */
export class OtlpError extends Error {
  override readonly name = "OtlpError";
  readonly reason: "notJson" | "noSpans" | "tooLarge" | "tooMany";

  constructor(reason: OtlpError["reason"]) {
    super(reason);
    this.reason = reason;
  }
}

/** Reads a document with `resourceSpans`, a list of them, or a file with one on each line. */
export function readSpans(text: string): RawSpan[] {
  if (text.length > FILE_BYTES_MAX) {
    throw new OtlpError("tooLarge");
  }
  const spans = documents(text).flatMap((document) => spansOf(document));
  if (spans.length === 0) {
    throw new OtlpError("noSpans");
  }
  if (spans.length > FILE_SPANS_MAX) {
    throw new OtlpError("tooMany");
  }
  return spans;
}

function documents(text: string): unknown[] {
  const whole = parsed(text);
  if (whole !== undefined) {
    return Array.isArray(whole) ? whole : [whole];
  }
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const read = lines.map(parsed);
  // The last line may be cut off, where the file was copied while it was written.
  const broken = read.indexOf(undefined);
  if (lines.length === 0 || (broken !== -1 && broken < read.length - 1) || read.length < 2) {
    throw new OtlpError("notJson");
  }
  return read.filter((it) => it !== undefined);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function spansOf(document: unknown): RawSpan[] {
  const found: RawSpan[] = [];
  for (const resourceSpans of listOf(document, "resourceSpans", "resource_spans", "batches")) {
    const resource = resourceOf(objectOf(resourceSpans, "resource"));
    const scopes = listOf(resourceSpans, "scopeSpans", "scope_spans", "instrumentationLibrarySpans");
    for (const scopeSpans of scopes) {
      for (const json of listOf(scopeSpans, "spans")) {
        const span = spanOf(json, resource, objectOf(scopeSpans, "scope"));
        if (span !== null) {
          found.push(span);
        }
      }
    }
  }
  return found;
}

function spanOf(json: unknown, resource: RawResource, scope: unknown): RawSpan | null {
  if (!isObject(json)) {
    return null;
  }
  const id = idOf(json.spanId ?? json.span_id, 8);
  const traceId = idOf(json.traceId ?? json.trace_id, 16);
  if (id === "") {
    return null;
  }
  const start = nanosOf(json.startTimeUnixNano ?? json.start_time_unix_nano);
  return {
    json,
    resource,
    scope,
    traceId,
    id,
    parent: idOf(json.parentSpanId ?? json.parent_span_id, 8),
    start,
    end: nanosOf(json.endTimeUnixNano ?? json.end_time_unix_nano),
  };
}

function resourceOf(resource: unknown): RawResource {
  const attributes = isObject(resource) ? resource.attributes : undefined;
  const values = new Map(namedValues(attributes).map((it) => [it.key, it.value] as const));
  const text = (key: string): string => {
    const value = values.get(key);
    return value === undefined || value === null ? "" : String(value);
  };
  const host = [text("host.name"), text("process.pid")].filter((it) => it !== "").join(" ");
  return { attributes, service: text("service.name"), process: text("service.instance.id") || host };
}

/** Hexadecimal digits in lower case, of an id in hexadecimal or in Base64; empty if it is none, or all zero. */
function idOf(value: unknown, bytes: number): string {
  if (typeof value !== "string") {
    return "";
  }
  const hex =
    /^[0-9a-fA-F]+$/.test(value) && value.length === 2 * bytes ? value.toLowerCase() : ofBase64(value);
  return hex.length === 2 * bytes && !/^0+$/.test(hex) ? hex : "";
}

function ofBase64(value: string): string {
  if (!/^[A-Za-z0-9+/]{10,22}={1,2}$/.test(value)) {
    return "";
  }
  return Array.from(atob(value), (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

/** Nanoseconds as text or as a number; a number has lost its last digits before the page sees it. */
function nanosOf(value: unknown): bigint {
  if (typeof value === "string" && /^\d{1,20}$/.test(value)) {
    return BigInt(value);
  }
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? BigInt(Math.trunc(value)) : 0n;
}

export function nameOfSpan({ json }: RawSpan): string {
  return typeof json.name === "string" ? json.name : "";
}

const KINDS = ["unspecified", "internal", "server", "client", "producer", "consumer"];

/** The kind as its number, written as a number or as the name of the protocol. */
export function kindOf({ json }: RawSpan): number {
  const { kind } = json;
  if (typeof kind === "string") {
    return Math.max(0, KINDS.indexOf(kind.replace(/^SPAN_KIND_/, "").toLowerCase()));
  }
  return typeof kind === "number" && Number.isInteger(kind) && kind >= 0 && kind <= 5 ? kind : 0;
}

/** 0 for unset, 1 for ok, 2 for an error. */
export function statusOf({ json }: RawSpan): number {
  const status = json.status;
  const code = isObject(status) ? status.code : 0;
  if (code === 2 || code === "STATUS_CODE_ERROR" || code === "ERROR") {
    return 2;
  }
  return code === 1 || code === "STATUS_CODE_OK" || code === "OK" ? 1 : 0;
}

export function eventCount({ json }: RawSpan): number {
  return listOf(json, "events").length;
}

export function linkCount({ json }: RawSpan): number {
  return listOf(json, "links").length;
}

export function attributesOf({ json }: RawSpan): SpanAttribute[] {
  return namedValues(json.attributes);
}

/** The value of an attribute of a span, or of its resource; undefined without it. */
export function attributeOf(span: RawSpan, key: string): unknown {
  const lists = [span.json.attributes, span.resource.attributes];
  for (const list of lists) {
    const found = (Array.isArray(list) ? list : []).find((it) => isObject(it) && it.key === key);
    if (isObject(found)) {
      return anyValue(found.value, VALUE_DEPTH_MAX);
    }
  }
  return undefined;
}

export function detailsOf(span: RawSpan): SpanDetails {
  const { json, resource, scope } = span;
  const status = isObject(json.status) ? json.status : null;
  return {
    id: span.id,
    name: nameOfSpan(span),
    kind: KINDS[kindOf(span)] ?? "unspecified",
    service: resource.service === "" ? null : resource.service,
    status: {
      code: ["unset", "ok", "error"][statusOf(span)] ?? "unset",
      message: textOf(status, "message") ?? "",
    },
    start: String(span.start),
    end: String(span.end),
    parentSpanId: span.parent === "" ? null : span.parent,
    attributes: attributesOf(span),
    events: listOf(json, "events").map((it) => {
      const time = isObject(it) ? nanosOf(it.timeUnixNano ?? it.time_unix_nano) : 0n;
      return { name: textOf(it, "name") ?? "", time: String(time), attributes: attributesIn(it) };
    }),
    links: listOf(json, "links").map((it) => {
      return {
        traceId: textOf(it, "traceId") ?? textOf(it, "trace_id"),
        spanId: textOf(it, "spanId") ?? textOf(it, "span_id"),
        attributes: attributesIn(it),
      };
    }),
    resource: namedValues(resource.attributes),
    scope: { name: textOf(scope, "name") ?? "", version: textOf(scope, "version") ?? "" },
  };
}

function attributesIn(value: unknown): SpanAttribute[] {
  return namedValues(isObject(value) ? value.attributes : undefined);
}

function namedValues(attributes: unknown): SpanAttribute[] {
  return (Array.isArray(attributes) ? attributes : []).flatMap((it: unknown) =>
    isObject(it) && typeof it.key === "string"
      ? [{ key: it.key, type: typeOf(it.value), value: anyValue(it.value, VALUE_DEPTH_MAX) }]
      : [],
  );
}

const TYPES: Readonly<Record<string, string>> = {
  stringValue: "string",
  boolValue: "bool",
  intValue: "int",
  doubleValue: "double",
  bytesValue: "bytes",
  arrayValue: "array",
  kvlistValue: "map",
};

/** The type of an `AnyValue`, in the words of the server. */
function typeOf(value: unknown): string {
  const [field] = isObject(value) ? Object.keys(value) : [];
  return (field === undefined ? undefined : TYPES[field]) ?? "empty";
}

/** The value within an `AnyValue`. */
function anyValue(value: unknown, depth: number): unknown {
  if (!isObject(value)) {
    return null;
  }
  if (depth === 0) {
    return "…";
  }
  const [type, inner] = Object.entries(value)[0] ?? ["", null];
  switch (type) {
    case "intValue":
      return typeof inner === "string" && Number.isSafeInteger(Number(inner)) ? Number(inner) : inner;
    case "arrayValue":
      return listOf(inner, "values").map((it) => anyValue(it, depth - 1));
    case "kvlistValue":
      return Object.fromEntries(
        listOf(inner, "values").flatMap((it) =>
          isObject(it) && typeof it.key === "string" ? [[it.key, anyValue(it.value, depth - 1)]] : [],
        ),
      );
    default:
      return inner ?? null;
  }
}

function listOf(value: unknown, ...names: readonly string[]): unknown[] {
  const found = isObject(value) ? names.map((name) => value[name]).find(Array.isArray) : undefined;
  return found ?? [];
}

function objectOf(value: unknown, name: string): Json | null {
  const found = isObject(value) ? value[name] : undefined;
  return isObject(found) ? found : null;
}

function textOf(value: unknown, name: string): string | null {
  const found = isObject(value) ? value[name] : undefined;
  return typeof found === "string" ? found : null;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
