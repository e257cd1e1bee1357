/**
 * The stage: canvas, minimap and scroller of a trace, and what of it is in view.
 *
 * It paints in animation frames, and only after a change. React reads a snapshot of it, which changes when the reader
 * rests and with each move of the selection, never with each frame.
 */

import { afterFrame } from "../kit/after-frame.ts";
import { NONE } from "./columns.ts";
import type { TraceModel } from "./model.ts";
import { paintBrush } from "./paint/axis.ts";
import { FlameImage, paintFlame, spanAt } from "./paint/flame.ts";
import { AXIS_HEIGHT, FLAME_LANE, type Frame, measures } from "./paint/frame.ts";
import { Labels } from "./paint/labels.ts";
import { MINIMAP_HEIGHT, Minimap } from "./paint/minimap.ts";
import { type Palette, readPalette } from "./paint/palette.ts";
import { paintWaterfall, rowAt } from "./paint/waterfall.ts";
import { Scroller } from "./scroller.ts";
import { around, bounded, type TimeWindow, wholeWindow } from "./window.ts";

/** Traces with more spans open with the time that fits the rows in view. */
export const FIT_SPANS_MIN = 5000;
/** How long nothing moves before the reader rests. */
const REST_MS = 150;

export type StageMode = "waterfall" | "flame";

/** What is in view while the reader rests. */
export interface Resting {
  readonly first: number;
  readonly until: number;
  readonly selected: number;
  readonly window: TimeWindow;
  readonly isFit: boolean;
  readonly isWhole: boolean;
  readonly isPathShown: boolean;
  readonly level: number | null;
}

export interface StageParts {
  readonly canvas: HTMLCanvasElement;
  readonly minimap: HTMLCanvasElement;
  readonly scroller: HTMLElement;
  readonly spacer: HTMLElement;
}

export class Stage {
  readonly model: TraceModel;
  readonly scroll = new Scroller();
  mode: StageMode = "waterfall";
  window: TimeWindow;
  isFit: boolean;
  isPathShown = false;
  selected: number = NONE;
  hovered: number = NONE;
  /** The moment under the mouse. */
  pointer: number | null = null;
  /** The part of the axis that is being selected. */
  brushed: TimeWindow | null = null;
  width = 0;
  height = 0;
  #ratio = 1;
  #parts: StageParts | null = null;
  #context: CanvasRenderingContext2D | null = null;
  #minimapContext: CanvasRenderingContext2D | null = null;
  #labels: Labels | null = null;
  #palette: Palette | null = null;
  #theme = 0;
  readonly #flame = new FlameImage();
  readonly #minimap = new Minimap();
  #frame = 0;
  #isMinimapDue = false;
  #stopMinimap: (() => void) | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #resting: Resting;
  readonly #listeners = new Set<() => void>();

