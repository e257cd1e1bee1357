/** What is known of each span beside its columns: a byte of bits. */

import { type Columns, FLAG } from "./columns.ts";

export const MARK = {
  /** A false statement names it. */
  failed: 1,
  /** An undecided statement names it. */
  open: 2,
  hit: 4,
  /** It is in the focus. */
  focus: 8,
  critical: 16,
  /** Its children are not shown. */
  closed: 32,
  /** It is the first of alike siblings, which are shown one by one. */
  unfolded: 64,
} as const;

export const DECIDING: number = MARK.failed | MARK.open;

export function setMark(marks: Uint8Array, span: number, bit: number): void {
  marks[span] = (marks[span] ?? 0) | bit;
}

export function clearMark(marks: Uint8Array, bit: number): void {
  for (let span = 0; span < marks.length; span += 1) {
    marks[span] = (marks[span] ?? 0) & ~bit;
  }
}

/** How bad a span is where several share a cell: decided, then errors, then hits; the longest among equals. */
export function badness(columns: Columns, marks: Uint8Array, span: number): number {
  const mark = marks[span] ?? 0;
  if ((mark & DECIDING) !== 0) {
    return 3;
  }
  if (((columns.flags[span] ?? 0) & FLAG.error) !== 0) {
    return 2;
  }
  return (mark & MARK.hit) !== 0 ? 1 : 0;
}
