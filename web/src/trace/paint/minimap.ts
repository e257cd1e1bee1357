/** The whole trace as a small flame, the spans that decided as ticks above it, and the window of time. */

import type { TraceModel } from "../model.ts";
import type { TimeWindow } from "../window.ts";
import { FlameImage } from "./flame.ts";
import type { Palette } from "./palette.ts";

export const MINIMAP_HEIGHT = 56;
const TICKS_HEIGHT = 9;
const ROW_HEIGHT = 3;
const ROWS_MAX = Math.floor((MINIMAP_HEIGHT - TICKS_HEIGHT - 2) / ROW_HEIGHT);

export interface MinimapFrame {
  readonly context: CanvasRenderingContext2D;
  readonly palette: Palette;
  readonly model: TraceModel;
  readonly width: number;
  readonly ratio: number;
  readonly window: TimeWindow;
}

/** The flame does not change with the window, so it is painted once and copied into each picture. */
export class Minimap {
  readonly #flame = new FlameImage();
  /** The flame in the size of the minimap, so that a frame copies it without scaling. */
  readonly #picture = new OffscreenCanvas(1, 1);
  readonly #ticks: number[] = [];
  #key = "";
  /** What the canvas shows now. */
  #shown = "";
  #rows = 0;

  paint(frame: MinimapFrame, themeKey: number): void {
    const { context, palette, model, width, ratio, window } = frame;
    const key = `${themeKey} ${width} ${ratio} ${model.version}`;
    if (key !== this.#key) {
      this.#key = key;
      this.#paintFlame(frame);
    }
    const shown = `${key} ${window.from} ${window.to}`;
    if (shown === this.#shown) {
      return;
    }
    this.#shown = shown;
    const { colour } = palette;
    context.imageSmoothingEnabled = false;
    context.drawImage(this.#picture, 0, 0, width, MINIMAP_HEIGHT);
    context.fillStyle = colour.failed;
    context.beginPath();
    for (const x of this.#ticks) {
      context.moveTo(x - 4, 1);
      context.lineTo(x + 4, 1);
      context.lineTo(x, TICKS_HEIGHT - 1);
    }
    context.fill();
    const left = (window.from / model.columns.spanNs) * width;
    const right = (window.to / model.columns.spanNs) * width;
    if (right - left < width - 1) {
      context.globalAlpha = 0.72;
      context.fillStyle = colour["surface-sunk"];
      context.fillRect(0, 0, left, MINIMAP_HEIGHT);
      context.fillRect(right, 0, width - right, MINIMAP_HEIGHT);
      context.globalAlpha = 1;
      context.fillStyle = colour.focus;
      context.fillRect(Math.max(0, left - 1), 0, 2, MINIMAP_HEIGHT);
      context.fillRect(Math.min(width - 2, right - 1), 0, 2, MINIMAP_HEIGHT);
    }
    context.fillStyle = colour.line;
    context.fillRect(0, MINIMAP_HEIGHT - 1, width, 1);
  }

  /** The canvas is empty after its size has changed. */
  forget(): void {
    this.#shown = "";
  }

  #scale(palette: Palette, pixels: number, ratio: number): void {
    this.#picture.width = Math.max(1, pixels);
    this.#picture.height = Math.round(MINIMAP_HEIGHT * ratio);
    const context = this.#picture.getContext("2d");
    if (context !== null) {
      const height = Math.min(MINIMAP_HEIGHT - TICKS_HEIGHT - 2, this.#rows * this.#rowHeight()) * ratio;
      context.fillStyle = palette.colour["surface-sunk"];
      context.fillRect(0, 0, this.#picture.width, this.#picture.height);
      context.imageSmoothingEnabled = false;
      context.drawImage(this.#flame.canvas, 0, (TICKS_HEIGHT + 1) * ratio, this.#picture.width, height);
    }
  }

  #rowHeight(): number {
    return this.#rows <= 6 ? 6 : ROW_HEIGHT;
  }

  /** With more lanes than rows, a row shows the worst of several lanes. */
  #paintFlame({ model, palette, width, ratio }: MinimapFrame): void {
    const { lanes } = model.pyramid;
    this.#rows = Math.max(1, Math.min(lanes, ROWS_MAX));
    this.#flame.paint(model, palette, {
      window: { from: 0, to: model.columns.spanNs },
      width: Math.max(1, Math.round(width * ratio)),
      rows: this.#rows,
      lanes: (row) => [Math.floor((row * lanes) / this.#rows), Math.floor(((row + 1) * lanes) / this.#rows)],
    });
    this.#scale(palette, Math.round(width * ratio), ratio);
    this.#ticks.length = 0;
    let last = Number.NEGATIVE_INFINITY;
    const places =
      model.deciding.length > 0
        ? Float64Array.from(model.deciding, (it) => model.columns.start[it] ?? 0).sort()
        : [];
    for (const start of places) {
      const x = (start / model.columns.spanNs) * width;
      if (x - last >= 3) {
        this.#ticks.push(x);
        last = x;
      }
    }
  }
}
