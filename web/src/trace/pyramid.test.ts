import { describe, expect, it } from "vitest";
import { type Columns, endOf, NONE } from "./columns.ts";
import { badness, MARK, setMark } from "./marks.ts";
import { Cells, Pyramid, type Window } from "./pyramid.ts";
import { randomTrees, sample, sequence } from "./sample.ts";

/** Looks at every span for every cell. */
function naive(columns: Columns, marks: Uint8Array, lane: number, window: Window, width: number): number[] {
  const scale = width / (window.to - window.from);
  const spans = [...columns.depth.keys()].filter((span) => columns.depth[span] === lane);
  return Array.from({ length: width }, (_, cell) => {
    let worst = NONE;
    for (const span of spans) {
      const first = Math.floor(((columns.start[span] ?? 0) - window.from) * scale);
      const last = Math.max(first, Math.ceil((endOf(columns, span) - window.from) * scale) - 1);
      if (cell < first || cell > last) {
        continue;
      }
      const [bad, length] = [badness(columns, marks, span), columns.duration[span] ?? 0];
      const [than, thanLength] = [badness(columns, marks, worst), columns.duration[worst] ?? 0];
      if (worst === NONE || bad > than || (bad === than && length > thanLength)) {
        worst = span;
      }
    }
    return worst;
  });
}

function painted(pyramid: Pyramid, lane: number, window: Window, width: number): number[] {
  const cells = new Cells(width);
  pyramid.paint(lane, window, cells);
  return [...cells.span];
}

describe("the pyramid", () => {
  it.each([
    [1, 50],
    [2, 300],
    [3, 1000],
    [4, 2000],
  ])("shows the same as a painter that looks at every span (trace %i of %i spans)", (seed, count) => {
    const columns = sample(randomTrees(seed, count));
    const marks = new Uint8Array(columns.count);
    const random = sequence(seed);
    for (let span = 0; span < count; span += 1) {
      setMark(marks, span, random() < 0.01 ? MARK.failed : random() < 0.03 ? MARK.hit : 0);
    }
    const pyramid = new Pyramid(columns, marks);
    const windows = [
      { from: 0, to: columns.spanNs },
      { from: 1000, to: 1300 },
      { from: 4321.5, to: 9000.25 },
      { from: columns.spanNs + 10, to: columns.spanNs + 20 },
    ];
    for (const window of windows) {
      for (let lane = 0; lane < Math.min(pyramid.lanes, 12); lane += 1) {
        expect(painted(pyramid, lane, window, 97)).toEqual(naive(columns, marks, lane, window, 97));
      }
    }
  });

  it("follows the marks", () => {
    const columns = sample(randomTrees(9, 2000));
    const marks = new Uint8Array(columns.count);
    const pyramid = new Pyramid(columns, marks);
    const window = { from: 0, to: columns.spanNs };
    const lane = columns.depth[1500] ?? 0;
    setMark(marks, 1500, MARK.failed);
    pyramid.refresh();
    expect(painted(pyramid, lane, window, 50)).toContain(1500);
    expect(painted(pyramid, lane, window, 50)).toEqual(naive(columns, marks, lane, window, 50));
  });

  it("shows a decided span among 300,000 others", () => {
    const count = 300_000;
    const base = sample([{ name: "x", at: 0, for: 1 }]);
    const flat: Columns = {
      ...base,
      count,
      spanNs: count,
      start: Float64Array.from({ length: count }, (_, at) => (at * 7919) % count),
      duration: new Float64Array(count).fill(5),
      id: new Uint8Array(8),
      end: Uint32Array.from({ length: count }, (_, at) => at + 1),
      name: new Uint32Array(count),
      process: new Uint32Array(count),
      service: new Uint16Array(count),
      depth: new Uint16Array(count),
      kind: new Uint8Array(count),
      flags: new Uint8Array(count),
    };
    const marks = new Uint8Array(count);
    setMark(marks, 254_321, MARK.open);
    const cells = painted(new Pyramid(flat, marks), 0, { from: 0, to: count }, 1440);
    const at = Math.floor((((254_321 * 7919) % count) / count) * 1440);
    expect(cells[at]).toBe(254_321);
    expect(cells.includes(NONE)).toBe(false);
  });

  it("shows of overlapping spans the worst one, at most a cell beside its place", () => {
    const count = 4_000;
    const random = sequence(5);
    const columns = sample(
      Array.from({ length: count }, () => ({
        name: "x",
        at: Math.floor(random() * 1_000_000),
        for: Math.floor(random() ** 4 * 300_000),
      })),
    );
    const marks = new Uint8Array(count);
    for (let span = 0; span < count; span += 1) {
      setMark(marks, span, random() < 0.002 ? MARK.failed : random() < 0.01 ? MARK.hit : 0);
    }
    const pyramid = new Pyramid(columns, marks);
    const [worst, length] = [
      (span: number) => badness(columns, marks, span),
      (span: number) => columns.duration[span] ?? 0,
    ];
    for (const part of [1, 2, 7, 90]) {
      const window = { from: columns.spanNs / 3, to: columns.spanNs / 3 + columns.spanNs / part / 2 };
      const width = 120;
      const cellNs = (window.to - window.from) / width;
      const exact = naive(columns, marks, 0, window, width);
      const wrong = painted(pyramid, 0, window, width).filter((span, cell) => {
        const expected = exact[cell] ?? NONE;
        if (span === NONE || expected === NONE) {
          return span === NONE && expected !== NONE;
        }
        const at = window.from + cell * cellNs;
        const isNear = (columns.start[span] ?? 0) < at + 2 * cellNs && endOf(columns, span) >= at - cellNs;
        const isAsBad =
          worst(span) > worst(expected) ||
          (worst(span) === worst(expected) && length(span) >= length(expected));
        return !isNear || !isAsBad;
      });
      expect(wrong).toEqual([]);
    }
  });

  it("of no spans has no lanes", () => {
    expect(new Pyramid(sample([]), new Uint8Array(0)).lanes).toBe(0);
  });
});
