import { expect, it } from "vitest";
import { KeySequence, SEQUENCE_MS } from "./keys.ts";

const PLAIN = { hasModifier: false, isTyping: false };

function typed(...presses: ReadonlyArray<readonly [string, number]>): Array<string | null> {
  const keys = new KeySequence();
  return presses.map(([key, atMs]) => keys.press({ key, atMs, ...PLAIN }));
}

it.each([
  [[["/", 0]], ["search"]],
  [[["?", 0]], ["help"]],
  [
    [
      ["g", 0],
      ["t", 100],
    ],
    [null, "tests"],
  ],
  [
    [
      ["g", 0],
      ["r", SEQUENCE_MS + 1],
    ],
    [null, null],
  ],
  [[["t", 0]], [null]],
  [
    [
      ["g", 0],
      ["g", 10],
      ["s", 20],
    ],
    [null, null, "suites"],
  ],
  [
    [
      ["g", 0],
      ["x", 10],
      ["t", 20],
    ],
    [null, null, null],
  ],
  [
    [
      ["g", 0],
      ["/", 10],
    ],
    [null, "search"],
  ],
] as Array<[Array<[string, number]>, Array<string | null>]>)("%j", (presses, expected) => {
  expect(typed(...presses)).toEqual(expected);
});

it("does nothing while the reader types, and with a modifier", () => {
  const keys = new KeySequence();
  expect(keys.press({ key: "/", atMs: 0, hasModifier: false, isTyping: true })).toBeNull();
  expect(keys.press({ key: "?", atMs: 0, hasModifier: true, isTyping: false })).toBeNull();
  keys.press({ key: "g", atMs: 0, ...PLAIN });
  keys.press({ key: "c", atMs: 1, hasModifier: true, isTyping: false });
  expect(keys.press({ key: "t", atMs: 2, ...PLAIN })).toBeNull();
});

it("a key behind `g` belongs to the sequence, whatever it is", () => {
  const keys = new KeySequence();
  expect(keys.isPending(0)).toBe(false);
  keys.press({ key: "g", atMs: 0, ...PLAIN });
  expect(keys.isPending(10)).toBe(true);
  expect(keys.isPending(SEQUENCE_MS + 1)).toBe(false);
  keys.press({ key: "w", atMs: 10, ...PLAIN });
  expect(keys.isPending(20)).toBe(false);
});
