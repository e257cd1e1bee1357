/** Times of a trace as text. */

import { duration } from "../kit/time.ts";

/** A duration that may be negative: the clocks of two processes differ, or a span ended before it began. */
export function signedDuration(nanos: number): string {
  return nanos < 0 ? `−${duration(-nanos)}` : duration(nanos);
}

const UNITS: ReadonlyArray<readonly [string, number]> = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
];

/** The distance of ticks: 1, 2 or 5 of a decimal unit, at least `pixels` apart. */
export function tickStep(spanNs: number, width: number, pixels: number): number {
  const least = (spanNs * pixels) / Math.max(1, width);
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((it) => it * unit).find((it) => it >= least) ?? 10 * unit;
}

/** A moment on the axis, with as many digits as tell it from its neighbours. */
export function tickLabel(nanos: number, step: number): string {
  const largest = Math.max(Math.abs(nanos), step);
  const [unit, size] = UNITS.find(([, it]) => it <= largest) ?? ["ns", 1];
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return `${(nanos / size).toFixed(digits)} ${unit}`;
}

/** Writes a window for the address, such as `12ms..40ms`. */
export function windowText(window: { readonly from: number; readonly to: number }): string {
  return `${momentText(window.from)}..${momentText(window.to)}`;
}

function momentText(nanos: number): string {
  const whole = Math.round(nanos);
  const [unit, size] = UNITS.find(([, it]) => whole % it === 0) ?? ["ns", 1];
  return `${whole / size}${unit === "µs" ? "us" : unit}`;
}

export function readWindow(text: string | undefined): { readonly from: number; readonly to: number } | null {
  const [, from, to] = /^([^.]+(?:\.\d+)?[a-zµ]+)\.\.(.+)$/.exec(text ?? "") ?? [];
  const [fromNs, toNs] = [momentNs(from), momentNs(to)];
  return fromNs !== null && toNs !== null && toNs > fromNs ? { from: fromNs, to: toNs } : null;
}

function momentNs(text: string | undefined): number | null {
  const [, number, unit] = /^(-?\d{1,18}(?:\.\d{1,9})?)(ns|us|µs|ms|s)$/.exec(text ?? "") ?? [];
  const size = UNITS.find(([it]) => it === (unit === "us" ? "µs" : unit))?.[1];
  return number === undefined || size === undefined ? null : Number(number) * size;
}