  constructor(model: TraceModel) {
    this.model = model;
    this.window = wholeWindow(model.columns.spanNs);
    this.isFit = model.columns.count > FIT_SPANS_MIN;
    this.#resting = this.#rest();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly snapshot = (): Resting => this.#resting;

  /** Paints into these elements until the returned function is called. */
  attach(parts: StageParts): () => void {
    this.#parts = parts;
    this.#context = parts.canvas.getContext("2d", { alpha: false });
    this.#minimapContext = parts.minimap.getContext("2d", { alpha: false });
    this.#labels = this.#context === null ? null : new Labels(this.#context);
    const detach = this.scroll.attach(parts.scroller, parts.spacer, () => this.moved());
    const resized = new ResizeObserver(() => this.#resize());
    resized.observe(parts.scroller);
    const themed = () => {
      this.#palette = null;
      this.#theme += 1;
      this.paintSoon();
    };
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", themed);
    const attributes = new MutationObserver(themed);
    attributes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.#resize();
    return () => {
      detach();
      resized.disconnect();
      attributes.disconnect();
      system.removeEventListener("change", themed);
      cancelAnimationFrame(this.#frame);
      this.#stopMinimap?.();
      clearTimeout(this.#timer);
      this.#frame = 0;
      this.#stopMinimap = null;
      this.#parts = null;
    };
  }

  get rowHeight(): number {
    return this.mode === "flame" ? FLAME_LANE : measures(this.width).rowHeight;
  }

  /** The number of rows, or of lanes, that fit below the axis. */
  get rowsInView(): number {
    return Math.max(1, Math.floor((this.height - AXIS_HEIGHT) / this.rowHeight));
  }

  /** The rows, their order or the mode have changed. */
  changed(): void {
    this.#layOut();
    this.paintSoon();
    this.publish();
  }

  /** What is in view has changed by scrolling or zooming. */
  moved(): void {
    this.paintSoon();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.publish(), REST_MS);
  }

  publish(): void {
    this.#resting = this.#rest();
    for (const listener of this.#listeners) {
      listener();
    }
  }

  setMode(mode: StageMode): void {
    if (this.mode !== mode) {
      this.mode = mode;
      this.changed();
      this.scroll.to(0);
    }
  }

  setWindow(window: TimeWindow): void {
    this.window = bounded(window, this.model.columns.spanNs);
    this.isFit = false;
    this.moved();
  }

  setFit(isFit: boolean): void {
    this.isFit = isFit;
    if (!isFit) {
      this.window = wholeWindow(this.model.columns.spanNs);
    }
    this.paintSoon();
    this.publish();
  }

  showPath(isShown: boolean): void {
    this.isPathShown = isShown;
    void this.model.path;
    this.paintSoon();
    this.publish();
  }

  /** Selects the value of a row, and scrolls to it. */
  select(value: number): void {
    this.selected = value;
    if (value !== NONE) {
      this.#scrollTo(value);
    }
    this.paintSoon();
    this.publish();
  }

  hover(value: number): void {
    if (this.hovered !== value) {
      this.hovered = value;
      this.paintSoon();
    }
  }

  brush(window: TimeWindow | null): void {
    if (this.brushed !== window) {
      this.brushed = window;
      this.paintSoon();
    }
  }

  /** What is at a point of the canvas. */
  at(x: number, y: number): { readonly value: number; readonly isTwisty: boolean } {
    const place = { model: this.model, width: this.width, top: this.scroll.top, window: this.shownWindow() };
    return this.mode === "waterfall" ? rowAt(place, x, y) : { value: spanAt(place, x, y), isTwisty: false };
  }

  /** The moment at a point of the canvas. */
  momentAt(x: number): number {
    const { timeX, timeWidth } = this.timeArea();
    const { from, to } = this.shownWindow();
    return from + ((Math.min(Math.max(x, timeX), timeX + timeWidth) - timeX) / timeWidth) * (to - from);
  }

  timeArea(): { readonly timeX: number; readonly timeWidth: number } {
    return this.mode === "flame" ? { timeX: 0, timeWidth: Math.max(1, this.width) } : measures(this.width);
  }

  /** The window of time that is painted: that of the reader, or that of the rows in view. */
  shownWindow(): TimeWindow {
    return this.isFit && this.mode === "waterfall" ? this.#windowOfRows() : this.window;
  }

  paintSoon(): void {
    if (this.#frame === 0 && this.#parts !== null) {
      this.#frame = requestAnimationFrame(() => {
        this.#frame = 0;
        this.paint();
      });
    }
  }

  paint(): void {
    const [context, small, labels] = [this.#context, this.#minimapContext, this.#labels];
    if (context === null || small === null || labels === null || this.#parts === null || this.width === 0) {
      return;
    }
    if (this.#palette === null) {
      this.#palette = readPalette(this.#parts.scroller);
      labels.clear();
    }
    const frame: Frame = {
      context,
      labels,
      palette: this.#palette,
      model: this.model,
      width: this.width,
      height: this.height,
      ratio: this.#ratio,
      top: this.scroll.top,
      window: this.shownWindow(),
      selected: this.selected,
      hovered: this.hovered,
      isPathShown: this.isPathShown,
    };
    if (this.mode === "waterfall") {
      paintWaterfall(frame);
    } else {
      paintFlame(frame, this.#flame);
    }
    if (this.brushed !== null) {
      paintBrush(frame, this.brushed, this.timeArea());
    }
    if (this.#isMinimapDue) {
      this.#minimap.paint({ ...frame, context: small }, this.#theme);
    } else {
      // The first one looks at every span, which the spans in view need not wait for.
      this.#stopMinimap ??= afterFrame(() => {
        this.#isMinimapDue = true;
        this.paintSoon();
      });
    }
  }

  #rest(): Resting {
    const first = Math.floor(this.scroll.top / this.rowHeight);
    const whole = this.model.columns.spanNs;
    return {
      first,
      until: Math.min(this.model.rows.count, first + this.rowsInView + 1),
      selected: this.selected,
      window: this.window,
      isFit: this.isFit,
      isWhole: !this.isFit && this.window.from <= 0 && this.window.to >= whole,
      isPathShown: this.isPathShown,
      level: this.model.level,
    };
  }

  #windowOfRows(): TimeWindow {
    const { model, scroll, rowHeight } = this;
    const first = Math.max(0, Math.floor(scroll.top / rowHeight));
    const until = Math.min(model.rows.count, first + this.rowsInView + 1);
    let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let row = first; row < until; row += 1) {
      const interval = model.interval(model.rows.at(row));
      from = Math.min(from, interval.from);
      to = Math.max(to, interval.to);
    }
    return from <= to ? around({ from, to }, model.columns.spanNs) : wholeWindow(model.columns.spanNs);
  }

  #scrollTo(value: number): void {
    const { rowHeight } = this;
    const row =
      this.mode === "flame"
        ? (this.model.columns.depth[value % 0x80000000] ?? 0)
        : this.model.rows.rowOfValue(value);
    if (row < 0) {
      return;
    }
    const view = this.height - AXIS_HEIGHT;
    const margin = Math.min(2 * rowHeight, view / 4);
    const y = row * rowHeight;
    if (y < this.scroll.top + margin) {
      this.scroll.to(y - margin);
    } else if (y + rowHeight > this.scroll.top + view - margin) {
      // A jump ends in the upper third; a step moves by a row.
      const isNear = y < this.scroll.top + view + 2 * rowHeight;
      this.scroll.to(isNear ? y + rowHeight + margin - view : y - view / 3);
    }
  }

  #layOut(): void {
    const rows = this.mode === "flame" ? this.model.pyramid.lanes : this.model.rows.count;
    this.scroll.layOut(AXIS_HEIGHT + rows * this.rowHeight + 8, this.height);
  }

  #resize(): void {
    const parts = this.#parts;
    if (parts === null) {
      return;
    }
    this.width = parts.scroller.clientWidth;
    this.height = parts.scroller.clientHeight;
    this.#ratio = devicePixelRatio;
    fitCanvas(parts.canvas, this.width, this.height, this.#ratio);
    fitCanvas(parts.minimap, this.width, MINIMAP_HEIGHT, this.#ratio);
    this.#labels?.clear();
    this.#minimap.forget();
    this.changed();
    // A canvas is empty after its size has changed: no frame may show that.
    this.paint();
  }
}

function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.inlineSize = `${width}px`;
  canvas.style.blockSize = `${height}px`;
  canvas.getContext("2d")?.setTransform(ratio, 0, 0, ratio, 0, 0);
}
