/** Traces for the cases of the trace view: a shop, a hostile one, and large ones. */

import type { Columns } from "../src/trace/columns.ts";
import { hexId } from "../src/trace/columns.ts";
import { type ColumnsSpan, writeColumns } from "../src/trace/columns-writer.ts";

const START = 1_763_500_000_000_000_000n;
const TRACE = "ab".repeat(16);

interface Attributes {
  readonly [key: string]: string | number | boolean;
}

interface ShopSpan {
  readonly id: number;
  readonly parent: number | null;
  readonly service: string;
  readonly name: string;
  readonly kind?: number;
  /** In milliseconds from the start of the trace. */
  readonly at: number;
  readonly for: number;
  readonly error?: string;
  readonly attributes?: Attributes;
  readonly events?: ReadonlyArray<readonly [name: string, at: number, attributes: Attributes]>;
  readonly links?: readonly number[];
}

export function spanId(number: number): string {
  return (0xc0ffee00 + number).toString(16).padStart(16, "0");
}

/** An order of a shop: the statement for the stock comes twelve times, and a payment is tried again. */
export function shopSpans(): ShopSpan[] {
  const spans: ShopSpan[] = [
    {
      id: 1,
      parent: null,
      service: "gateway",
      name: "POST /orders",
      kind: 2,
      at: 0,
      for: 34.8,
      attributes: {
        "http.request.method": "POST",
        "http.route": "/orders",
        "http.response.status_code": 201,
        "user_agent.original": "qualitytrace",
      },
    },
    {
      id: 2,
      parent: 1,
      service: "gateway",
      name: "POST orders",
      kind: 3,
      at: 1.1,
      for: 30.2,
      attributes: { "server.address": "orders", "server.port": 8080 },
    },
    {
      id: 3,
      parent: 2,
      service: "orders",
      name: "POST /orders",
      kind: 2,
      at: 2,
      for: 27.9,
      attributes: { "http.route": "/orders" },
    },
    { id: 4, parent: 3, service: "orders", name: "check stock", kind: 1, at: 2.6, for: 11.2 },
  ];
  for (let item = 0; item < 12; item += 1) {
    spans.push({
      id: 10 + item,
      parent: 4,
      service: "orders",
      name: "SELECT stock",
      kind: 3,
      at: 2.9 + item * 0.9,
      for: 0.4 + (item % 4) * 0.1,
      attributes: { "db.system.name": "postgresql", "db.query.text": "SELECT qty FROM stock WHERE sku = $1" },
    });
  }
  spans.push(
    {
      id: 30,
      parent: 3,
      service: "orders",
      name: "POST payments",
      kind: 3,
      at: 14.2,
      for: 6.4,
      error: "503",
      attributes: { "http.response.status_code": 503 },
      events: [
        ["exception", 20.4, { "exception.type": "Unavailable", "exception.message": "no healthy upstream" }],
      ],
    },
    {
      id: 31,
      parent: 30,
      service: "payments",
      name: "POST /charges",
      kind: 2,
      at: 14.9,
      for: 5.2,
      error: "card provider does not answer",
      attributes: { "http.route": "/charges" },
    },
    {
      id: 32,
      parent: 3,
      service: "orders",
      name: "POST payments",
      kind: 3,
      at: 21,
      for: 6.8,
      attributes: { "http.response.status_code": 200, "http.request.resend_count": 1 },
    },
    {
      id: 33,
      parent: 32,
      service: "payments",
      name: "POST /charges",
      kind: 2,
      at: 21.6,
      for: 6.1,
      attributes: { "http.route": "/charges" },
    },
    {
      id: 34,
      parent: 33,
      service: "payments",
      name: "INSERT charges",
      kind: 3,
      at: 22,
      for: 1.9,
      attributes: { "db.system.name": "postgresql" },
    },
    {
      id: 35,
      parent: 3,
      service: "orders",
      name: "orders publish",
      kind: 4,
      at: 28.4,
      for: 0.8,
      attributes: { "messaging.system": "nats" },
    },
    {
      id: 36,
      parent: 35,
      service: "mailer",
      name: "orders process",
      kind: 5,
      at: 29.6,
      for: 38,
      links: [35],
      attributes: { "messaging.system": "nats" },
      events: [
        ["template rendered", 44, { template: "order-confirmation" }],
        ["sent", 66, {}],
      ],
    },
    { id: 37, parent: 36, service: "mailer", name: "render", kind: 1, at: 30.2, for: 14 },
    { id: 38, parent: 36, service: "mailer", name: "SMTP send", kind: 3, at: 45, for: 21.5 },
    { id: 39, parent: 99, service: "audit", name: "append", kind: 2, at: 31, for: 1.2 },
  );
  return spans;
}

