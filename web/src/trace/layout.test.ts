import { describe, expect, it } from "vitest";
import { nameOf, spansOfIds } from "./columns.ts";
import { GROUP, isGroup, spanOfRow } from "./layout.ts";
import { TraceModel } from "./model.ts";
import { randomTrees, sample, sampleId, sequence } from "./sample.ts";

const alike = (count: number, name = "get") =>
  Array.from({ length: count }, (_, at) => ({
    name,
    at: at * 10,
    for: at + 1,
    children: [{ name: "inner", at: at * 10, for: 1 }],
  }));

function shown(model: TraceModel): string[] {
  return Array.from({ length: model.rows.count }, (_, row) => {
    const value = model.rows.at(row);
    const name = nameOf(model.columns, spanOfRow(value));
    return isGroup(value) ? `×${model.group(spanOfRow(value)).count} ${name}` : name;
  });
}

describe("rows", () => {
  it("fold alike siblings from three on", () => {
    const two = new TraceModel(sample([{ name: "root", at: 0, for: 99, children: alike(2) }]));
    expect(shown(two)).toEqual(["root", "get", "inner", "get", "inner"]);
    const three = new TraceModel(sample([{ name: "root", at: 0, for: 99, children: alike(3) }]));
    expect(shown(three)).toEqual(["root", "×3 get"]);
  });

  it("do not fold spans of another service or kind, nor roots", () => {
    const children = [0, 1, 2].map((service) => ({
      name: "get",
      at: service,
      for: 1,
      service,
      kind: service,
    }));
    expect(shown(new TraceModel(sample([{ name: "root", at: 0, for: 9, children }])))).toHaveLength(4);
    expect(shown(new TraceModel(sample(alike(4))))).toHaveLength(8);
  });

  it("show the numbers of a group", () => {
    const model = new TraceModel(sample([{ name: "root", at: 0, for: 99, children: alike(5) }]));
    const { count, p50, max, from, to, members } = model.group(1);
    expect({ count, p50, max, from, to }).toEqual({ count: 5, p50: 3, max: 5, from: 0, to: 45 });
    expect([...(members ?? [])]).toEqual([1, 3, 5, 7, 9]);
  });

  it("open and close a group and a span", () => {
    const model = new TraceModel(
      sample([{ name: "root", at: 0, for: 99, children: [...alike(3), { name: "last", at: 60, for: 1 }] }]),
    );
    model.toggle((1 | GROUP) >>> 0);
    expect(shown(model)).toEqual(["root", "×3 get", "get", "inner", "get", "inner", "get", "inner", "last"]);
    model.toggle(3);
    expect(shown(model)).toEqual(["root", "×3 get", "get", "inner", "get", "get", "inner", "last"]);
    model.toggle(0);
    expect(shown(model)).toEqual(["root"]);
    model.toggle(0);
    model.toggle((1 | GROUP) >>> 0);
    expect(shown(model)).toEqual(["root", "×3 get", "last"]);
  });

  it("reveal a span through everything that hides it", () => {
    const model = new TraceModel(sample([{ name: "root", at: 0, for: 99, children: alike(3) }]));
    model.toggle(0);
    const row = model.reveal(4);
    expect(model.rows.at(row)).toBe(4);
    expect(shown(model)).toEqual(["root", "×3 get", "get", "inner", "get", "inner", "get", "inner"]);
  });

  it("close below a level", () => {
    const model = new TraceModel(sample([{ name: "root", at: 0, for: 99, children: alike(2) }]));
    model.setLevel(1);
    expect(shown(model)).toEqual(["root", "get", "get"]);
    model.setLevel(2);
    expect(model.rows.count).toBe(5);
  });

  it.each([1, 2, 3, 4, 5])("are the same after opening and closing as after a new start (%i)", (seed) => {
    const columns = sample(randomTrees(seed, 400));
    const model = new TraceModel(columns);
    const random = sequence(seed + 100);
    for (let step = 0; step < 200; step += 1) {
      model.toggle(model.rows.at(Math.floor(random() * model.rows.count)));
      if (step % 50 === 0) {
        model.reveal(Math.floor(random() * columns.count));
      }
    }
    const before = Array.from({ length: model.rows.count }, (_, row) => model.rows.at(row));
    model.rows.rebuild();
    expect(Array.from({ length: model.rows.count }, (_, row) => model.rows.at(row))).toEqual(before);
    before.forEach((value, row) => {
      expect(model.rows.rowOfValue(value)).toBe(row);
    });
  });

  it("of a deep trace need no stack", () => {
    const depth = 20_000;
    const columns = { ...sample([{ name: "x", at: 0, for: 1 }]) };
    const deep = {
      ...columns,
      count: depth,
      start: new Float64Array(depth),
      duration: new Float64Array(depth).fill(1),
      id: new Uint8Array(8 * depth),
      end: new Uint32Array(depth).fill(depth),
      name: new Uint32Array(depth),
      process: new Uint32Array(depth),
      service: new Uint16Array(depth),
      depth: Uint16Array.from({ length: depth }, (_, at) => at),
      kind: new Uint8Array(depth),
      flags: new Uint8Array(depth),
    };
    const model = new TraceModel(deep);
    expect(model.rows.count).toBe(depth);
    expect(model.path.span.length).toBe(1);
    model.setFocus("critical");
    expect(model.pyramid.lanes).toBe(depth);
    expect(model.rows.count).toBe(depth);
  });
});

