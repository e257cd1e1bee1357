/**
 * The critical path: what the end of the trace waited for.
 *
 * From the end of the longest root backwards: the child that ended last before the moment is on the path, and the time
 * behind it is the span's own. A child that outlives its parent counts until the end of the parent.
 */

import { type Columns, endOf, NONE } from "./columns.ts";

/** Pieces of the path, ascending by span and then by time. */
export interface CriticalPath {
  readonly span: Uint32Array;
  readonly from: Float64Array;
  readonly to: Float64Array;
  readonly totalNs: number;
}

/** A span on the way down: its children by their end, the latest first, and how far the path is. */
interface Frame {
  readonly span: number;
  readonly from: number;
  readonly until: number;
  readonly children: readonly number[];
  next: number;
  cursor: number;
}

export function criticalPath(columns: Columns): CriticalPath {
  const pieces: Array<readonly [span: number, from: number, to: number]> = [];
  const root = longestRoot(columns);
  const frames: Frame[] =
    root === NONE ? [] : [frameOf(columns, root, columns.start[root] ?? 0, endOf(columns, root))];
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const child = nextChild(columns, frame);
    const end = child === NONE ? frame.from : Math.min(endOf(columns, child), frame.until);
    if (end < frame.cursor) {
      pieces.push([frame.span, end, frame.cursor]);
    }
    if (child === NONE) {
      frames.pop();
      continue;
    }
    const start = Math.max(frame.from, columns.start[child] ?? 0);
    frame.cursor = start;
    frames.push(frameOf(columns, child, start, end));
  }
  pieces.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return {
    span: Uint32Array.from(pieces, (it) => it[0]),
    from: Float64Array.from(pieces, (it) => it[1]),
    to: Float64Array.from(pieces, (it) => it[2]),
    totalNs: pieces.reduce((sum, it) => sum + it[2] - it[1], 0),
  };
}

function frameOf(columns: Columns, span: number, from: number, until: number): Frame {
  const children: number[] = [];
  const behind = columns.end[span] ?? 0;
  for (let child = span + 1; child < behind; child = columns.end[child] ?? behind) {
    children.push(child);
  }
  children.sort((a, b) => endOf(columns, b) - endOf(columns, a) || a - b);
  return { span, from, until, children, next: 0, cursor: until };
}

/** The latest child that ended at the cursor or before, and lasted. */
function nextChild(columns: Columns, frame: Frame): number {
  while (frame.next < frame.children.length) {
    const child = frame.children[frame.next] ?? NONE;
    frame.next += 1;
    const end = Math.min(endOf(columns, child), frame.until);
    const start = Math.max(frame.from, columns.start[child] ?? 0);
    if (end <= frame.cursor && start < end) {
      return child;
    }
  }
  return NONE;
}

function longestRoot(columns: Columns): number {
  let longest = NONE;
  for (let span = 0; span < columns.count; span = columns.end[span] ?? columns.count) {
    if (longest === NONE || (columns.duration[span] ?? 0) > (columns.duration[longest] ?? 0)) {
      longest = span;
    }
  }
  return longest;
}

/** The first piece of a span, and the one behind its last. */
export function piecesOf(path: CriticalPath, span: number): readonly [number, number] {
  let low = 0;
  let high = path.span.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((path.span[middle] ?? 0) < span) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  let behind = low;
  while (behind < path.span.length && path.span[behind] === span) {
    behind += 1;
  }
  return [low, behind];
}
