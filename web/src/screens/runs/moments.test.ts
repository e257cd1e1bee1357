import { expect, it } from "vitest";
import { hasFilter, localOf, momentOf } from "./moments.ts";

it("reads moments and nothing else", () => {
  expect(momentOf("2026-11-15T02:00:00Z")).toBe("2026-11-15T02:00:00.000Z");
  expect(momentOf("2026-11-15T02:00:00+02:00")).toBe("2026-11-15T00:00:00.000Z");
  expect(momentOf("yesterday")).toBeUndefined();
  expect(momentOf(undefined)).toBeUndefined();
});

it("gives back the local moment that the form had", () => {
  for (const local of ["2026-11-15T02:00", "2026-07-01T23:59"]) {
    expect(localOf(momentOf(local))).toBe(local);
  }
  expect(localOf("soon")).toBe("");
});

it("a cursor is not a filter", () => {
  expect(hasFilter({ cursor: "x" })).toBe(false);
  expect(hasFilter({ verdict: "failed" })).toBe(true);
});