describe("the focus", () => {
  const tree = [
    {
      name: "root",
      at: 0,
      for: 100,
      children: [
        {
          name: "a",
          at: 0,
          for: 10,
          children: [{ name: "a1", at: 0, for: 5, children: [{ name: "a2", at: 0, for: 1 }] }],
        },
        { name: "b", at: 20, for: 10, flags: 1, children: [{ name: "b1", at: 20, for: 5 }] },
      ],
    },
  ];

  it("on what decided shows the way to it and its children", () => {
    const model = new TraceModel(sample(tree));
    model.setDeciding({ failed: [sampleId(1)], open: [] });
    model.setFocus("decided");
    expect(shown(model)).toEqual(["root", "a", "a1"]);
    expect(model.focused).toBe(3);
    expect([...model.deciding]).toEqual([1]);
  });

  it("on errors and on hits shows the way to them", () => {
    const model = new TraceModel(sample(tree));
    model.setFocus("errors");
    expect(shown(model)).toEqual(["root", "b"]);
    model.setFocus("hits");
    expect(shown(model)).toEqual([]);
    model.setHits(spansOfIds(model.columns, [sampleId(3)]));
    expect(shown(model)).toEqual(["root", "a", "a1", "a2"]);
    model.setFocus("all");
    expect(model.rows.count).toBe(6);
  });

  it("shows a folded group if one of its spans is in it", () => {
    const model = new TraceModel(sample([{ name: "root", at: 0, for: 99, children: alike(5) }]));
    model.setDeciding({ failed: [], open: [sampleId(7)] });
    model.setFocus("decided");
    expect(shown(model)).toEqual(["root", "×5 get"]);
    expect(model.group(1).deciding).toBeGreaterThan(0);
  });

  it("is left when a span outside of it is revealed", () => {
    const model = new TraceModel(sample(tree));
    model.setFocus("errors");
    expect(model.rows.at(model.reveal(3))).toBe(3);
    expect(model.focus).toBe("all");
  });
});

it("the next and the previous stop go around the end", () => {
  const stops = Uint32Array.of(2, 5, 9);
  expect(TraceModel.near(stops, 5, 1)).toBe(9);
  expect(TraceModel.near(stops, 9, 1)).toBe(2);
  expect(TraceModel.near(stops, 2, -1)).toBe(9);
});
