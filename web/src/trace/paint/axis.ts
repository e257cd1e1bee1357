/** The axis of time at the top, and the lines of its ticks. */

import { tickLabel, tickStep } from "../clock.ts";
import type { TimeWindow } from "../window.ts";
import { AXIS_HEIGHT, FONT, type Frame } from "./frame.ts";

const TICK_PIXELS = 96;

/** Visits the ticks of the window from left to right. */
export function eachTick(
  frame: Frame,
  x: number,
  width: number,
  visit: (tickX: number, label: string) => void,
): void {
  const { from, to } = frame.window;
  const step = tickStep(to - from, width, TICK_PIXELS);
  for (let at = Math.ceil(from / step); at * step <= to; at += 1) {
    visit(x + ((at * step - from) / (to - from)) * width, tickLabel(at * step, step));
  }
}

export function paintGrid(frame: Frame, x: number, width: number): void {
  const { context, palette, height } = frame;
  context.fillStyle = palette.colour.line;
  eachTick(frame, x, width, (tickX) => {
    context.fillRect(Math.round(tickX), AXIS_HEIGHT, 1, height - AXIS_HEIGHT);
  });
}

export function paintAxis(frame: Frame, x: number, width: number): void {
  const { context, palette } = frame;
  context.fillStyle = palette.colour["surface-sunk"];
  context.fillRect(0, 0, frame.width, AXIS_HEIGHT);
  context.fillStyle = palette.colour.line;
  context.fillRect(0, AXIS_HEIGHT - 1, frame.width, 1);
  context.font = FONT.small(palette.font);
  context.fillStyle = palette.colour["ink-soft"];
  eachTick(frame, x, width, (tickX, label) => {
    context.fillRect(Math.round(tickX), AXIS_HEIGHT - 6, 1, 6);
    const room = context.measureText(label).width;
    if (tickX + room + 4 <= frame.width) {
      context.fillText(label, Math.round(tickX) + 4, AXIS_HEIGHT / 2);
    }
  });
}

/** The part of the time that is being selected. */
export function paintBrush(
  frame: Frame,
  brushed: TimeWindow,
  area: { readonly timeX: number; readonly timeWidth: number },
): void {
  const { context, palette, window, height } = frame;
  const scale = area.timeWidth / (window.to - window.from);
  const left = area.timeX + (brushed.from - window.from) * scale;
  context.fillStyle = palette.colour.focus;
  context.globalAlpha = 0.18;
  context.fillRect(left, 0, (brushed.to - brushed.from) * scale, height);
  context.globalAlpha = 1;
}
