import { describe, expect, it } from "vitest";
import { selectorOf } from "./selector.ts";

describe("the selector of a value", () => {
  it.each([
    ["attr:", "http.route", "string", "/cart", 'span[attr:http.route="/cart"]'],
    ["attr:", "not", "string", "x", 'span[attr:not="x"]'],
    ["attr:", "odd name", "string", "x", 'span[attr:"odd name"="x"]'],
    ["attr:", 'q"', "string", "x", 'span[attr:"q\\""="x"]'],
    ["attr:", "path", "string", 'C:\\temp "x"]', 'span[attr:path="C:\\\\temp \\"x\\"]"]'],
    ["attr:", "text", "string", "a\nb\u202ec\u{e0001}", 'span[attr:text="a\\u000ab\\u202ec\\U000e0001"]'],
    ["attr:", "empty", "string", "", 'span[attr:empty=""]'],
    ["attr:", "n", "int", 42, "span[attr:n=42]"],
    ["attr:", "n", "int", "9223372036854775807", "span[attr:n=9223372036854775807]"],
    ["attr:", "n", "double", -0.5, "span[attr:n=-0.5]"],
    ["attr:", "flag", "bool", false, "span[attr:flag=false]"],
    ["resource.", "service.name", "string", "shop", 'span[resource.service.name="shop"]'],
  ] as const)("%s%s of %s", (place, key, type, value, expected) => {
    expect(selectorOf(place, { key, type, value })).toBe(expected);
  });

  it.each([
    ["attr:", "n", "double", 1e300],
    ["attr:", "n", "double", "NaN"],
    ["attr:", "list", "array", [1]],
    ["attr:", "long", "string", "x".repeat(501)],
    ["attr:", "", "string", "x"],
    ["resource.", "odd name", "string", "x"],
  ] as const)("there is none for %s%s of %s", (place, key, type, value) => {
    expect(selectorOf(place, { key, type, value })).toBeNull();
  });
});
