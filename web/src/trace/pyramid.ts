/**
 * The pyramid: for each lane, blocks of its spans in time, blocks of blocks, and the worst span of each.
 *
 * A lane has the spans of one depth. A cell, one pixel of one lane, shows the worst of the spans that touch it: decided,
 * error, hit, and the longest among equals. A block that fits into a cell is one step, so that the time for a picture
 * depends on the number of its cells and not on that of its spans. Where spans of a lane overlap, that is not enough: a
 * lane with many spans has bins too.
 */

import { BINNED_MIN, Bins } from "./bins.ts";
import { type Columns, endOf, NONE } from "./columns.ts";
import { badness } from "./marks.ts";

const FANOUT = 8;
/** Steps for one lane of a picture, for each of its cells. Beyond them a block shows its worst span only. */
const STEPS_MAX = 48;
/** The lanes whose bins are kept. */
const BINNED_LANES_MAX = 64;

/** The blocks of one size, those of all lanes one after another. */
interface Level {
  /** The first block of each lane, and the one behind the last. */
  readonly first: Uint32Array;
  readonly from: Float64Array;
  readonly to: Float64Array;
  readonly worst: Uint32Array;
}

export interface Window {
  readonly from: number;
  readonly to: number;
}

/** A row of cells: the span that each shows, or `NONE`. */
export class Cells {
  readonly width: number;
  readonly span: Uint32Array;
  readonly badness: Int8Array;
  readonly length: Float64Array;

  constructor(width: number) {
    this.width = width;
    this.span = new Uint32Array(width);
    this.badness = new Int8Array(width);
    this.length = new Float64Array(width);
    this.clear();
  }

  clear(): void {
    this.span.fill(NONE);
    this.badness.fill(-1);
    this.length.fill(-1);
  }
}

export class Pyramid {
  readonly columns: Columns;
  readonly lanes: number;
  readonly #marks: Uint8Array;
  /** The spans by lane, then by start. */
  readonly #order: Uint32Array;
  readonly #first: Uint32Array;
  readonly #levels: Level[] = [];
  readonly #bins = new Map<number, Bins>();
  #steps = 0;

  constructor(columns: Columns, marks: Uint8Array) {
    this.columns = columns;
    this.#marks = marks;
    let deepest = -1;
    for (const depth of columns.depth) {
      deepest = Math.max(deepest, depth);
    }
    this.lanes = deepest + 1;
    this.#first = firstOfLanes(columns, this.lanes);
    this.#order = spansByLane(columns, this.#first);
    this.#build();
  }

