import { describe, expect, it } from "vitest";
import { type EvidenceValue, groupBars, requiredText, requirements, valueText } from "./evidence.ts";

const number = (text: string): EvidenceValue => ({ number: text });

describe("a value", () => {
  it.each<readonly [EvidenceValue, string]>([
    ["absent", "absent"],
    ["null", "null"],
    [{ boolean: false }, "false"],
    [number("27670116110564327421"), "27670116110564327421"],
    [{ durationNs: 9_000_000 }, "9 ms"],
    [{ durationNs: -89_000_000 }, "−89 ms"],
    [{ text: 'say "x"' }, '"say "x""'],
    [{ json: '{"a":1}' }, '{"a":1}'],
    [{ list: { items: [number("1"), { text: "a" }] } }, '[1, "a"]'],
    [{ list: { items: [number("1")], more: 1200 } }, "[1, and 1,200 more]"],
    [{ anyOf: { items: [{ text: "a" }, "null"] } }, 'one of "a", null'],
    [{ between: { low: number("0"), high: { durationNs: 1000 } } }, "0 to 1 µs"],
  ])("%j is %s", (value, expected) => {
    expect(valueText(value)).toBe(expected);
  });

  it("of a later server is shown as it came", () => {
    expect(valueText({ moment: 1 } as unknown as EvidenceValue)).toBe('{"moment":1}');
  });
});

it.each([
  ["<=", number("1"), "≤ 1"],
  ["not-contains", { text: "a" }, 'not-contains "a"'],
  ["between", { between: { low: number("1"), high: number("2") } }, "between 1 to 2"],
] as const)("requires %s", (operator, expected, text) => {
  expect(requiredText({ subject: "x", operator, expected })).toBe(text);
});

it("an operator without a value is the requirement", () => {
  expect(requiredText({ subject: "x", operator: "exists" })).toBe("exists");
});

it("joins the comparisons of several spans, each value once", () => {
  const at = (spanId: string, found: EvidenceValue | undefined) => ({
    spanId,
    subject: "http.status_code",
    operator: "=",
    expected: number("200"),
    ...(found === undefined ? {} : { found }),
  });
  const other = { subject: "duration", operator: "<", expected: { durationNs: 5 }, found: { durationNs: 9 } };
  const comparisons = [
    at("a", number("500")),
    at("b", number("500")),
    at("c", "absent"),
    at("d", undefined),
    at("e", number("503")),
    other,
  ];
  expect(requirements(comparisons)).toEqual([
    { subject: "http.status_code", expected: "= 200", found: ["500", "absent", "not known"], hasMore: true },
    { subject: "duration", expected: "< 5 ns", found: ["9 ns"], hasMore: false },
  ]);
  expect(requirements([])).toEqual([]);
});

describe("groups", () => {
  const group = (value: EvidenceValue, holds: boolean, ...key: Array<readonly [string, EvidenceValue]>) => ({
    key: key.map(([name, it]) => ({ name, value: it })),
    value,
    spans: 1,
    holds,
  });

  it("have bars in relation to the largest", () => {
    const worst = [
      group(number("12"), false, ["db.query.text", { text: "SELECT 1" }]),
      group(number("3"), true, ["db.query.text", "absent"]),
    ];
    expect(groupBars({ worst, broken: 1 })).toEqual([
      { key: "SELECT 1", value: "12", share: 1, holds: false },
      { key: "db.query.text absent", value: "3", share: 0.25, holds: true },
    ]);
  });

  it("name each part of a key of several parts", () => {
    const worst = [group({ durationNs: 9 }, false, ["name", { text: "GET" }], ["status", number("500")])];
    expect(groupBars({ worst, broken: 1 })[0]?.key).toBe('name "GET", status 500');
  });

  it("without a size have no bar", () => {
    const worst = [group({ text: "a" }, false), group(number("NaN"), false), group(number("0"), false)];
    expect(groupBars({ worst, broken: 3 }).map((it) => it.share)).toEqual([null, null, null]);
  });
});
