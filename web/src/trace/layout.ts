/**
 * The rows of the waterfall: an index of what is shown, in tree order.
 *
 * A row is the index of a span, or of the first of alike siblings with `GROUP` set. Spans ascend from row to row, so the
 * row of a span is found by halving. Opening and closing moves the rows behind and writes those of one subtree.
 */

import { type Columns, NONE } from "./columns.ts";
import { MARK } from "./marks.ts";

export const GROUP = 0x80000000;

export interface RowsInput {
  readonly columns: Columns;
  readonly marks: Uint8Array;
  readonly leader: Uint32Array;
}

export class Rows {
  readonly #input: RowsInput;
  #rows: Uint32Array;
  #count = 0;
  /** Whether only spans in the focus are shown. */
  isFocused = false;

  constructor(input: RowsInput) {
    this.#input = input;
    this.#rows = new Uint32Array(0);
    this.rebuild();
  }

  get count(): number {
    return this.#count;
  }

  at(row: number): number {
    return this.#rows[row] ?? NONE;
  }

  rebuild(): void {
    const { count } = this.#input.columns;
    const rows = this.#emit(0, count, null, 0);
    if (rows > this.#rows.length || rows < this.#rows.length / 4) {
      this.#rows = new Uint32Array(rows);
    }
    this.#count = this.#emit(0, count, this.#rows, 0);
  }

  /** Writes the rows between two spans anew; those before keep their place, those behind move. */
  refresh(from: number, until: number): void {
    const first = this.rowAtOrAfter(from);
    const behind = this.rowAtOrAfter(until);
    const added = this.#emit(from, until, null, 0);
    const count = this.#count - (behind - first) + added;
    if (count > this.#rows.length) {
      const rows = new Uint32Array(Math.max(count, Math.min(2 * this.#rows.length, 2 * count)));
      rows.set(this.#rows.subarray(0, this.#count));
      this.#rows = rows;
    }
    this.#rows.copyWithin(first + added, behind, this.#count);
    this.#emit(from, until, this.#rows, first);
    this.#count = count;
  }

  /** The first row whose span is this one or a later one. */
  rowAtOrAfter(span: number): number {
    let low = 0;
    let high = this.#count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (spanOfRow(this.#rows[middle] ?? 0) < span) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** The row that shows the span itself, or -1. */
  rowOf(span: number): number {
    const row = this.rowAtOrAfter(span);
    if (this.#rows[row] === span && row < this.#count) {
      return row;
    }
    const next = row + 1;
    return next < this.#count && this.#rows[next] === span ? next : -1;
  }

  /** The row of what the value of another row stands for, or -1. */
  rowOfValue(value: number): number {
    const row = this.rowAtOrAfter(spanOfRow(value));
    if (row < this.#count && this.#rows[row] === value) {
      return row;
    }
    return isGroup(value) ? -1 : this.rowOf(value);
  }

  /** Returns the number of rows between two spans, and writes them if there is a place for them. */
  #emit(from: number, until: number, rows: Uint32Array | null, first: number): number {
    const { columns, marks, leader } = this.#input;
    const { end } = columns;
    let at = first;
    let span = from;
    while (span < until) {
      const mark = marks[span] ?? 0;
      const behind = end[span] ?? until;
      if (this.isFocused && (mark & MARK.focus) === 0) {
        span = behind;
        continue;
      }
      const alike = leader[span] ?? NONE;
      if (alike !== NONE) {
        const isFolded = ((marks[alike] ?? 0) & MARK.unfolded) === 0;
        if (alike === span) {
          if (rows !== null) {
            rows[at] = (span | GROUP) >>> 0;
          }
          at += 1;
        }
        if (isFolded) {
          span = behind;
          continue;
        }
      }
      if (rows !== null) {
        rows[at] = span;
      }
      at += 1;
      span = (mark & MARK.closed) === 0 ? span + 1 : behind;
    }
    return at - first;
  }
}

export function isGroup(row: number): boolean {
  return row !== NONE && row >= GROUP;
}

export function spanOfRow(row: number): number {
  return row === NONE ? NONE : row % GROUP;
}

/** Closes every span below a level, and opens those above it. */
export function closeBelow(columns: Columns, marks: Uint8Array, level: number): void {
  for (let span = 0; span < columns.count; span += 1) {
    const mark = marks[span] ?? 0;
    marks[span] = (columns.depth[span] ?? 0) >= level ? mark | MARK.closed : mark & ~MARK.closed;
  }
}