  /** The marks have changed: finds the worst spans once more. */
  refresh(): void {
    this.#bins.clear();
    this.#levels.forEach((level, at) => {
      this.#fillLevel(level, at);
    });
  }

  /** Adds the spans of a lane to the cells. */
  paint(lane: number, window: Window, cells: Cells): void {
    const scale = cells.width / Math.max(Number.MIN_VALUE, window.to - window.from);
    const bins = this.#binsOf(lane);
    const level = bins?.fitting(1 / scale);
    if (bins !== undefined && level !== undefined) {
      this.#paintBins(bins.spans, level, window, cells);
      return;
    }
    const top = this.#levels.length - 1;
    this.#steps = STEPS_MAX * cells.width;
    if (top < 0) {
      this.#paintSpans(this.#first[lane] ?? 0, this.#first[lane + 1] ?? 0, window, scale, cells);
      return;
    }
    const blocks = this.#levels[top];
    const until = blocks?.first[lane + 1] ?? 0;
    for (let block = blocks?.first[lane] ?? 0; block < until; block += 1) {
      this.#paintBlock(lane, top, block, window, scale, cells);
    }
  }

  #binsOf(lane: number): Bins | undefined {
    const spans = this.#order.subarray(this.#first[lane] ?? 0, this.#first[lane + 1] ?? 0);
    if (spans.length < BINNED_MIN) {
      return;
    }
    const bins = this.#bins.get(lane) ?? new Bins(this.columns, this.#marks, spans);
    // The last used one is the last to go.
    this.#bins.delete(lane);
    this.#bins.set(lane, bins);
    const [oldest] = this.#bins.keys();
    if (this.#bins.size > BINNED_LANES_MAX && oldest !== undefined) {
      this.#bins.delete(oldest);
    }
    return bins;
  }

  #paintBins(spans: Uint32Array, level: Uint32Array, window: Window, cells: Cells): void {
    const perTime = level.length / this.columns.spanNs;
    const perCell = ((window.to - window.from) / cells.width) * perTime;
    const begin = window.from * perTime;
    let first = 0;
    let shown = NONE;
    // Neighbours that show the same span are one step.
    for (let cell = 0; cell <= cells.width; cell += 1) {
      let least = NONE;
      if (cell < cells.width) {
        const until = Math.min(level.length, Math.ceil(begin + (cell + 1) * perCell));
        for (let bin = Math.max(0, Math.floor(begin + cell * perCell)); bin < until; bin += 1) {
          const rank = level[bin] ?? NONE;
          least = rank < least ? rank : least;
        }
      }
      if (least !== shown || cell === cells.width) {
        if (shown !== NONE) {
          this.#show(spans[shown] ?? NONE, first, cell - 1, cells);
        }
        first = cell;
        shown = least;
      }
    }
  }

  /** Descends at most as deep as there are levels, and not by the depth of the trace. */
  #paintBlock(
    lane: number,
    height: number,
    block: number,
    window: Window,
    scale: number,
    cells: Cells,
  ): void {
    const level = this.#levels[height];
    if (level === undefined) {
      return;
    }
    const from = level.from[block] ?? 0;
    const to = level.to[block] ?? 0;
    if (to < window.from || from > window.to) {
      return;
    }
    this.#steps -= 1;
    const worst = level.worst[block] ?? NONE;
    const isOneCell = Math.floor((to - window.from) * scale) <= Math.floor((from - window.from) * scale);
    if (isOneCell || this.#steps < 0) {
      this.#paintSpan(worst, window, scale, cells);
      return;
    }
    // The worst one first: it is what most often stands before all others of its block.
    this.#paintSpan(worst, window, scale, cells);
    if (this.#isHidden(worst, (from - window.from) * scale, (to - window.from) * scale, cells)) {
      return;
    }
    const below = (block - (level.first[lane] ?? 0)) * FANOUT;
    if (height === 0) {
      const first = (this.#first[lane] ?? 0) + below;
      this.#paintSpans(first, Math.min(first + FANOUT, this.#first[lane + 1] ?? 0), window, scale, cells);
      return;
    }
    const next = this.#levels[height - 1];
    const first = (next?.first[lane] ?? 0) + below;
    const until = Math.min(first + FANOUT, next?.first[lane + 1] ?? 0);
    for (let child = first; child < until; child += 1) {
      this.#paintBlock(lane, height - 1, child, window, scale, cells);
    }
  }

  /** Whether every cell of a block shows a span that none of its spans could replace. */
  #isHidden(worst: number, fromX: number, toX: number, cells: Cells): boolean {
    const bad = badness(this.columns, this.#marks, worst);
    const length = this.columns.duration[worst] ?? 0;
    const until = Math.min(cells.width - 1, Math.floor(toX));
    let cell = Math.max(0, Math.floor(fromX));
    for (; cell <= until; cell += 1) {
      const shown = cells.badness[cell] ?? -1;
      const shownLength = cells.length[cell] ?? -1;
      const isKept =
        shown > bad ||
        (shown === bad &&
          (shownLength > length || (shownLength === length && (cells.span[cell] ?? NONE) <= worst)));
      if (!isKept) {
        return false;
      }
    }
    return true;
  }

  #paintSpans(first: number, until: number, window: Window, scale: number, cells: Cells): void {
    for (let at = first; at < until; at += 1) {
      this.#paintSpan(this.#order[at] ?? NONE, window, scale, cells);
    }
  }

  #paintSpan(span: number, window: Window, scale: number, cells: Cells): void {
    const start = this.columns.start[span] ?? 0;
    const end = endOf(this.columns, span);
    const first = Math.floor((start - window.from) * scale);
    const last = Math.max(first, Math.ceil((end - window.from) * scale) - 1);
    if (last < 0 || first >= cells.width) {
      return;
    }
    const until = Math.min(last, cells.width - 1);
    this.#steps -= 1 + ((until - Math.max(0, first)) >> 4);
    this.#show(span, Math.max(0, first), until, cells);
  }

  /** Lets cells show a span that is worse than what they show. */
  #show(span: number, first: number, last: number, cells: Cells): void {
    const bad = badness(this.columns, this.#marks, span);
    const length = this.columns.duration[span] ?? 0;
    for (let cell = first; cell <= last; cell += 1) {
      const shown = cells.badness[cell] ?? -1;
      if (bad < shown) {
        continue;
      }
      const shownLength = cells.length[cell] ?? -1;
      const isWorse =
        bad > shown ||
        length > shownLength ||
        (length === shownLength && span < (cells.span[cell] ?? NONE)) ||
        cells.span[cell] === NONE;
      if (isWorse) {
        cells.badness[cell] = bad;
        cells.length[cell] = length;
        cells.span[cell] = span;
      }
    }
  }

  #build(): void {
    let counts = laneCounts(this.#first);
    while (counts.some((it) => it > 1)) {
      counts = counts.map((it) => Math.ceil(it / FANOUT));
      const first = new Uint32Array(this.lanes + 1);
      counts.forEach((it, lane) => {
        first[lane + 1] = (first[lane] ?? 0) + it;
      });
      const blocks = first[this.lanes] ?? 0;
      const level: Level = {
        first,
        from: new Float64Array(blocks),
        to: new Float64Array(blocks),
        worst: new Uint32Array(blocks),
      };
      this.#levels.push(level);
      this.#fillLevel(level, this.#levels.length - 1);
    }
  }

  #fillLevel(level: Level, height: number): void {
    const below = this.#levels[height - 1];
    const firstBelow = below?.first ?? this.#first;
    for (let lane = 0; lane < this.lanes; lane += 1) {
      const behind = firstBelow[lane + 1] ?? 0;
      let block = level.first[lane] ?? 0;
      for (let at = firstBelow[lane] ?? 0; at < behind; at += FANOUT, block += 1) {
        this.#fillBlock(level, block, below, at, Math.min(at + FANOUT, behind));
      }
    }
  }

  #fillBlock(level: Level, block: number, below: Level | undefined, first: number, until: number): void {
    let from = Number.POSITIVE_INFINITY;
    let to = Number.NEGATIVE_INFINITY;
    let worst = NONE;
    let worstBadness = -1;
    let worstLength = Number.NEGATIVE_INFINITY;
    for (let at = first; at < until; at += 1) {
      const span = (below === undefined ? this.#order[at] : below.worst[at]) ?? NONE;
      from = Math.min(from, below === undefined ? (this.columns.start[span] ?? 0) : (below.from[at] ?? 0));
      to = Math.max(to, below === undefined ? endOf(this.columns, span) : (below.to[at] ?? 0));
      const bad = badness(this.columns, this.#marks, span);
      const length = this.columns.duration[span] ?? 0;
      const isWorse =
        bad > worstBadness ||
        (bad === worstBadness && (length > worstLength || (length === worstLength && span < worst)));
      if (isWorse) {
        worst = span;
        worstBadness = bad;
        worstLength = length;
      }
    }
    level.from[block] = from;
    level.to[block] = to;
    level.worst[block] = worst;
  }
}

