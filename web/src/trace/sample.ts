/** Small traces for tests, written as a tree. */

import { type Columns, readColumns } from "./columns.ts";
import { writeColumns } from "./columns-writer.ts";

export interface SampleSpan {
  readonly name: string;
  readonly at: number;
  readonly for: number;
  readonly service?: number;
  readonly kind?: number;
  readonly flags?: number;
  readonly children?: readonly SampleSpan[];
}

/** The columns of trees, through the file format. */
export function sample(roots: readonly SampleSpan[], services: readonly string[] = ["a", "b", "c"]): Columns {
  const spans: Array<{ span: SampleSpan; depth: number; end: number }> = [];
  const add = (span: SampleSpan, depth: number) => {
    const row = { span, depth, end: 0 };
    spans.push(row);
    for (const child of span.children ?? []) {
      add(child, depth + 1);
    }
    row.end = spans.length;
  };
  for (const root of roots) {
    add(root, 0);
  }
  const names = [...new Set(spans.map((it) => it.span.name))];
  const duration = Math.max(1, ...spans.map((it) => it.span.at + it.span.for));
  return readColumns(
    writeColumns({ names, services, duration }, spans.length, (i) => {
      const { span, depth, end } = spans[i] ?? { span: { name: "", at: 0, for: 0 }, depth: 0, end: 0 };
      return {
        start: span.at,
        duration: span.for,
        id: sampleId(i),
        end,
        name: names.indexOf(span.name),
        service: span.service ?? 0,
        depth,
        kind: span.kind ?? 1,
        flags: span.flags ?? 0,
      };
    }),
  );
}

export function sampleId(span: number): string {
  return (span + 1).toString(16).padStart(16, "0");
}

/** Numbers that look random and are always the same. */
export function sequence(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A tree of any shape. Spans may be outside of their parents, and a few have a negative duration. */
export function randomTrees(seed: number, count: number): SampleSpan[] {
  const random = sequence(seed);
  const all: Array<{ span: SampleSpan; children: SampleSpan[] }> = [];
  const roots: SampleSpan[] = [];
  for (let i = 0; i < count; i += 1) {
    const children: SampleSpan[] = [];
    const span: SampleSpan = {
      name: `n${Math.floor(random() * 4)}`,
      at: Math.floor(random() * 10_000),
      for: random() < 0.05 ? -5 : Math.floor(random() ** 6 * 3000),
      service: Math.floor(random() * 3),
      flags: random() < 0.04 ? 1 : 0,
      children,
    };
    const above = all[Math.floor(random() * 1.1 * all.length)];
    (above === undefined || random() < 0.02 ? roots : above.children).push(span);
    all.push({ span, children });
  }
  const sort = (list: SampleSpan[]) => list.sort((a, b) => a.at - b.at);
  for (const { children } of all) {
    sort(children);
  }
  return sort(roots);
}
