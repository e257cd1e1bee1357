import { describe, expect, it } from "vitest";
import { FLAG, hexId, nameOf, serviceOf } from "./columns.ts";
import { columnsOf, cutName, fileTraces, type PlacedTrace } from "./fromOtlp.ts";
import { attributeOf, detailsOf, OtlpError, readSpans } from "./otlp.ts";

const START = 1_763_500_000_123_456_789n;

interface Given {
  readonly id: number;
  readonly parent?: number;
  readonly at?: number;
  readonly for?: number;
  readonly [key: string]: unknown;
}

const hex = (id: number) => id.toString(16).padStart(16, "0");

function span({ id, parent, at = 0, for: length = 10, ...rest }: Given): object {
  return {
    traceId: "0a".repeat(16),
    spanId: hex(id),
    parentSpanId: parent === undefined ? "" : hex(parent),
    startTimeUnixNano: String(START + BigInt(at)),
    endTimeUnixNano: String(START + BigInt(at + length)),
    name: `span ${id}`,
    ...rest,
  };
}

function resource(spans: readonly object[], service = "shop", instance = "1"): object {
  const attributes = [
    { key: "service.name", value: { stringValue: service } },
    { key: "service.instance.id", value: { stringValue: instance } },
  ];
  return { resource: { attributes }, scopeSpans: [{ scope: { name: "lib", version: "2" }, spans }] };
}

function placed(...resourceSpans: readonly object[]): PlacedTrace {
  const [trace] = fileTraces(JSON.stringify({ resourceSpans }));
  return columnsOf(trace?.spans ?? []);
}

const names = ({ columns }: PlacedTrace) =>
  Array.from({ length: columns.count }, (_, at) => nameOf(columns, at));

describe("columns of a file", () => {
  it("are in tree order, siblings by start and then by id", () => {
    const trace = placed(
      resource([
        span({ id: 5, parent: 1, at: 7 }),
        span({ id: 4, parent: 1, at: 7 }),
        span({ id: 3, parent: 2, at: 2 }),
        span({ id: 2, parent: 1, at: 1 }),
        span({ id: 1, for: 100 }),
      ]),
    );
    expect(names(trace)).toEqual(["span 1", "span 2", "span 3", "span 4", "span 5"]);
    expect([...trace.columns.end]).toEqual([5, 3, 3, 4, 5]);
    expect([...trace.columns.depth]).toEqual([0, 1, 2, 1, 1]);
    expect(hexId(trace.columns, 3)).toBe(hex(4));
    expect(serviceOf(trace.columns, 0)).toBe("shop");
    expect(trace.columns.processes).toEqual([{ service: 0, name: "1" }]);
  });

  it("keep every nanosecond behind the start of the trace", () => {
    const { columns } = placed(
      resource([span({ id: 1, for: 3 }), span({ id: 2, parent: 1, at: 1, for: 1 })]),
    );
    expect(columns.startNs).toBe(START);
    expect([...columns.start]).toEqual([0, 1]);
    expect([...columns.duration]).toEqual([3, 1]);
    expect(columns.spanNs).toBe(3);
  });

  it("mark errors, events, links, orphans and clocks", () => {
    const trace = placed(
      resource([span({ id: 1, for: 100, status: { code: "STATUS_CODE_ERROR" }, events: [{}], links: [{}] })]),
      resource(
        [
          span({ id: 2, parent: 1, at: 50, for: 100, status: { code: 1 } }),
          span({ id: 3, parent: 77, at: 60 }),
        ],
        "other",
      ),
    );
    const [first, second, third] = trace.columns.flags;
    expect(first).toBe(FLAG.error | FLAG.events | FLAG.links);
    expect(second).toBe(FLAG.ok | FLAG.clock);
    expect(third).toBe(FLAG.orphan);
  });

  it("break circles at the earliest span", () => {
    const trace = placed(
      resource([
        span({ id: 1, parent: 3, at: 9 }),
        span({ id: 2, parent: 1, at: 4 }),
        span({ id: 3, parent: 2, at: 6 }),
        span({ id: 4, parent: 4, at: 20 }),
        span({ id: 5, parent: 1, at: 21 }),
      ]),
    );
    expect(names(trace)).toEqual(["span 2", "span 3", "span 1", "span 5", "span 4"]);
    expect([...trace.columns.depth]).toEqual([0, 1, 2, 3, 0]);
    expect((trace.columns.flags[0] ?? 0) & FLAG.orphan).toBe(FLAG.orphan);
  });

  it("drop spans that came twice, and keep others with the same id as leaves", () => {
    const twice = span({ id: 2, parent: 1, at: 1 });
    const trace = placed(
      resource([
        span({ id: 1 }),
        twice,
        twice,
        span({ id: 3, parent: 2, at: 2 }),
        span({ id: 2, parent: 1, at: 5, name: "other" }),
      ]),
    );
    expect(names(trace)).toEqual(["span 1", "span 2", "span 3", "other"]);
    expect([...trace.columns.end]).toEqual([4, 3, 3, 4]);
  });

  it("survive negative durations, missing times and values of other types", () => {
    const trace = placed(
      resource([
        span({ id: 1, for: -5 }),
        span({ id: 2, endTimeUnixNano: "18446744073709551615" }),
        span({
          id: 3,
          startTimeUnixNano: Number(START),
          name: 7,
          kind: "SPAN_KIND_CLIENT",
          attributes: "none",
          status: 3,
        }),
      ]),
    );
    expect(trace.columns.count).toBe(3);
    expect([...trace.columns.duration].some((it) => it < 0)).toBe(true);
    expect(Number.isFinite(trace.columns.spanNs)).toBe(true);
    expect([...trace.columns.kind]).toContain(3);
  });

  it("go 20,000 levels deep", () => {
    const deep = Array.from({ length: 20_000 }, (_, at) =>
      span({ id: at + 1, ...(at === 0 ? {} : { parent: at }), at }),
    );
    const { columns } = placed(resource(deep));
    expect(columns.depth.at(-1)).toBe(19_999);
    expect(columns.end[0]).toBe(20_000);
  });

  it("cut long names on the boundary of a character", () => {
    expect(cutName("short")).toBe("short");
    const name = cutName("ü".repeat(2000));
    expect(name.endsWith("ü…")).toBe(true);
    expect(new TextEncoder().encode(name).length).toBeLessThanOrEqual(1024);
    expect(cutName("ü".repeat(512))).toBe("ü".repeat(512));
  });
});

