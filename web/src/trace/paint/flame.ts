/**
 * The flame: a lane for each depth, painted as rows of pixels.
 *
 * A lane becomes one row of an image, which the canvas stretches to the height of a lane. So the picture costs its
 * pixels, however many spans there are.
 */

import { NONE, nameOf } from "../columns.ts";
import { DECIDING, MARK } from "../marks.ts";
import type { TraceModel } from "../model.ts";
import { Cells } from "../pyramid.ts";
import type { TimeWindow } from "../window.ts";
import { paintAxis } from "./axis.ts";
import { AXIS_HEIGHT, FLAME_LANE, FONT, type Frame } from "./frame.ts";
import { type Palette, SERVICE_COLOURS } from "./palette.ts";

/** Narrower spans have no text, and no line at their end. */
const TEXT_WIDTH_MIN = 40;
const GAP_WIDTH_MIN = 4;

/** The buffers of a picture; they are used again for the next one. */
export class FlameImage {
  readonly canvas: OffscreenCanvas;
  readonly #context: OffscreenCanvasRenderingContext2D;
  #data: ImageData;
  #pixels: Uint32Array;
  #cells: Cells;

  constructor() {
    this.canvas = new OffscreenCanvas(1, 1);
    const context = this.canvas.getContext("2d", { willReadFrequently: true });
    if (context === null) {
      throw new Error("the browser has no canvas");
    }
    this.#context = context;
    this.#data = new ImageData(1, 1);
    this.#pixels = new Uint32Array(this.#data.data.buffer);
    this.#cells = new Cells(1);
  }

  /** Fills a row of pixels for each row of lanes; `seen` gets the cells of each before they are cleared. */
  paint(
    model: TraceModel,
    palette: Palette,
    request: FlameRequest,
    seen?: (row: number, cells: Cells) => void,
  ): void {
    const { width, rows } = request;
    this.#resize(width, rows);
    for (let row = 0; row < rows; row += 1) {
      this.#cells.clear();
      const [first, behind] = request.lanes(row);
      for (let lane = first; lane < behind; lane += 1) {
        model.pyramid.paint(lane, request.window, this.#cells);
      }
      this.#fill(model, palette, row);
      seen?.(row, this.#cells);
    }
    this.#context.putImageData(this.#data, 0, 0);
  }

  #resize(width: number, rows: number): void {
    if (this.#data.width === width && this.#data.height === rows) {
      return;
    }
    this.canvas.width = width;
    this.canvas.height = rows;
    this.#data = new ImageData(width, rows);
    this.#pixels = new Uint32Array(this.#data.data.buffer);
    this.#cells = new Cells(width);
  }

  #fill({ columns, marks }: TraceModel, { bits }: Palette, row: number): void {
    const { span: spans, badness } = this.#cells;
    const { width } = this.#cells;
    const at = row * width;
    let first = 0;
    for (let x = 0; x < width; x += 1) {
      const span = spans[x] ?? NONE;
      if (span === NONE) {
        this.#pixels[at + x] = 0;
        first = x + 1;
        continue;
      }
      const isDeciding = badness[x] === 3;
      const isError = badness[x] === 2;
      this.#pixels[at + x] = isDeciding
        ? ((marks[span] ?? 0) & MARK.failed) !== 0
          ? bits.failed
          : bits.open
        : isError
          ? bits.error
          : badness[x] === 1
            ? bits.hit
            : (bits.service[(columns.service[span] ?? 0) % SERVICE_COLOURS] ?? 0);
      if (spans[x + 1] !== span) {
        if (x - first >= GAP_WIDTH_MIN) {
          this.#pixels[at + x] = 0;
        }
        first = x + 1;
      }
    }
  }
}

export interface FlameRequest {
  readonly window: TimeWindow;
  /** In device pixels. */
  readonly width: number;
  readonly rows: number;
  /** The lanes of a row: the first, and the one behind the last. */
  readonly lanes: (row: number) => readonly [number, number];
}

/** A text over a wide span. */
interface Caption {
  readonly span: number;
  readonly x: number;
  readonly width: number;
  readonly row: number;
  readonly badness: number;
}

