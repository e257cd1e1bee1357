import { expect, it } from "vitest";
import { parseSearch, returnPath, stringifySearch, textOf } from "./search.ts";

it("keeps values as text", () => {
  const search = parseSearch("?test=007&verdict=true&q=a%20b&project=");
  expect(search).toEqual({ test: "007", verdict: "true", q: "a b", project: "" });
  expect(textOf(search, "project")).toBeUndefined();
  expect(textOf(search, "test")).toBe("007");
  expect(stringifySearch({ ...search, from: undefined })).toBe("?test=007&verdict=true&q=a+b");
  expect(stringifySearch({})).toBe("");
});

it.each([
  ["/runs?test=a", "/runs?test=a"],
  ["//evil.example", "/"],
  ["/\\evil.example", "/"],
  ["/a\\b", "/"],
  ["/a\tb", "/"],
  ["https://evil.example", "/"],
  ["javascript:alert(1)", "/"],
  [undefined, "/"],
])("returns from the login to %j as %s", (given, expected) => {
  expect(returnPath(given)).toBe(expected);
});
