import { expect, it } from "vitest";
import type { Schemas } from "../api/client.ts";
import { timeline } from "./lanes.ts";

type Process = Schemas["ProcessQuiet"];

function process(service: string, silentNs: number, quietNs: number): Process {
  return { service, instance: null, spans: 1, delayNs: 0, silentNs, quietNs, because: "seen" };
}

function settlement(waitedNs: number, ...processes: Process[]): Schemas["Settlement"] {
  return {
    unsettled: [],
    spans: 1,
    waitedNs,
    silentNs: null,
    quietNs: 0,
    lastAt: null,
    drained: false,
    processes,
  };
}

it("places the last arrival and the end of the quiet period of each process", () => {
  const line = timeline(settlement(100, process("a", 60, 40), process("b", 20, 30)));
  expect(line).toMatchObject({ nanos: 110, answered: 0 });
  expect(line?.decided).toBeCloseTo(100 / 110);
  const [a, b] = line?.lanes ?? [];
  expect([a?.last, a?.due, a?.isReached, a?.isCut]).toEqual([40 / 110, 80 / 110, true, false]);
  expect([b?.last, b?.due, b?.isReached, b?.isCut]).toEqual([80 / 110, 1, false, false]);
});

it("places the arrivals of each process, the densest time as the tallest", () => {
  const one = { ...process("a", 60, 40), arrivals: { firstNs: 90, everyNs: 10, spans: [4, 0, 0, 2] } };
  const two = { ...process("b", 60, 40), arrivals: { firstNs: 80, everyNs: 20, spans: [2] } };
  const line = timeline(settlement(100, one, two));
  const [a, b] = line?.lanes ?? [];
  expect(a?.arrived).toEqual([
    { from: 0.1, to: 0.2, height: 1 },
    { from: 0.4, to: 0.5, height: 0.5 },
  ]);
  expect(b?.arrived).toEqual([{ from: 0.2, to: 0.4, height: 0.25 }]);
});

it("knows no arrivals of a record that has none", () => {
  expect(timeline(settlement(100, process("a", 60, 40)))?.lanes[0]?.arrived).toBeNull();
});

it("begins with spans that came before the response", () => {
  const line = timeline(settlement(50, process("a", 150, 10)));
  expect(line?.nanos).toBe(150);
  expect(line?.answered).toBeCloseTo(2 / 3);
  expect(line?.lanes[0]?.last).toBe(0);
});

it("cuts a quiet period that is much longer than the wait", () => {
  const line = timeline(settlement(100, process("a", 10, 5_000_000)));
  expect(line?.nanos).toBe(125);
  expect(line?.lanes[0]).toMatchObject({ isCut: true, isReached: false, due: 1 });
});

it("is none without processes, and without time", () => {
  expect(timeline(settlement(100))).toBeNull();
  expect(timeline(settlement(0, process("a", 0, 0)))).toBeNull();
});
