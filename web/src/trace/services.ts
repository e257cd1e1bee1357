/** The service graph: which service calls which, and where the critical path goes. */

import { type Columns, FLAG, NONE, OTHER_SERVICE } from "./columns.ts";
import type { CriticalPath } from "./critical.ts";

/** Further services are left out of the picture; their number is shown. */
export const SERVICES_MAX = 60;

export interface ServiceNode {
  readonly service: number;
  readonly spans: number;
  readonly errors: number;
  /** The share of the critical path, 0 to 1. */
  readonly share: number;
}

export interface ServiceEdge {
  readonly from: number;
  readonly to: number;
  readonly calls: number;
  readonly errors: number;
}

export interface ServiceGraph {
  readonly nodes: readonly ServiceNode[];
  readonly edges: readonly ServiceEdge[];
  readonly hidden: number;
}

export function serviceGraph(columns: Columns, parent: Uint32Array, path: CriticalPath): ServiceGraph {
  const spans = new Map<number, number>();
  const errors = new Map<number, number>();
  const calls = new Map<number, { calls: number; errors: number }>();
  for (let span = 0; span < columns.count; span += 1) {
    const service = columns.service[span] ?? OTHER_SERVICE;
    const isError = ((columns.flags[span] ?? 0) & FLAG.error) === 0 ? 0 : 1;
    spans.set(service, (spans.get(service) ?? 0) + 1);
    errors.set(service, (errors.get(service) ?? 0) + isError);
    const above = parent[span] ?? NONE;
    const caller = above === NONE ? service : (columns.service[above] ?? OTHER_SERVICE);
    if (caller !== service) {
      const key = caller * 0x10000 + service;
      const edge = calls.get(key) ?? { calls: 0, errors: 0 };
      edge.calls += 1;
      edge.errors += isError;
      calls.set(key, edge);
    }
  }
  const critical = new Map<number, number>();
  path.span.forEach((span, at) => {
    const service = columns.service[span] ?? OTHER_SERVICE;
    const length = (path.to[at] ?? 0) - (path.from[at] ?? 0);
    critical.set(service, (critical.get(service) ?? 0) + length);
  });
  const nodes = [...spans]
    .map(([service, count]): ServiceNode => {
      const share = (critical.get(service) ?? 0) / Math.max(1, path.totalNs);
      return { service, spans: count, errors: errors.get(service) ?? 0, share };
    })
    .sort((a, b) => b.share - a.share || b.errors - a.errors || b.spans - a.spans || a.service - b.service);
  const shown = nodes.slice(0, SERVICES_MAX);
  const isShown = new Set(shown.map((it) => it.service));
  const edges = [...calls]
    .map(([key, it]): ServiceEdge => ({ from: Math.floor(key / 0x10000), to: key % 0x10000, ...it }))
    .filter((it) => isShown.has(it.from) && isShown.has(it.to))
    .sort((a, b) => a.from - b.from || a.to - b.to);
  return { nodes: shown, edges, hidden: nodes.length - shown.length };
}

export interface PlacedNode extends ServiceNode {
  readonly layer: number;
  /** Its place in the layer, in steps of one node; centred, so it may be a half. */
  readonly place: number;
}

/** Sweeps over the layers that put a node near its neighbours. */
const SWEEPS = 4;

/** Callers are left of what they call, as far as there is no circle. */
export function placed(graph: ServiceGraph): PlacedNode[] {
  const layer = layers(graph);
  const columns: number[][] = [];
  graph.nodes.forEach((node) => {
    const at = layer.get(node.service) ?? 0;
    columns[at] = [...(columns[at] ?? []), node.service];
  });
  const widest = Math.max(1, ...columns.map((it) => it?.length ?? 0));
  const place = new Map<number, number>();
  const settle = (column: readonly number[]) => {
    column.forEach((service, at) => {
      place.set(service, at + (widest - column.length) / 2);
    });
  };
  columns.forEach(settle);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const column of sweep % 2 === 0 ? columns : columns.toReversed()) {
      const middle = new Map(column.map((it) => [it, barycentre(graph, place, it)] as const));
      column.sort((a, b) => (middle.get(a) ?? 0) - (middle.get(b) ?? 0) || a - b);
      settle(column);
    }
  }
  return graph.nodes.map((node) => ({
    ...node,
    layer: layer.get(node.service) ?? 0,
    place: place.get(node.service) ?? 0,
  }));
}

function barycentre(graph: ServiceGraph, place: ReadonlyMap<number, number>, service: number): number {
  const near = graph.edges.flatMap(({ from, to }) =>
    from === service ? [to] : to === service ? [from] : [],
  );
  const sum = near.reduce((total, it) => total + (place.get(it) ?? 0), 0);
  return near.length === 0 ? (place.get(service) ?? 0) : sum / near.length;
}

/** The longest way from a service without callers; an edge that closes a circle does not count. */
function layers(graph: ServiceGraph): Map<number, number> {
  const calls = new Map<number, number[]>();
  const called = new Set<number>();
  for (const { from, to } of graph.edges) {
    calls.set(from, [...(calls.get(from) ?? []), to]);
    called.add(to);
  }
  const services = graph.nodes.map((it) => it.service);
  const order = [...services.filter((it) => !called.has(it)), ...services.filter((it) => called.has(it))];
  const finished: number[] = [];
  const state = new Map<number, "open" | "done">();
  const forward = new Map<number, number[]>();
  for (const root of order) {
    const stack = state.has(root) ? [] : [root];
    while (stack.length > 0) {
      const service = stack[stack.length - 1] ?? 0;
      if (!state.has(service)) {
        state.set(service, "open");
      }
      const next = (calls.get(service) ?? []).find((it) => !state.has(it));
      if (next !== undefined) {
        stack.push(next);
        continue;
      }
      stack.pop();
      const onward = (calls.get(service) ?? []).filter((it) => state.get(it) === "done");
      forward.set(service, onward);
      state.set(service, "done");
      finished.push(service);
    }
  }
  const layer = new Map<number, number>();
  for (const service of finished.toReversed()) {
    const own = layer.get(service) ?? 0;
    layer.set(service, own);
    for (const next of forward.get(service) ?? []) {
      layer.set(next, Math.max(layer.get(next) ?? 0, own + 1));
    }
  }
  return layer;
}
