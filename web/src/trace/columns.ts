/**
 * The columns of a trace: typed arrays over one buffer, an element for each span, in tree order.
 *
 * Tree order is depth first; roots and siblings follow each other by their start. So a subtree is the range from its
 * span to `end`, and the children of a span begin at the next index and continue by steps of `end`.
 */

/** What the server calls the format. */
export const COLUMNS_TYPE = "application/vnd.qualitytrace.columns";
export const VERSION = 1;
/** More spans do not fit into a page. */
export const SPANS_MAX = 8_000_000;

const MAGIC = "QTCO";
const ID_BYTES = 8;

/** No span, where an index is expected. */
export const NONE = 0xffffffff;
/** The service beyond those that have a number. */
export const OTHER_SERVICE = 0xffff;

export const FLAG = { error: 1, events: 2, links: 4, orphan: 8, clock: 16, ok: 32 } as const;

export interface ProcessName {
  readonly service: number;
  /** What tells the instances of a service apart; may be empty. */
  readonly name: string;
}

export interface Columns {
  readonly count: number;
  /** The start of the trace in Unix nanoseconds. */
  readonly startNs: bigint;
  /** From the first start to the last end; at least 1, so that it can be a divisor. */
  readonly spanNs: number;
  /** Nanoseconds from the start of the trace. */
  readonly start: Float64Array;
  /** Nanoseconds; negative where the end is before the start. */
  readonly duration: Float64Array;
  /** Eight bytes each. */
  readonly id: Uint8Array;
  /** The index behind the subtree. */
  readonly end: Uint32Array;
  readonly name: Uint32Array;
  readonly process: Uint32Array;
  readonly service: Uint16Array;
  readonly depth: Uint16Array;
  readonly kind: Uint8Array;
  readonly flags: Uint8Array;
  readonly names: readonly string[];
  readonly services: readonly string[];
  readonly processes: readonly ProcessName[];
}

/** A file that is not what it should be; the message names the place. */
export class ColumnsError extends Error {
  override readonly name = "ColumnsError";
}

interface Head {
  readonly version: number;
  readonly spans: number;
  readonly start: string;
  readonly duration: number;
  readonly names: readonly string[];
  readonly services: readonly string[];
  readonly processes: readonly ProcessName[];
  readonly columns: ReadonlyArray<{ readonly name: string; readonly type: string; readonly offset: number }>;
}

/** Reads the head and lays typed arrays over the buffer, which is not copied. */
export function readColumns(buffer: ArrayBuffer): Columns {
  const head = readHead(buffer);
  const { spans: count } = head;
  const offset = (name: string, type: string, bytes: number): number => {
    const column = head.columns.find((it) => it.name === name);
    if (column === undefined) {
      throw new ColumnsError(`the column \`${name}\` is missing`);
    }
    if (column.type !== type) {
      throw new ColumnsError(`the column \`${name}\` has the type \`${column.type}\` and not \`${type}\``);
    }
    const isAligned = Number.isInteger(column.offset) && column.offset >= 0 && column.offset % 8 === 0;
    if (!isAligned || column.offset + count * bytes > buffer.byteLength) {
      throw new ColumnsError(`the column \`${name}\` lies outside of the file`);
    }
    return column.offset;
  };
  const columns: Columns = {
    count,
    startNs: /^\d{1,20}$/.test(head.start) ? BigInt(head.start) : 0n,
    spanNs: Number.isFinite(head.duration) ? Math.max(1, head.duration) : 1,
    start: new Float64Array(buffer, offset("start", "f64", 8), count),
    duration: new Float64Array(buffer, offset("duration", "f64", 8), count),
    id: new Uint8Array(buffer, idOffset(head, offset), count * ID_BYTES),
    end: new Uint32Array(buffer, offset("end", "u32", 4), count),
    name: new Uint32Array(buffer, offset("name", "u32", 4), count),
    process: new Uint32Array(buffer, offset("process", "u32", 4), count),
    service: new Uint16Array(buffer, offset("service", "u16", 2), count),
    depth: new Uint16Array(buffer, offset("depth", "u16", 2), count),
    kind: new Uint8Array(buffer, offset("kind", "u8", 1), count),
    flags: new Uint8Array(buffer, offset("flags", "u8", 1), count),
    names: head.names,
    services: head.services,
    processes: head.processes,
  };
  checkTree(columns);
  return columns;
}