export function paintFlame(frame: Frame, image: FlameImage): void {
  const { context, palette, width, height, model, top, ratio } = frame;
  context.fillStyle = palette.colour["surface-card"];
  context.fillRect(0, 0, width, height);
  context.textBaseline = "middle";
  const first = Math.max(0, Math.floor(top / FLAME_LANE));
  const until = Math.min(model.pyramid.lanes, Math.ceil((top + height - AXIS_HEIGHT) / FLAME_LANE));
  const rows = Math.max(0, until - first);
  if (rows > 0) {
    const captions: Caption[] = [];
    const request: FlameRequest = {
      window: frame.window,
      width: Math.max(1, Math.round(width * ratio)),
      rows,
      lanes: (row) => [first + row, first + row + 1],
    };
    image.paint(model, palette, request, (row, cells) => addCaptions(captions, row, cells, ratio));
    const y = AXIS_HEIGHT + first * FLAME_LANE - top;
    context.imageSmoothingEnabled = false;
    context.drawImage(image.canvas, 0, 0, request.width, rows, 0, y, width, rows * FLAME_LANE);
    context.fillStyle = palette.colour["surface-card"];
    context.beginPath();
    for (let row = 0; row < rows; row += 1) {
      context.rect(0, y + (row + 1) * FLAME_LANE - 1, width, 1);
    }
    context.fill();
    paintCaptions(frame, captions, y);
    paintSelected(frame, y, first, rows);
  }
  paintAxis(frame, 0, width);
}

function addCaptions(captions: Caption[], row: number, cells: Cells, ratio: number): void {
  let first = 0;
  for (let x = 0; x < cells.width; x += 1) {
    const span = cells.span[x] ?? NONE;
    if (cells.span[x + 1] !== span) {
      const width = (x + 1 - first) / ratio;
      if (span !== NONE && width >= TEXT_WIDTH_MIN) {
        captions.push({ span, x: first / ratio, width, row, badness: cells.badness[x] ?? 0 });
      }
      first = x + 1;
    }
  }
}

function paintCaptions(frame: Frame, captions: readonly Caption[], y: number): void {
  const { context, palette, labels, model } = frame;
  const font = FONT.small(palette.font);
  context.font = font;
  for (const { span, x, width, row, badness } of captions) {
    context.fillStyle = badness === 2 ? palette.colour.ink : palette.colour["surface-card"];
    const sign =
      badness === 3
        ? ((model.marks[span] ?? 0) & DECIDING) === MARK.open
          ? "? "
          : "✘ "
        : badness === 2
          ? "! "
          : "";
    const text = `${sign}${nameOf(model.columns, span)}`;
    labels.paint(text, font, x + 5, y + row * FLAME_LANE + FLAME_LANE / 2, width - 10);
  }
}

function paintSelected(frame: Frame, y: number, first: number, rows: number): void {
  const { context, palette, model, window, selected, width } = frame;
  if (selected === NONE) {
    return;
  }
  const span = selected % 0x80000000;
  const row = (model.columns.depth[span] ?? 0) - first;
  const { from, to } = model.interval(span);
  const scale = width / (window.to - window.from);
  const left = Math.max(-2, (from - window.from) * scale);
  const right = Math.min(width + 2, (to - window.from) * scale);
  if (row >= 0 && row < rows && right >= 0 && left <= width) {
    context.strokeStyle = palette.colour.ink;
    context.lineWidth = 2;
    context.strokeRect(left, y + row * FLAME_LANE, Math.max(3, right - left), FLAME_LANE - 1);
  }
}

/** The span that a point shows, or `NONE`. */
export function spanAt(
  frame: Pick<Frame, "model" | "width" | "top" | "window">,
  x: number,
  y: number,
): number {
  const lane = Math.floor((y - AXIS_HEIGHT + frame.top) / FLAME_LANE);
  if (y < AXIS_HEIGHT || lane < 0 || lane >= frame.model.pyramid.lanes) {
    return NONE;
  }
  const cells = new Cells(Math.max(1, Math.round(frame.width)));
  frame.model.pyramid.paint(lane, frame.window, cells);
  const at = Math.min(cells.width - 1, Math.max(0, Math.floor(x)));
  // Half a finger wide: single pixels are hard to meet.
  for (let by = 0; by <= 3; by += 1) {
    const near = [cells.span[at - by], cells.span[at + by]].find((it) => it !== undefined && it !== NONE);
    if (near !== undefined) {
      return near;
    }
  }
  return NONE;
}
