/** Texts of the canvas: untrusted ones with their invisible characters as marks, cut to the room that there is. */

import { cut, visible } from "../../kit/marks.ts";

interface Label {
  readonly text: string;
  readonly width: number;
}

/** The texts whose width is remembered. */
const LABELS_MAX = 4096;
/** No row has room for more. */
const CHARS_MAX = 200;

export class Labels {
  readonly #known = new Map<string, Label>();
  readonly #context: CanvasRenderingContext2D;

  constructor(context: CanvasRenderingContext2D) {
    this.#context = context;
  }

  /** The fonts are other ones. */
  clear(): void {
    this.#known.clear();
  }

  /** Measures a text in the current font, which `font` stands for. */
  label(raw: string, font: string): Label {
    const key = `${font}\n${raw}`;
    const known = this.#known.get(key);
    if (known !== undefined) {
      return known;
    }
    if (this.#known.size >= LABELS_MAX) {
      this.#known.clear();
    }
    const { head, rest } = cut(raw, CHARS_MAX);
    const text = `${visible(head)}${rest > 0 ? "…" : ""}`;
    const label = { text, width: this.#context.measureText(text).width };
    this.#known.set(key, label);
    return label;
  }

  /** Paints a text, and returns the width that it took. */
  paint(raw: string, font: string, x: number, y: number, room: number): number {
    const { text, width } = this.label(raw, font);
    if (width <= room) {
      this.#context.fillText(text, x, y);
      return width;
    }
    const fitting = fittingText(text, width, room);
    if (fitting !== "") {
      this.#context.fillText(fitting, x, y, room);
    }
    return Math.max(0, room);
  }
}

/** By the mean width of its characters, a little less: the canvas narrows what is still too wide. */
function fittingText(text: string, width: number, room: number): string {
  const chars = Math.floor((room / width) * text.length) - 1;
  return chars < 1 ? "" : `${cut(text, chars).head}…`;
}