/** The eight bytes of an id have no number type, so their name in the head is free. */
function idOffset(head: Head, offset: (name: string, type: string, bytes: number) => number): number {
  return offset("id", head.columns.find((it) => it.name === "id")?.type ?? "", ID_BYTES);
}

function readHead(buffer: ArrayBuffer): Head {
  const bytes = new Uint8Array(buffer);
  if (bytes.length < 8 || String.fromCharCode(...bytes.subarray(0, 4)) !== MAGIC) {
    throw new ColumnsError("the file does not begin with `QTCO`");
  }
  const length = new DataView(buffer).getUint32(4, true);
  if (8 + length > bytes.length) {
    throw new ColumnsError("the file ends within its head");
  }
  let head: Partial<Head> | null;
  try {
    head = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length))) as Partial<Head> | null;
  } catch {
    throw new ColumnsError("the head is not JSON");
  }
  if (typeof head !== "object" || head === null) {
    throw new ColumnsError("the head is not an object");
  }
  if (head.version !== VERSION) {
    throw new ColumnsError(`the file has version ${String(head.version)}, and this page reads ${VERSION}`);
  }
  const isCount = Number.isInteger(head.spans) && Number(head.spans) >= 0;
  if (!isCount || Number(head.spans) > SPANS_MAX) {
    throw new ColumnsError(`the head states ${String(head.spans)} spans; at most ${SPANS_MAX} are read`);
  }
  for (const list of ["names", "services", "processes", "columns"] as const) {
    if (!Array.isArray(head[list])) {
      throw new ColumnsError(`the head has no list \`${list}\``);
    }
  }
  return head as Head;
}

/** Every index must lead somewhere: all that follows relies on it. */
function checkTree(columns: Columns): void {
  const { count, end, name, names, process, processes, service, services } = columns;
  for (let i = 0; i < count; i += 1) {
    const behind = end[i] ?? 0;
    if (behind <= i || behind > count) {
      throw new ColumnsError(`the subtree of span ${i} ends at ${behind}`);
    }
    const known = service[i] ?? 0;
    if ((name[i] ?? 0) >= names.length || (process[i] ?? 0) >= processes.length) {
      throw new ColumnsError(`span ${i} has a name or a process that the head does not have`);
    }
    if (known >= services.length && known !== OTHER_SERVICE) {
      throw new ColumnsError(`span ${i} has service ${known}, and the head has ${services.length}`);
    }
  }
}

export function nameOf(columns: Columns, span: number): string {
  return columns.names[columns.name[span] ?? NONE] ?? "";
}

export function serviceOf(columns: Columns, span: number): string {
  return columns.services[columns.service[span] ?? OTHER_SERVICE] ?? "";
}

/** The end of a span, never before its start. */
export function endOf(columns: Columns, span: number): number {
  const start = columns.start[span] ?? 0;
  return start + Math.max(0, columns.duration[span] ?? 0);
}

export function hexId(columns: Columns, span: number): string {
  let text = "";
  for (let at = span * ID_BYTES; at < (span + 1) * ID_BYTES; at += 1) {
    text += (columns.id[at] ?? 0).toString(16).padStart(2, "0");
  }
  return text;
}

/** Returns the indexes of the spans with these ids, ascending. Ids that no span has are left out. */
export function spansOfIds(columns: Columns, ids: Iterable<string>): Uint32Array {
  const wanted = new Map<number, Set<number>>();
  for (const id of ids) {
    if (/^[0-9a-f]{16}$/i.test(id)) {
      const high = Number.parseInt(id.slice(0, 8), 16);
      const lows = wanted.get(high) ?? new Set();
      wanted.set(high, lows.add(Number.parseInt(id.slice(8), 16)));
    }
  }
  const found: number[] = [];
  if (wanted.size > 0) {
    const view = new DataView(columns.id.buffer, columns.id.byteOffset, columns.id.byteLength);
    for (let span = 0; span < columns.count; span += 1) {
      const lows = wanted.get(view.getUint32(span * ID_BYTES));
      if (lows?.has(view.getUint32(span * ID_BYTES + 4))) {
        found.push(span);
      }
    }
  }
  return Uint32Array.from(found);
}

/** The parent of each span, or `NONE`. */
export function parents(columns: Columns): Uint32Array {
  const { count, end } = columns;
  const parent = new Uint32Array(count);
  let above = NONE;
  for (let span = 0; span < count; span += 1) {
    while (above !== NONE && (end[above] ?? 0) <= span) {
      above = parent[above] ?? NONE;
    }
    parent[span] = above;
    above = span;
  }
  return parent;
}