describe("a file", () => {
  it("may have a document on each line, the last one cut off", () => {
    const line = (id: number) => JSON.stringify({ resourceSpans: [resource([span({ id })])] });
    expect(readSpans(`${line(1)}\n\n${line(2)}\n${line(3).slice(0, 40)}`)).toHaveLength(2);
    expect(readSpans(`[${line(1)},${line(2)}]`)).toHaveLength(2);
  });

  it("may have several traces: the largest is the first", () => {
    const other = { ...span({ id: 9 }), traceId: "0b".repeat(16) };
    const text = JSON.stringify({ resourceSpans: [resource([other, span({ id: 1 }), span({ id: 2 })])] });
    expect(fileTraces(text).map((it) => it.spans.length)).toEqual([2, 1]);
  });

  it("may have ids in Base64", () => {
    const encoded = { ...span({ id: 1 }), spanId: btoa("\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007") };
    expect(readSpans(JSON.stringify({ resourceSpans: [resource([encoded])] }))[0]?.id).toBe(
      "0001020304050607",
    );
  });

  it.each([
    ["{", "notJson"],
    ["", "notJson"],
    ["7", "noSpans"],
    ["[null]", "noSpans"],
    ['{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"0000000000000000"}]}]}]}', "noSpans"],
  ])("%j is refused: %s", (text, reason) => {
    expect(() => readSpans(text)).toThrow(OtlpError);
    expect(() => readSpans(text)).toThrow(reason);
  });
});

it("the details of a span have their types, and bounded depth", () => {
  let deep: object = { stringValue: "inside" };
  for (let level = 0; level < 100; level += 1) {
    deep = { arrayValue: { values: [deep] } };
  }
  const [raw] = readSpans(
    JSON.stringify({
      resourceSpans: [
        resource([
          span({
            id: 1,
            attributes: [
              { key: "n", value: { intValue: "42" } },
              { key: "big", value: { intValue: "9007199254740993" } },
              { key: "list", value: { arrayValue: { values: [{ boolValue: true }] } } },
              { key: "map", value: { kvlistValue: { values: [{ key: "k", value: { doubleValue: 1.5 } }] } } },
              { key: "deep", value: deep },
              { key: 7 },
            ],
            events: [
              { name: "e", timeUnixNano: "5", attributes: [{ key: "x", value: { stringValue: "y" } }] },
            ],
          }),
        ]),
      ],
    }),
  );
  if (raw === undefined) {
    throw new Error("the span is missing");
  }
  const details = detailsOf(raw);
  const values = Object.fromEntries(details.attributes.map((it) => [it.key, it.value]));
  expect(values).toMatchObject({ n: 42, big: "9007199254740993", list: [true], map: { k: 1.5 } });
  expect(JSON.stringify(values.deep)).toContain("…");
  expect(details.events).toEqual([
    { name: "e", time: "5", attributes: [{ key: "x", type: "string", value: "y" }] },
  ]);
  expect(details.resource[0]).toEqual({ key: "service.name", type: "string", value: "shop" });
  expect(attributeOf(raw, "service.name")).toBe("shop");
  expect(attributeOf(raw, "none")).toBeUndefined();
});
