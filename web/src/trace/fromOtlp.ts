/** Columns of the spans of a file, as the server makes them of a trace. Nothing descends by the depth of the trace. */

import { type Columns, FLAG, NONE, OTHER_SERVICE } from "./columns.ts";
import { eventCount, kindOf, linkCount, nameOfSpan, type RawSpan, readSpans, statusOf } from "./otlp.ts";

/** A trace of a file. */
export interface FileTrace {
  readonly traceId: string;
  readonly spans: readonly RawSpan[];
}

export interface PlacedTrace {
  readonly columns: Columns;
  /** The spans in the order of the columns. */
  readonly spans: readonly RawSpan[];
}

const NAME_BYTES_MAX = 1024;
const DEPTH_MAX = 0xffff;

/** The traces of a file, the largest first. */
export function fileTraces(text: string): FileTrace[] {
  const traces = new Map<string, RawSpan[]>();
  for (const span of readSpans(text)) {
    const spans = traces.get(span.traceId) ?? [];
    spans.push(span);
    traces.set(span.traceId, spans);
  }
  return [...traces]
    .map(([traceId, spans]) => ({ traceId, spans }))
    .sort((a, b) => b.spans.length - a.spans.length || compare(a.traceId, b.traceId));
}

export function columnsOf(given: readonly RawSpan[]): PlacedTrace {
  const all = distinct(given);
  const first = all.reduce((least, it) => (it.start < least ? it.start : least), all[0]?.start ?? 0n);
  const start = Float64Array.from(all, (it) => Number(it.start - first));
  const parent = parentsOf(all);
  breakCircles(all, start, parent);
  const { order, end, depth } = treeOrder(all, start, parent);
  return {
    columns: filled(all, { order, end, depth, start, parent, first }),
    spans: order.map((it) => at(all, it)),
  };
}

/** Spans that came twice are one. Others with the same id are two. */
function distinct(given: readonly RawSpan[]): RawSpan[] {
  const seen = new Map<string, { readonly span: RawSpan; texts: Set<string> | null }>();
  return given.filter((span) => {
    const alike = seen.get(span.id);
    if (alike === undefined) {
      seen.set(span.id, { span, texts: null });
      return true;
    }
    // Most ids come once: their text is written only when there is another one.
    alike.texts ??= new Set([textOf(alike.span)]);
    const before = alike.texts.size;
    return alike.texts.add(textOf(span)).size > before;
  });
}

/** A text that equal spans share. Values may be nested deeper than the writer of JSON goes; then names and times decide. */
function textOf(span: RawSpan): string {
  try {
    return JSON.stringify(span.json);
  } catch {
    return `${span.id} ${span.start} ${span.end} ${nameOfSpan(span)}`;
  }
}

/** The first span with the id of the parent. Of spans with the same id, the later ones have no children. */
function parentsOf(all: readonly RawSpan[]): Uint32Array {
  const byId = new Map<string, number>();
  all.forEach((span, index) => {
    if (!byId.has(span.id)) {
      byId.set(span.id, index);
    }
  });
  return Uint32Array.from(all, (span) => (span.parent === "" ? NONE : (byId.get(span.parent) ?? NONE)));
}

/** The earliest span of a circle becomes a root. */
function breakCircles(all: readonly RawSpan[], start: Float64Array, parent: Uint32Array): void {
  const visit = new Uint32Array(all.length);
  for (let from = 0; from < all.length; from += 1) {
    let index = from;
    while (index !== NONE && visit[index] === 0) {
      visit[index] = from + 1;
      index = parent[index] ?? NONE;
    }
    if (index === NONE || visit[index] !== from + 1) {
      continue;
    }
    let earliest = index;
    for (let it = parent[index] ?? NONE; it !== index; it = parent[it] ?? NONE) {
      earliest = isBefore(all, start, it, earliest) ? it : earliest;
    }
    parent[earliest] = NONE;
  }
}

function isBefore(all: readonly RawSpan[], start: Float64Array, a: number, b: number): boolean {
  const order = (start[a] ?? 0) - (start[b] ?? 0) || compare(at(all, a).id, at(all, b).id);
  return order < 0;
}

