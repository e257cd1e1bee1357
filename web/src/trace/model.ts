/** A trace as it is looked at: its columns, what is marked, and which rows are shown. Knows nothing of pixels. */

import { type Columns, endOf, FLAG, NONE, parents, spansOfIds } from "./columns.ts";
import { type CriticalPath, criticalPath } from "./critical.ts";
import { applyFocus, type Focus } from "./focus.ts";
import { eachAlike, type FoldStats, foldLeaders, foldStats } from "./fold.ts";
import { closeBelow, GROUP, isGroup, Rows, spanOfRow } from "./layout.ts";
import { clearMark, DECIDING, MARK, setMark } from "./marks.ts";
import { Pyramid } from "./pyramid.ts";

/** The groups whose numbers are remembered. */
const GROUPS_MAX = 4096;
/** The members of a group that a picture shows one by one. */
export const TICKS_MAX = 64;

/** The ids of the spans that decided, as the outcome of the run states them. */
export interface Deciding {
  readonly failed: readonly string[];
  readonly open: readonly string[];
}

export interface Group extends FoldStats {
  /** Its spans, if they are few enough to be shown one by one. */
  readonly members: Uint32Array | null;
  /** Whether a false or an undecided statement names one of its spans. */
  readonly deciding: number;
  readonly hits: number;
}

export class TraceModel {
  readonly columns: Columns;
  readonly parent: Uint32Array;
  readonly leader: Uint32Array;
  readonly marks: Uint8Array;
  readonly rows: Rows;
  readonly errors: number;
  /** The spans that decided, ascending. */
  deciding: Uint32Array = new Uint32Array(0);
  hits: Uint32Array = new Uint32Array(0);
  focus: Focus = "all";
  /** The spans in the focus, those that lead to them included. */
  focused: number;
  /** The level below which all is closed; null while the reader opens and closes one by one. */
  level: number | null = null;
  readonly deepest: number;
  #path: CriticalPath | null = null;
  #criticalSpans: number | null = null;
  #pyramid: Pyramid | null = null;
  readonly #groups = new Map<number, Group>();
  /** Grows with each change of marks, so that a picture knows whether it is current. */
  version = 0;

  constructor(columns: Columns) {
    this.columns = columns;
    this.parent = parents(columns);
    this.leader = foldLeaders(columns);
    this.marks = new Uint8Array(columns.count);
    this.rows = new Rows(this);
    this.focused = columns.count;
    let [errors, deepest] = [0, 0];
    for (let span = 0; span < columns.count; span += 1) {
      errors += ((columns.flags[span] ?? 0) & FLAG.error) === 0 ? 0 : 1;
      deepest = Math.max(deepest, columns.depth[span] ?? 0);
    }
    this.errors = errors;
    this.deepest = deepest;
  }

  get path(): CriticalPath {
    if (this.#path === null) {
      this.#path = criticalPath(this.columns);
      for (const span of this.#path.span) {
        setMark(this.marks, span, MARK.critical);
      }
    }
    return this.#path;
  }

  get pyramid(): Pyramid {
    this.#pyramid ??= new Pyramid(this.columns, this.marks);
    return this.#pyramid;
  }

  setDeciding({ failed, open }: Deciding): void {
    clearMark(this.marks, DECIDING);
    const ofFailed = spansOfIds(this.columns, failed);
    const ofOpen = spansOfIds(this.columns, open);
    for (const span of ofFailed) {
      setMark(this.marks, span, MARK.failed);
    }
    for (const span of ofOpen) {
      setMark(this.marks, span, MARK.open);
    }
    this.deciding = Uint32Array.from(new Set([...ofFailed, ...ofOpen])).sort();
    this.#marked("decided");
  }

  setHits(hits: Uint32Array): void {
    clearMark(this.marks, MARK.hit);
    for (const span of hits) {
      setMark(this.marks, span, MARK.hit);
    }
    this.hits = hits;
    this.#marked("hits");
  }

  setFocus(focus: Focus): void {
    if (focus === "critical") {
      // The marks of the path are written with it.
      void this.path;
    }
    this.focus = focus;
    this.focused = applyFocus(this, focus);
    this.rows.isFocused = focus !== "all";
    this.rows.rebuild();
  }

  /** How many spans a focus is about, without those that lead to them. */
  countOf(focus: Focus): number {
    switch (focus) {
      case "decided":
        return this.deciding.length;
      case "critical":
        this.#criticalSpans ??= new Set(this.path.span).size;
        return this.#criticalSpans;
      case "errors":
        return this.errors;
      case "hits":
        return this.hits.length;
      case "all":
        return this.columns.count;
    }
  }

  setLevel(level: number): void {
    this.level = Math.max(1, Math.min(level, this.deepest + 1));
    closeBelow(this.columns, this.marks, this.level);
    this.rows.rebuild();
  }

  isOpen(value: number): boolean {
    const mark = this.marks[spanOfRow(value)] ?? 0;
    return isGroup(value) ? (mark & MARK.unfolded) !== 0 : (mark & MARK.closed) === 0;
  }

