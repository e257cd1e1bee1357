/** The focus: which spans are shown. It always contains the way from a root to each of its spans. */

import { type Columns, FLAG, NONE } from "./columns.ts";
import { clearMark, DECIDING, MARK, setMark } from "./marks.ts";

export const FOCUSES = ["decided", "critical", "errors", "hits", "all"] as const;
export type Focus = (typeof FOCUSES)[number];

export interface FocusInput {
  readonly columns: Columns;
  readonly marks: Uint8Array;
  readonly parent: Uint32Array;
  readonly leader: Uint32Array;
}

/** Marks the spans of the focus, and returns their number. */
export function applyFocus(input: FocusInput, focus: Focus): number {
  const { columns, marks, parent, leader } = input;
  clearMark(marks, MARK.focus);
  if (focus === "all") {
    return columns.count;
  }
  for (let span = 0; span < columns.count; span += 1) {
    if (isIn(input, focus, span)) {
      addWay(marks, parent, leader, span);
      if (focus === "decided") {
        addChildren(columns, marks, leader, span);
      }
    }
  }
  let count = 0;
  for (const mark of marks) {
    count += (mark & MARK.focus) === 0 ? 0 : 1;
  }
  return count;
}

function isIn({ columns, marks }: FocusInput, focus: Focus, span: number): boolean {
  const mark = marks[span] ?? 0;
  switch (focus) {
    case "decided":
      return (mark & DECIDING) !== 0;
    case "critical":
      return (mark & MARK.critical) !== 0;
    case "errors":
      return ((columns.flags[span] ?? 0) & FLAG.error) !== 0;
    case "hits":
      return (mark & MARK.hit) !== 0;
    case "all":
      return true;
  }
}

/** The first of alike siblings comes along, since it stands for them while they are folded. */
function addWay(marks: Uint8Array, parent: Uint32Array, leader: Uint32Array, from: number): void {
  let span = from;
  while (span !== NONE && ((marks[span] ?? 0) & MARK.focus) === 0) {
    setMark(marks, span, MARK.focus);
    const alike = leader[span] ?? NONE;
    if (alike !== NONE) {
      setMark(marks, alike, MARK.focus);
    }
    span = parent[span] ?? NONE;
  }
}

function addChildren(columns: Columns, marks: Uint8Array, leader: Uint32Array, span: number): void {
  const behind = columns.end[span] ?? 0;
  for (let child = span + 1; child < behind; child = columns.end[child] ?? behind) {
    setMark(marks, child, MARK.focus);
    const alike = leader[child] ?? NONE;
    if (alike !== NONE) {
      setMark(marks, alike, MARK.focus);
    }
  }
}
