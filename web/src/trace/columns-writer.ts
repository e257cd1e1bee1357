/** Writes columns as the server does, for tests: the page itself only reads. */

import { VERSION } from "./columns.ts";

export interface ColumnsSpan {
  readonly start: number;
  readonly duration: number;
  /** 16 hexadecimal digits. */
  readonly id: string;
  readonly end: number;
  readonly name: number;
  readonly process?: number;
  readonly service?: number;
  readonly depth: number;
  readonly kind?: number;
  readonly flags?: number;
}

export interface ColumnsHead {
  readonly names: readonly string[];
  readonly services: readonly string[];
  readonly processes?: ReadonlyArray<{ readonly service: number; readonly name: string }>;
  readonly start?: string;
  readonly duration: number;
  readonly version?: number;
}

const TYPES = [
  ["start", "f64", 8],
  ["duration", "f64", 8],
  ["id", "b8", 8],
  ["end", "u32", 4],
  ["name", "u32", 4],
  ["process", "u32", 4],
  ["service", "u16", 2],
  ["depth", "u16", 2],
  ["kind", "u8", 1],
  ["flags", "u8", 1],
] as const;

/** Writes `count` spans, which the function gives one after another. */
export function writeColumns(
  head: ColumnsHead,
  count: number,
  span: (i: number) => ColumnsSpan,
): ArrayBuffer {
  const { headBytes, offsets, bytes } = place(head, count);
  const buffer = new ArrayBuffer(bytes);
  const view = new DataView(buffer);
  new Uint8Array(buffer).set(new TextEncoder().encode("QTCO"));
  view.setUint32(4, headBytes.length, true);
  new Uint8Array(buffer).set(headBytes, 8);
  const at = (name: (typeof TYPES)[number][0]) => offsets.get(name) ?? 0;
  for (let i = 0; i < count; i += 1) {
    const it = span(i);
    view.setFloat64(at("start") + 8 * i, it.start, true);
    view.setFloat64(at("duration") + 8 * i, it.duration, true);
    view.setUint32(at("id") + 8 * i, Number.parseInt(it.id.slice(0, 8), 16));
    view.setUint32(at("id") + 8 * i + 4, Number.parseInt(it.id.slice(8), 16));
    view.setUint32(at("end") + 4 * i, it.end, true);
    view.setUint32(at("name") + 4 * i, it.name, true);
    view.setUint32(at("process") + 4 * i, it.process ?? 0, true);
    view.setUint16(at("service") + 2 * i, it.service ?? 0, true);
    view.setUint16(at("depth") + 2 * i, it.depth, true);
    view.setUint8(at("kind") + i, it.kind ?? 1);
    view.setUint8(at("flags") + i, it.flags ?? 0);
  }
  return buffer;
}

/** The offsets are in the head, whose length they depend on; so they are written with a fixed width. */
function place(head: ColumnsHead, count: number) {
  const text = (offsets: ReadonlyMap<string, number>) =>
    JSON.stringify({
      version: head.version ?? VERSION,
      spans: count,
      start: head.start ?? "1700000000000000000",
      duration: head.duration,
      names: head.names,
      services: head.services,
      processes: head.processes ?? [{ service: 0, name: "" }],
      columns: TYPES.map(([name, type]) => ({ name, type, offset: offsets.get(name) ?? 0 })),
    });
  const widest = new Map(TYPES.map(([name]) => [name, 10 ** 10] as const));
  const length = aligned(new TextEncoder().encode(text(widest)).length);
  let bytes = 8 + length;
  const offsets = new Map<string, number>();
  for (const [name, , size] of TYPES) {
    offsets.set(name, bytes);
    bytes = aligned(bytes + size * count);
  }
  const headBytes = new Uint8Array(length).fill(0x20);
  headBytes.set(new TextEncoder().encode(text(offsets)));
  return { headBytes, offsets, bytes };
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}