  /** Whether the row of a value has others below it. */
  hasInside(value: number): boolean {
    const span = spanOfRow(value);
    return isGroup(value) || (this.columns.end[span] ?? 0) > span + 1;
  }

  /** Opens or closes what a row stands for. */
  toggle(value: number): void {
    const span = spanOfRow(value);
    if (!this.hasInside(value)) {
      return;
    }
    this.marks[span] = (this.marks[span] ?? 0) ^ (isGroup(value) ? MARK.unfolded : MARK.closed);
    if (isGroup(value)) {
      this.rows.refresh(span, this.#behindSiblings(span));
    } else {
      this.level = null;
      this.rows.refresh(span, this.columns.end[span] ?? 0);
    }
  }

  /** Unfolds all alike siblings, or folds them. */
  setFolding(isFolded: boolean): void {
    this.leader.forEach((first, span) => {
      if (first === span) {
        const mark = this.marks[span] ?? 0;
        this.marks[span] = isFolded ? mark & ~MARK.unfolded : mark | MARK.unfolded;
      }
    });
    this.rows.rebuild();
  }

  /** Opens all that hides a span, and returns its row. Leaves the focus if the span is outside of it. */
  reveal(span: number): number {
    if (this.rows.isFocused && ((this.marks[span] ?? 0) & MARK.focus) === 0) {
      this.setFocus("all");
    }
    let outermost = NONE;
    for (let it = span; it !== NONE; it = this.parent[it] ?? NONE) {
      const alike = this.leader[it] ?? NONE;
      if (it !== span && ((this.marks[it] ?? 0) & MARK.closed) !== 0) {
        this.marks[it] = (this.marks[it] ?? 0) & ~MARK.closed;
        outermost = it;
      }
      if (alike !== NONE && ((this.marks[alike] ?? 0) & MARK.unfolded) === 0) {
        setMark(this.marks, alike, MARK.unfolded);
        outermost = alike;
      }
    }
    if (outermost !== NONE) {
      this.rows.refresh(outermost, this.#behindSiblings(outermost));
    }
    return this.rows.rowOf(span);
  }

  /** The numbers of a group of alike siblings. */
  group(first: number): Group {
    const known = this.#groups.get(first);
    if (known !== undefined) {
      return known;
    }
    const stats = foldStats(this.columns, this.parent, this.leader, first);
    const members = stats.count <= TICKS_MAX ? new Uint32Array(stats.count) : null;
    let [at, deciding, hits] = [0, 0, 0];
    eachAlike(this.columns, this.parent, this.leader, first, (span) => {
      const mark = this.marks[span] ?? 0;
      deciding |= mark & DECIDING;
      hits += (mark & MARK.hit) === 0 ? 0 : 1;
      if (members !== null) {
        members[at] = span;
        at += 1;
      }
    });
    if (this.#groups.size >= GROUPS_MAX) {
      this.#groups.clear();
    }
    const group = { ...stats, members, deciding, hits };
    this.#groups.set(first, group);
    return group;
  }

  /** The interval of what a row stands for. */
  interval(value: number): { readonly from: number; readonly to: number } {
    const span = spanOfRow(value);
    if (isGroup(value)) {
      return this.group(span);
    }
    return { from: this.columns.start[span] ?? 0, to: endOf(this.columns, span) };
  }

  /** The nearest one of these spans behind or before a span, around the end; `NONE` without any. */
  static near(spans: Uint32Array, from: number, step: 1 | -1): number {
    if (spans.length === 0) {
      return NONE;
    }
    if (step === 1) {
      return spans.find((it) => from === NONE || it > from) ?? spans[0] ?? NONE;
    }
    return spans.findLast((it) => it < from) ?? spans.at(-1) ?? NONE;
  }

  /** The spans that the keys for the next and the previous one visit. */
  get stops(): Uint32Array {
    if (this.hits.length > 0) {
      return this.hits;
    }
    return this.deciding.length > 0 ? this.deciding : this.errorSpans();
  }

  errorSpans(): Uint32Array {
    return this.columns.flags.reduce<Fill>(
      (fill, flags, span) => {
        if ((flags & FLAG.error) !== 0) {
          fill.spans[fill.at] = span;
          fill.at += 1;
        }
        return fill;
      },
      { spans: new Uint32Array(this.errors), at: 0 },
    ).spans;
  }

  #behindSiblings(span: number): number {
    const above = this.parent[span] ?? NONE;
    return above === NONE ? this.columns.count : (this.columns.end[above] ?? 0);
  }

  #marked(focus: Focus): void {
    this.version += 1;
    this.#groups.clear();
    this.#pyramid?.refresh();
    if (this.focus === focus) {
      this.setFocus(focus);
    }
  }
}

interface Fill {
  readonly spans: Uint32Array;
  at: number;
}

export function groupValue(first: number): number {
  return (first | GROUP) >>> 0;
}
