/** Alike siblings: spans below one parent that have the same name, service and kind. Roots are never alike. */

import { type Columns, endOf, NONE } from "./columns.ts";

/** Fewer alike siblings are shown one by one. */
export const FOLD_MIN = 3;

/**
 * Returns the first alike sibling for each span that has enough of them, and `NONE` for the others.
 *
 * One pass over the children of each parent, with one table for all of them: a slot belongs to a parent by its stamp.
 */
export function foldLeaders(columns: Columns): Uint32Array {
  const { count, end } = columns;
  const leader = new Uint32Array(count).fill(NONE);
  const table = new Map<number, number>();
  const counts = new Map<number, number>();
  const fold = (first: number, behind: number) => {
    // Most parents have few children, for which no table is needed.
    let children = 0;
    for (let child = first; child < behind && children < FOLD_MIN; child = end[child] ?? count) {
      children += 1;
    }
    if (children < FOLD_MIN) {
      return;
    }
    table.clear();
    counts.clear();
    for (let child = first; child < behind; child = end[child] ?? count) {
      const key = keyOf(columns, child);
      const known = table.get(key) ?? child;
      table.set(key, known);
      counts.set(known, (counts.get(known) ?? 0) + 1);
      leader[child] = known;
    }
    for (let child = first; child < behind; child = end[child] ?? count) {
      if ((counts.get(leader[child] ?? NONE) ?? 0) < FOLD_MIN) {
        leader[child] = NONE;
      }
    }
  };
  for (let span = 0; span < count; span += 1) {
    const behind = end[span] ?? 0;
    if (behind > span + FOLD_MIN) {
      fold(span + 1, behind);
    }
  }
  return leader;
}

/** A number for name, service and kind; exact up to 2^53. */
function keyOf(columns: Columns, span: number): number {
  const name = columns.name[span] ?? 0;
  return (name * 0x10000 + (columns.service[span] ?? 0)) * 8 + Math.min(7, columns.kind[span] ?? 0);
}

export interface FoldStats {
  readonly count: number;
  readonly errors: number;
  /** The earliest start and the latest end. */
  readonly from: number;
  readonly to: number;
  readonly p50: number;
  readonly max: number;
}

/** Visits the alike siblings of a group, the first one included. */
export function eachAlike(
  columns: Columns,
  parent: Uint32Array,
  leader: Uint32Array,
  first: number,
  visit: (span: number) => void,
): void {
  const above = parent[first] ?? NONE;
  const behind = above === NONE ? columns.count : (columns.end[above] ?? columns.count);
  for (let span = first; span < behind; span = columns.end[span] ?? columns.count) {
    if (leader[span] === first) {
      visit(span);
    }
  }
}

export function foldStats(
  columns: Columns,
  parent: Uint32Array,
  leader: Uint32Array,
  first: number,
): FoldStats {
  const durations: number[] = [];
  let errors = 0;
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  eachAlike(columns, parent, leader, first, (span) => {
    durations.push(Math.max(0, columns.duration[span] ?? 0));
    errors += (columns.flags[span] ?? 0) & 1;
    from = Math.min(from, columns.start[span] ?? 0);
    to = Math.max(to, endOf(columns, span));
  });
  const sorted = Float64Array.from(durations).sort();
  return {
    count: sorted.length,
    errors,
    from,
    to,
    p50: quantile(sorted, 0.5),
    max: sorted.at(-1) ?? 0,
  };
}

/** The nearest rank of sorted values. */
export function quantile(sorted: Float64Array, share: number): number {
  const rank = Math.max(1, Math.ceil(share * sorted.length));
  return sorted[rank - 1] ?? 0;
}
