import { expect, it } from "vitest";
import { ago, between, dateTime, duration } from "./time.ts";

// The same table as that of the reports of the command.
it.each([
  [0, "0 ns"],
  [1, "1 ns"],
  [999, "999 ns"],
  [1_000, "1 µs"],
  [1_500, "1.5 µs"],
  [12_340, "12.3 µs"],
  [999_499, "999 µs"],
  [999_500, "1 ms"],
  [200_000_000, "200 ms"],
  [1_237_000_000, "1.24 s"],
  [90_000_000_000, "90 s"],
  [1_234_600_000_000, "1235 s"],
  [-1, "–"],
  [Number.NaN, "–"],
])("%d ns is %s", (nanos, expected) => {
  expect(duration(nanos)).toBe(expected);
});

it.each([
  ["2026-11-15T02:00:00.000000000Z", "2026-11-15T02:00:00.001234567Z", 1_234_567],
  ["2026-11-15T02:00:00Z", "2026-11-15T02:00:01Z", 1e9],
  ["2026-11-15T02:00:00Z", null, null],
  [undefined, "2026-11-15T02:00:00Z", null],
  ["never", "2026-11-15T02:00:00Z", null],
])("from %s until %s", (from, until, expected) => {
  expect(between(from, until)).toBe(expected);
});

it.each([
  [3, "just now"],
  [-5, "just now"],
  [59, "59 s ago"],
  [60, "1 min ago"],
  [7_199, "1 h ago"],
  [172_800, "2 d ago"],
])("%d seconds before is %s", (seconds, expected) => {
  const now = Date.parse("2026-11-15T02:00:00Z");
  expect(ago(new Date(now - seconds * 1000).toISOString(), now)).toBe(expected);
});

it("shows an unreadable moment as it is", () => {
  expect(dateTime("soon")).toBe("soon");
  expect(ago("soon", 0)).toBe("–");
});
