/**
 * The bins of a lane with many spans: equal parts of the trace's time, each with its worst span.
 *
 * A cell of a picture reads a few bins, however many spans touch it. A bin is at most as wide as a cell, so a span is shown
 * at most one cell beside its place.
 */

import { type Columns, endOf, NONE } from "./columns.ts";
import { badness } from "./marks.ts";

/** A lane with fewer spans is painted span by span. */
export const BINNED_MIN = 2048;

const COARSEST = 4096;
const FINEST = 65_536;
const FACTOR = 4;
const BADNESS_MAX = 3;

export class Bins {
  /** The spans of the lane, the worst first: their places are ranks. */
  readonly spans: Uint32Array;
  readonly #spanNs: number;
  /** From the finest to the coarsest: the least rank in each bin, or `NONE`. */
  readonly #levels: Uint32Array[] = [];

  /** `spans` are those of one lane. */
  constructor(columns: Columns, marks: Uint8Array, spans: Uint32Array) {
    this.#spanNs = columns.spanNs;
    this.spans = worstFirst(columns, marks, spans);
    let count = COARSEST;
    while (count < spans.length && count < FINEST) {
      count *= FACTOR;
    }
    let level = finest(columns, this.spans, count);
    this.#levels.push(level);
    while (level.length > COARSEST) {
      level = coarser(level);
      this.#levels.push(level);
    }
  }

  /** Returns the coarsest level whose bins are no wider than this time; none if those of all levels are. */
  fitting(time: number): Uint32Array | undefined {
    return this.#levels.findLast((level) => this.#spanNs / level.length <= time);
  }
}

/** Returns the spans as they stand before each other in a cell: the worst first, the longest among equals. */
function worstFirst(columns: Columns, marks: Uint8Array, spans: Uint32Array): Uint32Array {
  const longest = byLength(columns, spans);
  const classes = Uint8Array.from(longest, (span) => badness(columns, marks, span));
  const sorted = new Uint32Array(longest.length);
  let rank = 0;
  for (let bad = BADNESS_MAX; bad >= 0; bad -= 1) {
    for (let at = 0; at < longest.length; at += 1) {
      if (classes[at] === bad) {
        sorted[rank] = longest[at] ?? NONE;
        rank += 1;
      }
    }
  }
  return sorted;
}

/** Gives each bin to the worst span that touches it: the worst span takes its bins first, and each bin is taken once. */
function finest(columns: Columns, spans: Uint32Array, count: number): Uint32Array {
  const bins = new Uint32Array(count).fill(NONE);
  // The next bin that is not taken, from each one on.
  const next = Uint32Array.from({ length: count + 1 }, (_, bin) => bin);
  const free = (from: number) => {
    let bin = from;
    while (next[bin] !== bin) {
      const then = next[bin] ?? count;
      next[bin] = next[then] ?? count;
      bin = then;
    }
    return bin;
  };
  const scale = count / columns.spanNs;
  let left = count;
  for (let rank = 0; rank < spans.length && left > 0; rank += 1) {
    const span = spans[rank] ?? NONE;
    const first = Math.min(count - 1, Math.max(0, Math.floor((columns.start[span] ?? 0) * scale)));
    const last = Math.min(count - 1, Math.max(first, Math.ceil(endOf(columns, span) * scale) - 1));
    for (let bin = free(first); bin <= last; bin = free(bin + 1)) {
      bins[bin] = rank;
      next[bin] = bin + 1;
      left -= 1;
    }
  }
  return bins;
}

/** `NONE` is more than any rank. */
function coarser(fine: Uint32Array): Uint32Array {
  return Uint32Array.from({ length: fine.length / FACTOR }, (_, bin) => {
    let least = NONE;
    for (let at = bin * FACTOR; at < (bin + 1) * FACTOR; at += 1) {
      least = Math.min(least, fine[at] ?? NONE);
    }
    return least;
  });
}

/**
 * Returns the spans, the longest first, as far as a number has room for both: the length in steps of the longest, and the
 * place. A sort of plain numbers needs no function for each comparison.
 */
function byLength(columns: Columns, spans: Uint32Array): Uint32Array {
  const sorted = spans.slice().sort();
  const places = 2 ** Math.ceil(Math.log2(Math.max(2, sorted.length)));
  const steps = 2 ** 52 / places - 1;
  let longest = 1;
  for (const span of sorted) {
    longest = Math.max(longest, columns.duration[span] ?? 0);
  }
  const scale = steps / longest;
  const keys = new Float64Array(sorted.length);
  sorted.forEach((span, at) => {
    keys[at] = (steps - Math.floor(Math.max(0, columns.duration[span] ?? 0) * scale)) * places + at;
  });
  keys.sort();
  return Uint32Array.from(keys, (key) => sorted[key % places] ?? NONE);
}
