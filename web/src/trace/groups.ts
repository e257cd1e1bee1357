/** The table: spans grouped by what they have in common. */

import { type Columns, endOf, FLAG, nameOf, serviceOf } from "./columns.ts";
import { quantile } from "./fold.ts";

export const GROUPINGS = ["name", "service", "kind", "attribute"] as const;
export type Grouping = (typeof GROUPINGS)[number];

export interface SpanGroup {
  /** The values that its spans share. */
  readonly key: readonly string[];
  readonly count: number;
  readonly errors: number;
  readonly totalNs: number;
  /** The time of its spans in which none of their children ran. */
  readonly selfNs: number;
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
  /** One of its spans: the longest. */
  readonly span: number;
}

export type KeyOfSpan = (span: number) => readonly string[];

export function keyBy(columns: Columns, grouping: Exclude<Grouping, "attribute">): KeyOfSpan {
  switch (grouping) {
    case "name":
      return (span) => [nameOf(columns, span), serviceOf(columns, span)];
    case "service":
      return (span) => [serviceOf(columns, span)];
    case "kind":
      return (span) => [String(columns.kind[span] ?? 0)];
  }
}

/** Groups all spans, the group with the most time of its own first. */
export function groups(columns: Columns, keyOf: KeyOfSpan, idOf?: (span: number) => number): SpanGroup[] {
  const numbers = new Map<string | number, number>();
  const firsts: number[] = [];
  const groupOf = new Uint32Array(columns.count);
  for (let span = 0; span < columns.count; span += 1) {
    const id = idOf?.(span) ?? JSON.stringify(keyOf(span));
    let number = numbers.get(id);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(id, number);
      firsts.push(span);
    }
    groupOf[span] = number;
  }
  const members = sortedMembers(groupOf, firsts.length);
  const self = selfTimes(columns);
  return firsts
    .map((first, number) => summary(columns, keyOf(first), members(number), self))
    .sort((a, b) => b.selfNs - a.selfNs || b.count - a.count || a.span - b.span);
}

/** Numbers instead of texts where the columns have them, so that a million spans need no text each. */
export function numberBy(
  columns: Columns,
  grouping: Exclude<Grouping, "attribute">,
): (span: number) => number {
  switch (grouping) {
    case "name":
      return (span) => (columns.name[span] ?? 0) * 0x10000 + (columns.service[span] ?? 0);
    case "service":
      return (span) => columns.service[span] ?? 0;
    case "kind":
      return (span) => columns.kind[span] ?? 0;
  }
}

function sortedMembers(groupOf: Uint32Array, count: number): (group: number) => Uint32Array {
  const first = new Uint32Array(count + 1);
  for (const group of groupOf) {
    first[group + 1] = (first[group + 1] ?? 0) + 1;
  }
  for (let group = 0; group < count; group += 1) {
    first[group + 1] = (first[group + 1] ?? 0) + (first[group] ?? 0);
  }
  const members = new Uint32Array(groupOf.length);
  const next = first.slice();
  groupOf.forEach((group, span) => {
    members[next[group] ?? 0] = span;
    next[group] = (next[group] ?? 0) + 1;
  });
  return (group) => members.subarray(first[group], first[group + 1]);
}

function summary(
  columns: Columns,
  key: readonly string[],
  members: Uint32Array,
  self: Float64Array,
): SpanGroup {
  const durations = new Float64Array(members.length);
  let [errors, totalNs, selfNs, longest] = [0, 0, 0, members[0] ?? 0];
  members.forEach((span, at) => {
    const duration = Math.max(0, columns.duration[span] ?? 0);
    durations[at] = duration;
    totalNs += duration;
    selfNs += self[span] ?? 0;
    errors += ((columns.flags[span] ?? 0) & FLAG.error) === 0 ? 0 : 1;
    longest = duration > Math.max(0, columns.duration[longest] ?? 0) ? span : longest;
  });
  durations.sort();
  return {
    key,
    count: members.length,
    errors,
    totalNs,
    selfNs,
    p50: quantile(durations, 0.5),
    p95: quantile(durations, 0.95),
    max: durations.at(-1) ?? 0,
    span: longest,
  };
}

/** The time of each span that none of its children covers. Children are in order of their start. */
export function selfTimes(columns: Columns): Float64Array {
  const { count, start, end } = columns;
  const self = new Float64Array(count);
  for (let span = 0; span < count; span += 1) {
    const until = endOf(columns, span);
    let covered = 0;
    let cursor = start[span] ?? 0;
    const behind = end[span] ?? 0;
    for (let child = span + 1; child < behind; child = end[child] ?? behind) {
      const from = Math.max(cursor, start[child] ?? 0);
      const to = Math.min(until, endOf(columns, child));
      if (to > from) {
        covered += to - from;
        cursor = to;
      }
    }
    self[span] = until - (start[span] ?? 0) - covered;
  }
  return self;
}
