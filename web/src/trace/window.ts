/** The window of time: zooming and panning, within the bounds of the trace. */

export interface TimeWindow {
  readonly from: number;
  readonly to: number;
}

/** No window is shorter, in nanoseconds. */
const LEAST_NS = 10;
/** The time that is shown on both sides of a span, as a share of it. */
const MARGIN = 0.04;

export function wholeWindow(spanNs: number): TimeWindow {
  return { from: 0, to: Math.max(LEAST_NS, spanNs) };
}

/** A window within the trace. Where it is longer than the trace, it is the whole. */
export function bounded(window: TimeWindow, spanNs: number): TimeWindow {
  const whole = wholeWindow(spanNs);
  const length = Math.max(LEAST_NS, window.to - window.from);
  if (!Number.isFinite(length) || length >= whole.to) {
    return whole;
  }
  const from = Math.min(Math.max(0, window.from), whole.to - length);
  return { from, to: from + length };
}

/** Zooms by a factor; the moment `at` stays where it is. */
export function zoomed(window: TimeWindow, factor: number, at: number, spanNs: number): TimeWindow {
  return bounded({ from: at - (at - window.from) / factor, to: at + (window.to - at) / factor }, spanNs);
}

export function panned(window: TimeWindow, share: number, spanNs: number): TimeWindow {
  const by = (window.to - window.from) * share;
  return bounded({ from: window.from + by, to: window.to + by }, spanNs);
}

/** The window around an interval, with some room on both sides. */
export function around(interval: TimeWindow, spanNs: number): TimeWindow {
  const length = Math.max(LEAST_NS, interval.to - interval.from);
  const room = length * MARGIN;
  return bounded({ from: interval.from - room, to: interval.from + length + room }, spanNs);
}