/** The shop's trace as a document of OTLP. */
export function shopOtlp(spans: readonly ShopSpan[] = shopSpans()): string {
  const services = [...new Set(spans.map((it) => it.service))];
  const resourceSpans = services.map((service) => ({
    resource: {
      attributes: attributes({
        "service.name": service,
        "service.instance.id": `${service}-7d9f`,
        "service.version": "1.4.2",
      }),
    },
    scopeSpans: [
      {
        scope: { name: "shop", version: "0.3.0" },
        spans: spans.filter((it) => it.service === service).map(otlpSpan),
      },
    ],
  }));
  return JSON.stringify({ resourceSpans });
}

function otlpSpan(span: ShopSpan): object {
  return {
    traceId: TRACE,
    spanId: spanId(span.id),
    parentSpanId: span.parent === null ? "" : spanId(span.parent),
    name: span.name,
    kind: span.kind ?? 1,
    startTimeUnixNano: nanos(span.at),
    endTimeUnixNano: nanos(span.at + span.for),
    attributes: attributes(span.attributes ?? {}),
    events: (span.events ?? []).map(([name, at, its]) => ({
      name,
      timeUnixNano: nanos(at),
      attributes: attributes(its),
    })),
    links: (span.links ?? []).map((id) => ({ traceId: TRACE, spanId: spanId(id) })),
    status: span.error === undefined ? {} : { code: 2, message: span.error },
  };
}

function attributes(values: Attributes): object[] {
  return Object.entries(values).map(([key, value]) => ({
    key,
    value:
      typeof value === "string"
        ? { stringValue: value }
        : typeof value === "boolean"
          ? { boolValue: value }
          : { intValue: String(value) },
  }));
}

function nanos(ms: number): string {
  return String(START + BigInt(Math.round(ms * 1e6)));
}

/** A trace that wants to break the page: markup, directions, size, depth, circles, clocks. */
export function hostileOtlp(): string {
  const names = [
    "<img src=x onerror=\"document.title='broken'\"><script>alert(1)</script>",
    "left\u202eright\u2066 zero\u200bwidth \u0000\u001b[31m",
    "مرحبا بالعالم שלום",
    "x".repeat(100_000),
    "",
  ];
  const spans: object[] = names.map((name, at) => ({
    ...raw(1000 + at, 0, at, 40),
    name,
    attributes: [{ key: name, value: { stringValue: name } }],
  }));
  spans.push({
    ...raw(2000, 0, 3, 30),
    name: "a large value",
    attributes: attributes({ huge: `<b>${"y\u202e".repeat(524_288)}` }),
  });
  spans.push({
    ...raw(2001, 0, 4, 30),
    name: "many attributes",
    attributes: Array.from({ length: 10_000 }, (_, at) => ({
      key: `key.${at}`,
      value: { stringValue: `${at}` },
    })),
  });
  spans.push({ ...raw(2002, 0, 9, -5), name: "ends before it starts" });
  spans.push({ ...raw(2003, 0, 0, 10), name: "far future", endTimeUnixNano: "18446744073709551615" });
  spans.push({
    ...raw(2004, 0, 0, 10),
    name: "deep value",
    attributes: [{ key: "deep", value: { deep: true } }],
  });
  spans.push({ ...raw(2010, 2011, 5, 5), name: "circle a" }, { ...raw(2011, 2010, 6, 5), name: "circle b" });
  spans.push({ ...raw(2012, 2012, 7, 5), name: "its own parent" });
  spans.push({ spanId: 7, name: "no id" }, []);
  for (let depth = 0; depth < 5000; depth += 1) {
    spans.push({
      ...raw(10_000 + depth, depth === 0 ? 0 : 9_999 + depth, 10 + depth * 0.001, 20 - depth * 0.002),
      name: `level ${depth}`,
    });
  }
  const text = JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributes({ "service.name": "<b>hostile</b>\u202e" }) },
        scopeSpans: [{ spans }],
      },
    ],
  });
  return text.replace(DEEP, deepValue(5000));
}

