import { describe, expect, it } from "vitest";
import { ColumnsError, hexId, NONE, nameOf, parents, readColumns, serviceOf, spansOfIds } from "./columns.ts";
import { writeColumns } from "./columns-writer.ts";
import { sample, sampleId } from "./sample.ts";

const TREE = [
  {
    name: "root",
    at: 0,
    for: 100,
    children: [
      { name: "left", at: 1, for: 10, service: 1 },
      { name: "right", at: 20, for: 5 },
    ],
  },
  { name: "orphan", at: 50, for: -3, flags: 8 },
];

const HEAD = { names: ["x"], services: ["a"], duration: 10 };
const LEAF = { start: 0, duration: 1, id: sampleId(0), end: 1, name: 0, depth: 0 };

/** A file whose head is changed after it was written, with the same length. */
function changed(from: string, to: string): ArrayBuffer {
  const buffer = writeColumns(HEAD, 1, () => LEAF);
  const bytes = new Uint8Array(buffer);
  const text = new TextDecoder("latin1").decode(bytes);
  const at = text.indexOf(from);
  expect(at).toBeGreaterThan(0);
  expect(to.length).toBe(from.length);
  bytes.set(new TextEncoder().encode(to), at);
  return buffer;
}

describe("columns", () => {
  it("are laid over the file, without a copy", () => {
    const buffer = writeColumns(
      { names: ["x"], services: ["a"], duration: 7, start: "1763500000123456789" },
      1,
      () => LEAF,
    );
    const columns = readColumns(buffer);
    expect(columns.start.buffer).toBe(buffer);
    expect(columns.id.buffer).toBe(buffer);
    expect(columns.startNs).toBe(1_763_500_000_123_456_789n);
    expect(columns.spanNs).toBe(7);
    expect(buffer.byteLength % 8).toBe(0);
  });

  it("have names, services, ids and a tree", () => {
    const columns = sample(TREE);
    expect(Array.from({ length: 4 }, (_, i) => nameOf(columns, i))).toEqual([
      "root",
      "left",
      "right",
      "orphan",
    ]);
    expect(serviceOf(columns, 1)).toBe("b");
    expect(hexId(columns, 2)).toBe(sampleId(2));
    expect([...columns.end]).toEqual([3, 2, 3, 4]);
    expect([...parents(columns)]).toEqual([NONE, 0, 0, NONE]);
    expect(columns.duration[3]).toBe(-3);
  });

  it("find spans by their ids, in tree order, and leave out others", () => {
    const columns = sample(TREE);
    const ids = [sampleId(3), sampleId(1), "ffffffffffffffff", "no id", sampleId(1).toUpperCase()];
    expect([...spansOfIds(columns, ids)]).toEqual([1, 3]);
  });

  it("may have no span", () => {
    expect(readColumns(writeColumns(HEAD, 0, () => LEAF)).count).toBe(0);
  });

  it("ignore columns and keys that they do not know", () => {
    const columns = readColumns(
      changed('"start":"1700000000000000000"', '"other":"1700000000000000000"'.slice(0, 29)),
    );
    expect(columns.count).toBe(1);
    expect(columns.startNs).toBe(0n);
  });
});

describe("a file is refused", () => {
  it.each([
    ["of another format", () => new ArrayBuffer(64), "QTCO"],
    ["of another version", () => changed('"version":1', '"version":2'), "version 2"],
    ["that is cut", () => writeColumns(HEAD, 1, () => LEAF).slice(0, -32), "lies outside"],
    ["that ends in its head", () => writeColumns(HEAD, 1, () => LEAF).slice(0, 40), "within its head"],
    ["whose head is no JSON", () => changed('{"version"', '?"version"'), "not JSON"],
    ["without a column", () => changed('"name":"depth"', '"name":"dopth"'), "`depth` is missing"],
    ["with a column of another type", () => changed('"depth","type":"u16"', '"depth","type":"u99"'), "`u99`"],
    ["with a tree that goes back", () => writeColumns(HEAD, 1, () => ({ ...LEAF, end: 0 })), "ends at 0"],
    ["with a tree that goes too far", () => writeColumns(HEAD, 1, () => ({ ...LEAF, end: 2 })), "ends at 2"],
    ["with an unknown name", () => writeColumns(HEAD, 1, () => ({ ...LEAF, name: 5 })), "a name"],
    ["with an unknown service", () => writeColumns(HEAD, 1, () => ({ ...LEAF, service: 5 })), "service 5"],
  ])("%s", (_, file, message) => {
    expect(() => readColumns(file())).toThrow(ColumnsError);
    expect(() => readColumns(file())).toThrow(message);
  });
});
