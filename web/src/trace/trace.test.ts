import { describe, expect, it } from "vitest";
import { readWindow, signedDuration, tickLabel, tickStep, windowText } from "./clock.ts";
import { parents } from "./columns.ts";
import { criticalPath } from "./critical.ts";
import { groups, keyBy, numberBy, selfTimes } from "./groups.ts";
import { isSelector, spansWith } from "./hits.ts";
import { commandOf } from "./input.ts";
import { sample } from "./sample.ts";
import { placed, serviceGraph } from "./services.ts";
import { around, panned, zoomed } from "./window.ts";

const TREE = [
  {
    name: "root",
    at: 0,
    for: 100,
    children: [
      {
        name: "call",
        at: 10,
        for: 30,
        service: 1,
        children: [{ name: "query", at: 15, for: 5, service: 2 }],
      },
      { name: "call", at: 30, for: 30, service: 1, flags: 1 },
    ],
  },
];

describe("the table", () => {
  it("groups, with self time that overlapping children do not count twice", () => {
    const columns = sample(TREE);
    expect([...selfTimes(columns)]).toEqual([50, 25, 5, 30]);
    const found = groups(columns, keyBy(columns, "name"), numberBy(columns, "name"));
    expect(found.map((it) => [it.key, it.count, it.errors, it.totalNs, it.selfNs, it.max])).toEqual([
      [["call", "b"], 2, 1, 60, 55, 30],
      [["root", "a"], 1, 0, 100, 50, 100],
      [["query", "c"], 1, 0, 5, 5, 5],
    ]);
    expect(groups(columns, keyBy(columns, "service")).map((it) => it.key[0])).toEqual(["b", "a", "c"]);
  });
});

describe("the service graph", () => {
  it("counts calls between services, errors, and shares of the critical path", () => {
    const columns = sample(TREE);
    const graph = serviceGraph(columns, parents(columns), criticalPath(columns));
    expect(graph.edges).toEqual([
      { from: 0, to: 1, calls: 2, errors: 1 },
      { from: 1, to: 2, calls: 1, errors: 0 },
    ]);
    expect(graph.nodes.reduce((sum, it) => sum + it.share, 0)).toBeCloseTo(1);
    const layers = new Map(placed(graph).map((it) => [it.service, it.layer]));
    expect([layers.get(0), layers.get(1), layers.get(2)]).toEqual([0, 1, 2]);
  });

  it("has a layer for each service of a circle", () => {
    const children = [
      { name: "x", at: 1, for: 5, service: 1, children: [{ name: "y", at: 2, for: 1, service: 0 }] },
    ];
    const columns = sample([{ name: "root", at: 0, for: 9, children }]);
    const graph = serviceGraph(columns, parents(columns), criticalPath(columns));
    expect(placed(graph).map((it) => [it.service, it.layer])).toEqual([
      [0, 0],
      [1, 1],
    ]);
  });
});

describe("the search without a server", () => {
  it("finds names and services, whatever the case", () => {
    const columns = sample(TREE, ["shop", "Payments", "db"]);
    expect([...spansWith(columns, "QUERY")]).toEqual([2]);
    expect([...spansWith(columns, " pay ")]).toEqual([1, 3]);
    expect([...spansWith(columns, "  ")]).toEqual([]);
    expect(isSelector('span[name="x"]')).toBe(true);
    expect(isSelector("GET /cart")).toBe(false);
  });
});

describe("the window of time", () => {
  it("zooms around a moment, and stays within the trace", () => {
    expect(zoomed({ from: 0, to: 1000 }, 2, 500, 1000)).toEqual({ from: 250, to: 750 });
    expect(zoomed({ from: 250, to: 750 }, 0.1, 500, 1000)).toEqual({ from: 0, to: 1000 });
    expect(panned({ from: 100, to: 200 }, -5, 1000)).toEqual({ from: 0, to: 100 });
    const window = zoomed({ from: 0, to: 100 }, 1e9, 50, 100);
    expect(window.to - window.from).toBeCloseTo(10);
    expect(around({ from: 500, to: 500 }, 1000).to).toBeGreaterThan(500);
  });

  it("is written into the address and read from there", () => {
    expect(windowText({ from: 12e6, to: 40e6 })).toBe("12ms..40ms");
    expect(readWindow("12ms..40ms")).toEqual({ from: 12e6, to: 40e6 });
    expect(readWindow(windowText({ from: 1, to: 1234567 }))).toEqual({ from: 1, to: 1234567 });
    for (const text of [undefined, "", "x", "5ms..1ms", "1..2", "1ms..", "..", "1ms..2ms..3ms"]) {
      expect(readWindow(text)).toBeNull();
    }
  });

  it("has ticks with as many digits as they need", () => {
    expect(tickStep(34.8e6, 700, 96)).toBe(5e6);
    expect(tickLabel(5e6, 5e6)).toBe("5 ms");
    expect(tickLabel(1_234_500, 500)).toBe("1.2345 ms");
    expect(tickLabel(0, 1e6)).toBe("0 ms");
    expect(signedDuration(-5e6)).toBe("−5 ms");
  });
});

describe("keys", () => {
  const key = (code: string, more: object = {}) =>
    commandOf({ code, hasModifier: false, isOnRows: false, isShifted: false, ...more });

  it("are those of their place, and arrows belong to the rows only", () => {
    expect(key("KeyJ")).toEqual({ do: "move", by: 1 });
    expect(key("KeyN", { isShifted: true })).toEqual({ do: "previous" });
    expect(key("Digit3")).toEqual({ do: "view", view: "graph" });
    expect(key("ArrowDown")).toBeNull();
    expect(key("ArrowDown", { isOnRows: true })).toEqual({ do: "move", by: 1 });
    expect(key("KeyW", { hasModifier: true })).toBeNull();
    expect(key("KeyW", { isShifted: true })).toBeNull();
  });
});