function raw(id: number, parent: number, at: number, length: number): object {
  return {
    traceId: TRACE,
    spanId: spanId(id),
    parentSpanId: parent === 0 ? "" : spanId(parent),
    kind: 1,
    startTimeUnixNano: nanos(at),
    endTimeUnixNano: nanos(at + length),
  };
}

/** Replaced in the text: what writes JSON does not go as deep as what reads it. */
const DEEP = '{"deep":true}';

function deepValue(depth: number): string {
  return `${'{"arrayValue":{"values":['.repeat(depth)}{"stringValue":"inside"}${"]}}".repeat(depth)}`;
}

/** Columns as a file, as the server sends them. */
export function fileOf(columns: Columns): ArrayBuffer {
  const head = {
    names: columns.names,
    services: columns.services,
    processes: columns.processes,
    start: String(columns.startNs),
    duration: columns.spanNs,
  };
  return writeColumns(head, columns.count, (i) => ({
    start: columns.start[i] ?? 0,
    duration: columns.duration[i] ?? 0,
    id: hexId(columns, i),
    end: columns.end[i] ?? 0,
    name: columns.name[i] ?? 0,
    process: columns.process[i] ?? 0,
    service: columns.service[i] ?? 0,
    depth: columns.depth[i] ?? 0,
    kind: columns.kind[i] ?? 0,
    flags: columns.flags[i] ?? 0,
  }));
}

const SERVICES = 20;
const NAMES = 60;
const DEPTH_MAX = 12;

/** Requests one after another and beside each other, with the same shape at every size. Deterministic. */
export function largeColumns(count: number): ArrayBuffer {
  let seed = 7;
  const random = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return seed / 2 ** 32;
  };
  const length = count * 2000;
  const spans: Array<{ start: number; duration: number; end: number; depth: number; pick: number }> = [];
  const open: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const deepest = Math.min(DEPTH_MAX, open.length);
    const depth = i === 0 ? 0 : 1 + Math.floor(random() ** 0.5 * deepest);
    while (open.length > depth) {
      const closed = open.pop();
      const span = spans[closed ?? 0];
      if (span !== undefined) {
        span.end = i;
      }
    }
    const parent = spans[open.at(-1) ?? -1];
    const from =
      parent === undefined
        ? 0
        : parent.depth === 0
          ? (i / count) * length
          : parent.start + random() * parent.duration * 0.5;
    const duration =
      parent === undefined
        ? length
        : parent.depth === 0
          ? 20_000 + random() ** 4 * 4_000_000
          : parent.duration * (0.1 + random() * 0.4);
    spans.push({
      start: from,
      duration: Math.min(duration, length - from),
      end: count,
      depth,
      pick: random(),
    });
    open.push(i);
  }
  const head = {
    names: Array.from({ length: NAMES }, (_, at) => `operation ${at}`),
    services: Array.from({ length: SERVICES }, (_, at) => `service-${at}`),
    processes: Array.from({ length: SERVICES }, (_, at) => ({ service: at, name: `pod-${at}` })),
    duration: length,
  };
  return writeColumns(head, count, (i): ColumnsSpan => {
    const it = spans[i] ?? { start: 0, duration: 0, end: i + 1, depth: 0, pick: 0 };
    const service = Math.floor(it.pick * SERVICES);
    return {
      start: it.start,
      duration: it.duration,
      id: (i + 1).toString(16).padStart(16, "0"),
      end: it.end,
      name: Math.floor(it.pick * 7919) % NAMES,
      service,
      process: service,
      depth: it.depth,
      kind: 1 + (i % 3),
      flags: i % 1009 === 1000 ? 1 : 0,
    };
  });
}
