import { expect, it } from "vitest";
import { attributeValues, numbered } from "./attribute.ts";

const WORDS = { others: "others", changed: "it changed" };

it("reads the numbers of the server", () => {
  const spans = btoa(String.fromCharCode(0, 0, 1, 0, 0xff, 0xff, 0xfe, 0xff));
  const read = attributeValues({ values: ["a", "b"], spans }, 4, WORDS);
  const values = [0, 1, 2, 3].map((span) => read.value(read.number(span)));
  expect(values).toEqual(["a", "b", null, "others"]);
});

it("refuses the values of another state of the trace", () => {
  expect(() => attributeValues({ values: [], spans: btoa("ab") }, 2, WORDS)).toThrow("it changed");
});

it("numbers equal values alike", () => {
  const values = ["a", null, "a", "b"];
  const read = numbered(4, (span) => values[span] ?? null);
  expect([0, 1, 2, 3].map((span) => read.value(read.number(span)))).toEqual(values);
  expect(read.number(0)).toBe(read.number(2));
});
