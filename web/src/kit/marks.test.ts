import { describe, expect, it } from "vitest";
import { cut, type Layout, pieces, visible } from "./marks.ts";

describe("marks", () => {
  const cases: ReadonlyArray<readonly [string, Layout, string]> = [
    ["GET /cart", "line", "GET /cart"],
    ["a\nb\tc", "line", "a[LF]b[TAB]c"],
    ["a\nb\tc", "block", "a\nb\tc"],
    ["a\r\nb\rc", "block", "a\r\nb[CR]c"],
    ["\u001b[2Jx", "block", "[ESC][2Jx"],
    ["\u009b", "line", "[U+009B]"],
    ["x\u202ey\u2066z\u2069", "line", "x[RLO]y[LRI]z[PDI]"],
    ["a\u200bb\ufeffc\u2060", "line", "a[ZWSP]b[BOM]c[WJ]"],
    ["pay\u200dpal", "line", "pay[ZWJ]pal"],
    ["👩\u200d💻 نامه\u200cای", "line", "👩\u200d💻 نامه\u200cای"],
    ["\u{e0041}", "line", "[U+E0041]"],
    ["\ud800", "line", "[U+D800]"],
    ["<img src=x onerror=alert(1)>", "line", "<img src=x onerror=alert(1)>"],
    ["", "line", ""],
  ];
  it.each(cases)("%j as a %s", (text, layout, expected) => {
    const shown = pieces(text, layout).map((piece) => (piece.mark === null ? piece.text : `[${piece.mark}]`));
    expect(shown.join("")).toBe(expected);
  });

  it("loses no character", () => {
    const text = Array.from({ length: 0x300 }, (_, code) => String.fromCharCode(code)).join("");
    expect(
      pieces(text, "line")
        .map((piece) => piece.text)
        .join(""),
    ).toBe(text);
  });

  it("writes marks out in attributes", () => {
    expect(visible("a\u202eb")).toBe("a⟨RLO⟩b");
  });
});

describe("cut", () => {
  it.each([
    ["abc", 3, "abc", 0],
    ["abcd", 3, "abc", 1],
    ["ab💻c", 3, "ab", 3],
    ["", 3, "", 0],
  ] as const)("%j after %d", (text, max, head, rest) => {
    expect(cut(text, max)).toEqual({ head, rest });
  });
});