function firstOfLanes(columns: Columns, lanes: number): Uint32Array {
  const first = new Uint32Array(lanes + 1);
  for (const depth of columns.depth) {
    first[depth + 1] = (first[depth + 1] ?? 0) + 1;
  }
  for (let lane = 0; lane < lanes; lane += 1) {
    first[lane + 1] = (first[lane + 1] ?? 0) + (first[lane] ?? 0);
  }
  return first;
}

function laneCounts(first: Uint32Array): Uint32Array {
  return Uint32Array.from(
    { length: first.length - 1 },
    (_, lane) => (first[lane + 1] ?? 0) - (first[lane] ?? 0),
  );
}

function spansByLane(columns: Columns, first: Uint32Array): Uint32Array {
  const order = new Uint32Array(columns.count);
  const next = first.slice();
  for (let span = 0; span < columns.count; span += 1) {
    const lane = columns.depth[span] ?? 0;
    order[next[lane] ?? 0] = span;
    next[lane] = (next[lane] ?? 0) + 1;
  }
  for (let lane = 0; lane + 1 < first.length; lane += 1) {
    sortByStart(columns, order.subarray(first[lane], first[lane + 1]));
  }
  return order;
}

/**
 * Sorts by start, as far as a number has room for both: the start in steps of the trace, and the place in the lane. A
 * sort of plain numbers needs no function for each comparison. Blocks keep the bounds of their spans, so spans within
 * one step may be in any order.
 */
function sortByStart(columns: Columns, spans: Uint32Array): void {
  const isSorted = spans.every(
    (span, at) => at === 0 || (columns.start[spans[at - 1] ?? 0] ?? 0) <= (columns.start[span] ?? 0),
  );
  if (isSorted) {
    return;
  }
  const places = 2 ** Math.ceil(Math.log2(spans.length));
  const steps = 2 ** 52 / places - 1;
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const span of spans) {
    least = Math.min(least, columns.start[span] ?? 0);
    most = Math.max(most, columns.start[span] ?? 0);
  }
  const scale = steps / Math.max(1, most - least);
  const keys = new Float64Array(spans.length);
  spans.forEach((span, at) => {
    keys[at] = Math.floor(((columns.start[span] ?? 0) - least) * scale) * places + at;
  });
  keys.sort();
  const before = spans.slice();
  keys.forEach((key, at) => {
    spans[at] = before[key % places] ?? 0;
  });
}
