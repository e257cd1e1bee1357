import { expect, it } from "vitest";
import { nameOf } from "./columns.ts";
import { criticalPath, piecesOf } from "./critical.ts";
import { randomTrees, sample } from "./sample.ts";

function named(roots: Parameters<typeof sample>[0]): Array<readonly [string, number, number]> {
  const columns = sample(roots);
  const path = criticalPath(columns);
  return [...path.span].map(
    (span, at) => [nameOf(columns, span), path.from[at] ?? 0, path.to[at] ?? 0] as const,
  );
}

it("goes backwards from the end through the children that ended last", () => {
  const children = [
    { name: "first", at: 10, for: 20 },
    { name: "beside", at: 12, for: 5 },
    { name: "last", at: 50, for: 40 },
  ];
  expect(named([{ name: "root", at: 0, for: 100, children }])).toEqual([
    ["root", 0, 10],
    ["root", 30, 50],
    ["root", 90, 100],
    ["first", 10, 30],
    ["last", 50, 90],
  ]);
});

it("counts a child that outlives its parent until the end of the parent", () => {
  expect(named([{ name: "root", at: 0, for: 50, children: [{ name: "long", at: 10, for: 500 }] }])).toEqual([
    ["root", 0, 10],
    ["long", 10, 50],
  ]);
});

it("leaves out what ran beside a later child", () => {
  const children = [
    { name: "beside", at: 2, for: 7 },
    { name: "later", at: 5, for: 5 },
  ];
  expect(named([{ name: "root", at: 0, for: 10, children }])).toEqual([
    ["root", 0, 5],
    ["later", 5, 10],
  ]);
});

it("begins at the longest root, and is empty without spans", () => {
  expect(
    named([
      { name: "short", at: 0, for: 5 },
      { name: "long", at: 2, for: 50 },
    ]),
  ).toEqual([["long", 2, 52]]);
  expect(named([])).toEqual([]);
});

it.each([1, 2, 3, 4, 5, 6])("covers the root exactly once, whatever the trace (%i)", (seed) => {
  const columns = sample(randomTrees(seed, 300));
  const path = criticalPath(columns);
  const pieces = [...path.span]
    .map((_, at) => [path.from[at] ?? 0, path.to[at] ?? 0] as const)
    .sort((a, b) => a[0] - b[0]);
  pieces.forEach(([from, to], at) => {
    expect(to).toBeGreaterThan(from);
    expect(from).toBe(at === 0 ? from : pieces[at - 1]?.[1]);
  });
  expect(path.totalNs).toBe((pieces.at(-1)?.[1] ?? 0) - (pieces[0]?.[0] ?? 0));
  path.span.forEach((span, at) => {
    const [first, behind] = piecesOf(path, span);
    expect(at >= first && at < behind).toBe(true);
  });
});