function treeOrder(all: readonly RawSpan[], start: Float64Array, parent: Uint32Array) {
  const sorted = Array.from(all, (_, index) => index).sort(
    (a, b) => (start[a] ?? 0) - (start[b] ?? 0) || compare(at(all, a).id, at(all, b).id) || a - b,
  );
  // Lists of children that are linked from the last to the first, so that a stack gives them in order.
  const lastChild = new Uint32Array(all.length).fill(NONE);
  const before = new Uint32Array(all.length).fill(NONE);
  let lastRoot = NONE;
  for (const index of sorted) {
    const above = parent[index] ?? NONE;
    before[index] = above === NONE ? lastRoot : (lastChild[above] ?? NONE);
    if (above === NONE) {
      lastRoot = index;
    } else {
      lastChild[above] = index;
    }
  }
  const order: number[] = [];
  const depth = new Uint16Array(all.length);
  const end = new Uint32Array(all.length);
  const place = new Uint32Array(all.length);
  const stack: number[] = [];
  const push = (last: number) => {
    for (let index = last; index !== NONE; index = before[index] ?? NONE) {
      stack.push(index);
    }
  };
  push(lastRoot);
  for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
    const above = parent[index] ?? NONE;
    place[index] = order.length;
    depth[order.length] = above === NONE ? 0 : Math.min(DEPTH_MAX, (depth[place[above] ?? 0] ?? 0) + 1);
    order.push(index);
    push(lastChild[index] ?? NONE);
  }
  // From the last span to the first: a subtree reaches as far as its last child.
  for (let row = order.length - 1; row >= 0; row -= 1) {
    const last = lastChild[order[row] ?? 0] ?? NONE;
    end[row] = last === NONE ? row + 1 : (end[place[last] ?? 0] ?? row + 1);
  }
  return { order, end, depth };
}

interface Placement {
  readonly order: readonly number[];
  readonly end: Uint32Array;
  readonly depth: Uint16Array;
  readonly start: Float64Array;
  readonly parent: Uint32Array;
  readonly first: bigint;
}

function filled(all: readonly RawSpan[], placement: Placement): Columns {
  const { order, end, depth, start, parent, first } = placement;
  const count = order.length;
  const names = new Dictionary();
  const services = new Dictionary();
  const processes = new Dictionary();
  const columns = {
    start: new Float64Array(count),
    duration: new Float64Array(count),
    id: new Uint8Array(8 * count),
    name: new Uint32Array(count),
    process: new Uint32Array(count),
    service: new Uint16Array(count),
    kind: new Uint8Array(count),
    flags: new Uint8Array(count),
  };
  let spanNs = 1;
  order.forEach((index, row) => {
    const span = at(all, index);
    columns.start[row] = start[index] ?? 0;
    columns.duration[row] = Number(span.end - span.start);
    spanNs = Math.max(spanNs, start[index] ?? 0, Number(span.end - first));
    for (let byte = 0; byte < 8; byte += 1) {
      columns.id[8 * row + byte] = Number.parseInt(span.id.slice(2 * byte, 2 * byte + 2), 16);
    }
    columns.name[row] = names.number(cutName(nameOfSpan(span)));
    columns.service[row] = Math.min(OTHER_SERVICE, services.number(cutName(span.resource.service)));
    columns.process[row] = processes.number(
      JSON.stringify([cutName(span.resource.service), cutName(span.resource.process)]),
    );
    columns.kind[row] = kindOf(span);
    columns.flags[row] = flagsOf(all, index, parent[index] ?? NONE);
  });
  return {
    ...columns,
    count,
    startNs: first,
    spanNs,
    end,
    depth,
    names: names.texts,
    services: services.texts.slice(0, OTHER_SERVICE),
    processes: processes.texts.map((text) => {
      const [service, name] = JSON.parse(text) as [string, string];
      return { service: services.number(service), name };
    }),
  };
}

function flagsOf(all: readonly RawSpan[], index: number, above: number): number {
  const span = at(all, index);
  const status = statusOf(span);
  let flags = status === 2 ? FLAG.error : status === 1 ? FLAG.ok : 0;
  flags |= eventCount(span) > 0 ? FLAG.events : 0;
  flags |= linkCount(span) > 0 ? FLAG.links : 0;
  flags |= above === NONE && span.parent !== "" ? FLAG.orphan : 0;
  if (above !== NONE) {
    const outer = at(all, above);
    const isOther =
      outer.resource.service !== span.resource.service || outer.resource.process !== span.resource.process;
    const isOutside = span.start < outer.start || span.end > outer.end;
    flags |= isOther && isOutside ? FLAG.clock : 0;
  }
  return flags;
}

/** Numbers for texts, in the order in which they come. */
class Dictionary {
  readonly texts: string[] = [];
  readonly #numbers = new Map<string, number>();

  number(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) {
      return known;
    }
    this.#numbers.set(text, this.texts.length);
    return this.texts.push(text) - 1;
  }
}

const encoder = new TextEncoder();

/** Cuts a name on the boundary of a character, as the server does. */
export function cutName(name: string): string {
  if (name.length * 3 <= NAME_BYTES_MAX) {
    return name;
  }
  const room = new Uint8Array(NAME_BYTES_MAX);
  const { read } = encoder.encodeInto(name, room);
  return read === name.length ? name : `${name.slice(0, encoder.encodeInto(name, room.subarray(3)).read)}…`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function at(all: readonly RawSpan[], index: number): RawSpan {
  const span = all[index];
  if (span === undefined) {
    throw new RangeError(`there is no span ${index}`);
  }
  return span;
}
