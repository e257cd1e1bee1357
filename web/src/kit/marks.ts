/**
 * Splits untrusted text into what is shown as it is and what is shown as a mark.
 *
 * A mark stands for a character that would control something, change the direction of the line, or be invisible. The
 * joiners U+200C and U+200D stay between letters of scripts and emoji, which need them.
 */

export interface TextPiece {
  readonly text: string;
  /** The name of the character, where the piece is a mark. */
  readonly mark: string | null;
}

/** Whether line breaks and tabs are layout, or marks like other control characters. */
export type Layout = "line" | "block";

const NAMES: ReadonlyMap<number, string> = new Map([
  [0x00, "NUL"],
  [0x07, "BEL"],
  [0x08, "BS"],
  [0x09, "TAB"],
  [0x0a, "LF"],
  [0x0d, "CR"],
  [0x1b, "ESC"],
  [0x7f, "DEL"],
  [0xad, "SHY"],
  [0x61c, "ALM"],
  [0x200b, "ZWSP"],
  [0x200c, "ZWNJ"],
  [0x200d, "ZWJ"],
  [0x200e, "LRM"],
  [0x200f, "RLM"],
  [0x2028, "LS"],
  [0x2029, "PS"],
  [0x202a, "LRE"],
  [0x202b, "RLE"],
  [0x202c, "PDF"],
  [0x202d, "LRO"],
  [0x202e, "RLO"],
  [0x2060, "WJ"],
  [0x2066, "LRI"],
  [0x2067, "RLI"],
  [0x2068, "FSI"],
  [0x2069, "PDI"],
  [0xfeff, "BOM"],
]);

/** Ranges of code points that are shown as marks, first and last. */
const HIDDEN: ReadonlyArray<readonly [number, number]> = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0xfffe, 0xffff],
  [0xe0000, 0xe0fff],
];

export function pieces(text: string, layout: Layout): TextPiece[] {
  const found: TextPiece[] = [];
  const points = Array.from(text);
  let plain = "";
  points.forEach((letter, at) => {
    const code = letter.codePointAt(0) ?? 0;
    if (!isMarked(code, points[at - 1], points[at + 1], layout)) {
      plain += letter;
      return;
    }
    if (plain !== "") {
      found.push({ text: plain, mark: null });
      plain = "";
    }
    found.push({ text: letter, mark: markName(code) });
  });
  if (plain !== "") {
    found.push({ text: plain, mark: null });
  }
  return found;
}

/** Returns the text with its marks written out, for attributes such as `title` and `aria-label`. */
export function visible(text: string): string {
  return pieces(text, "line")
    .map((piece) => (piece.mark === null ? piece.text : `⟨${piece.mark}⟩`))
    .join("");
}

/** Cuts after so many characters, and never inside one. */
export function cut(text: string, charsMax: number): { readonly head: string; readonly rest: number } {
  if (text.length <= charsMax) {
    return { head: text, rest: 0 };
  }
  const last = text.charCodeAt(charsMax - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? charsMax - 1 : charsMax;
  return { head: text.slice(0, end), rest: text.length - end };
}

function markName(code: number): string {
  return NAMES.get(code) ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

function isMarked(
  code: number,
  before: string | undefined,
  after: string | undefined,
  layout: Layout,
): boolean {
  if (layout === "block" && (code === 0x0a || code === 0x09)) {
    return false;
  }
  if (layout === "block" && code === 0x0d && after === "\n") {
    return false;
  }
  if ((code === 0x200c || code === 0x200d) && joins(before) && joins(after)) {
    return false;
  }
  return HIDDEN.some(([first, last]) => first <= code && code <= last);
}

/** Whether a joiner beside this character has a purpose: not in ASCII, and not beside another hidden character. */
function joins(letter: string | undefined): boolean {
  const code = letter?.codePointAt(0) ?? 0;
  return code > 0x2ff && !HIDDEN.some(([first, last]) => first <= code && code <= last);
}
