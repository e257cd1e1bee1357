/** The waterfall: a row for each span in view, its text at the left and its time at the right. */

import { words } from "../../words.ts";
import { signedDuration } from "../clock.ts";
import { type Columns, FLAG, NONE, nameOf, serviceOf } from "../columns.ts";
import { piecesOf } from "../critical.ts";
import { isGroup, spanOfRow } from "../layout.ts";
import { DECIDING, MARK } from "../marks.ts";
import type { Group } from "../model.ts";
import { paintAxis, paintGrid } from "./axis.ts";
import { AXIS_HEIGHT, FONT, type Frame, type Measures, measures } from "./frame.ts";
import { serviceColour } from "./palette.ts";

/** Where the marks of the claims are. */
const GUTTER = 18;
const STEP = 14;
/** Deeper spans are not indented further; their depth is written. */
const LEVELS_MAX = 12;
const LEVELS_MAX_NARROW = 6;
const DURATION_WIDTH = 64;
const BAR_HEIGHT = 12;
/** For the number and the times of alike spans, behind their name. */
const GROUP_WIDTH = 170;

/** A row, and where it is. */
interface Line {
  readonly value: number;
  readonly span: number;
  readonly group: Group | null;
  readonly y: number;
  readonly deciding: number;
}

export function paintWaterfall(frame: Frame): void {
  const { context, palette, width, height } = frame;
  const size = measures(width);
  context.fillStyle = palette.colour["surface-card"];
  context.fillRect(0, 0, width, height);
  context.textBaseline = "middle";
  const lines = linesOf(frame, size);
  for (const line of lines) {
    paintGround(frame, size, line);
  }
  if (!size.isNarrow) {
    paintGrid(frame, size.timeX, size.timeWidth);
  }
  // By kind and not by row: each change of the font or the colour costs more than a rectangle.
  for (const line of lines) {
    paintTime(frame, size, line);
  }
  for (const line of lines) {
    paintText(frame, size, line);
  }
  paintDurations(frame, size, lines);
  if (!size.isNarrow) {
    context.fillStyle = palette.colour.line;
    context.fillRect(size.timeX - 1, AXIS_HEIGHT, 1, height);
  }
  paintAxis(frame, size.timeX, size.timeWidth);
}

function linesOf(frame: Frame, size: Measures): Line[] {
  const { model, top, height } = frame;
  const first = Math.max(0, Math.floor(top / size.rowHeight));
  const until = Math.min(model.rows.count, Math.ceil((top + height - AXIS_HEIGHT) / size.rowHeight));
  const lines: Line[] = [];
  for (let row = first; row < until; row += 1) {
    const value = model.rows.at(row);
    const span = spanOfRow(value);
    const group = isGroup(value) ? model.group(span) : null;
    const deciding = group === null ? (model.marks[span] ?? 0) & DECIDING : group.deciding;
    lines.push({ value, span, group, y: AXIS_HEIGHT + row * size.rowHeight - top, deciding });
  }
  return lines;
}

function paintGround(frame: Frame, size: Measures, { value, y, deciding }: Line): void {
  const { context, palette, width } = frame;
  const { colour } = palette;
  const isSelected = value === frame.selected;
  const ground = isSelected
    ? colour["surface-active"]
    : (deciding & MARK.failed) !== 0
      ? colour["failed-soft"]
      : deciding !== 0
        ? colour["open-soft"]
        : value === frame.hovered
          ? colour["surface-hover"]
          : null;
  if (ground !== null) {
    context.fillStyle = ground;
    context.fillRect(0, y, width, size.rowHeight);
  }
  if (isSelected) {
    context.fillStyle = colour.focus;
    context.fillRect(0, y, 3, size.rowHeight);
  }
}

function paintTime(frame: Frame, size: Measures, line: Line): void {
  const { context, palette, model, window } = frame;
  const { columns } = model;
  const { span, group } = line;
  const { from, to } = model.interval(line.value);
  const scale = size.timeWidth / (window.to - window.from);
  const barY = line.y + (size.isNarrow ? size.rowHeight - 12 : (size.rowHeight - BAR_HEIGHT) / 2);
  const barHeight = size.isNarrow ? 6 : BAR_HEIGHT;
  const colour = serviceColour(palette, columns.service[span] ?? 0);
  const bar = (start: number, end: number) => {
    const left = Math.max(0, (start - window.from) * scale);
    const right = Math.min(
      size.timeWidth,
      Math.max((end - window.from) * scale, (start - window.from) * scale + 2),
    );
    if (right > 0 && left < size.timeWidth) {
      context.rect(size.timeX + left, barY, Math.max(1, right - left), barHeight);
    }
  };
  context.fillStyle = colour;
  context.beginPath();
  if (group === null || group.members === null) {
    bar(from, to);
  } else {
    paintMembers(columns, group.members, bar);
  }
  context.globalAlpha = group !== null && group.members === null ? 0.55 : 1;
  context.fill();
  context.globalAlpha = 1;
  if (((columns.flags[span] ?? 0) & FLAG.error) !== 0 && group === null) {
    context.fillStyle = palette.colour.failed;
    context.beginPath();
    const left = Math.max(0, (from - window.from) * scale);
    if (left < size.timeWidth && to >= window.from) {
      context.rect(
        size.timeX + left,
        barY - 2,
        Math.max(3, Math.min((to - from) * scale, size.timeWidth - left)),
        2,
      );
    }
    context.fill();
  }
  if (frame.isPathShown && group === null) {
    paintPath(frame, size, span, barY + barHeight);
  }
}

function paintMembers(
  columns: Columns,
  members: Uint32Array,
  bar: (start: number, end: number) => void,
): void {
  for (const member of members) {
    const start = columns.start[member] ?? 0;
    bar(start, start + Math.max(0, columns.duration[member] ?? 0));
  }
}

/** The part of the critical path that is this span's own time. */
function paintPath(frame: Frame, size: Measures, span: number, y: number): void {
  const { context, model, window, palette } = frame;
  const { path } = model;
  const [first, behind] = piecesOf(path, span);
  if (first === behind) {
    return;
  }
  const scale = size.timeWidth / (window.to - window.from);
  context.fillStyle = palette.colour.ink;
  context.beginPath();
  for (let at = first; at < behind; at += 1) {
    const left = Math.max(0, ((path.from[at] ?? 0) - window.from) * scale);
    const right = Math.min(size.timeWidth, ((path.to[at] ?? 0) - window.from) * scale);
    if (right > left) {
      context.rect(size.timeX + left, y - 3, Math.max(1, right - left), 3);
    }
  }
  context.fill();
}

function paintText(frame: Frame, size: Measures, line: Line): void {
  const { context, palette, model, labels } = frame;
  const { columns, marks } = model;
  const { span, group, value } = line;
  const { colour } = palette;
  const flags = columns.flags[span] ?? 0;
  const y = line.y + (size.isNarrow ? 14 : size.rowHeight / 2);
  const levels = Math.min(columns.depth[span] ?? 0, size.isNarrow ? LEVELS_MAX_NARROW : LEVELS_MAX);
  const isDeep = (columns.depth[span] ?? 0) > levels;
  let x = GUTTER + levels * (size.isNarrow ? STEP / 2 : STEP);
  const right = (size.isNarrow ? frame.width - 8 : size.timeX - 8) - DURATION_WIDTH;
  if (line.deciding !== 0) {
    const isFailed = (line.deciding & MARK.failed) !== 0;
    context.fillStyle = isFailed ? colour.failed : colour.open;
    context.font = FONT.strong(palette.font);
    context.fillText(isFailed ? "✘" : "?", 5, y);
  }
  if (model.hasInside(value)) {
    paintTwisty(frame, x, y, model.isOpen(value));
  }
  x += 14;
  context.fillStyle = serviceColour(palette, columns.service[span] ?? 0);
  context.fillRect(x, y - 5, 4, 10);
  x += 9;
  if (group !== null) {
    context.fillStyle = colour["ink-soft"];
    context.fillRect(x, y - 5, 2, 10);
    context.fillRect(x + 4, y - 5, 2, 10);
    x += 11;
  }
  const isStrong = line.deciding !== 0;
  const font = isStrong ? FONT.strong(palette.font) : FONT.text(palette.font);
  const isHit = group === null ? ((marks[span] ?? 0) & MARK.hit) !== 0 : group.hits > 0;
  context.font = font;
  const name = nameOf(columns, span) || words.trace.noName;
  const room = right - x;
  const nameRoom = group === null ? room : Math.max(room / 2, room - GROUP_WIDTH);
  if (isHit) {
    context.fillStyle = colour["mark-surface"];
    context.fillRect(x - 2, y - 9, Math.min(labels.label(name, font).width, nameRoom) + 4, 18);
  }
  context.fillStyle = colour.ink;
  x += labels.paint(name, font, x, y, nameRoom) + 8;
  const small = FONT.small(palette.font);
  context.font = small;
  x = paintNotes(frame, { x, y, right }, flags, group);
  const aside = group === null ? serviceText(columns, span, isDeep) : groupText(group);
  if (right - x > 24) {
    context.fillStyle = colour["ink-soft"];
    labels.paint(aside, small, x, y, right - x);
  }
}

function serviceText(columns: Columns, span: number, isDeep: boolean): string {
  const service = serviceOf(columns, span);
  return isDeep ? `${words.trace.level(columns.depth[span] ?? 0)} · ${service}` : service;
}

function groupText({ count, p50, max }: Group): string {
  return words.trace.group(count, signedDuration(p50), signedDuration(max));
}

interface Spot {
  readonly x: number;
  readonly y: number;
  readonly right: number;
}

/** What is odd about a span, in words: a sign alone would have to be learnt. */
function paintNotes(frame: Frame, spot: Spot, flags: number, group: Group | null): number {
  const { context, palette, labels } = frame;
  const small = FONT.small(palette.font);
  let { x } = spot;
  const note = (text: string, colour: string) => {
    if (spot.right - x > 30) {
      context.fillStyle = colour;
      x += labels.paint(text, small, x, spot.y, spot.right - x) + 8;
    }
  };
  if (group === null && (flags & FLAG.error) !== 0) {
    note(words.trace.error, palette.colour.failed);
  }
  if (group !== null && group.errors > 0) {
    note(words.trace.errors(group.errors), palette.colour.failed);
  }
  if ((flags & FLAG.orphan) !== 0) {
    note(words.trace.orphan, palette.colour.open);
  }
  if ((flags & FLAG.clock) !== 0) {
    note(words.trace.clock, palette.colour.open);
  }
  return x;
}

function paintTwisty(frame: Frame, x: number, y: number, isOpen: boolean): void {
  const { context, palette } = frame;
  context.fillStyle = palette.colour["ink-soft"];
  context.beginPath();
  if (isOpen) {
    context.moveTo(x, y - 2);
    context.lineTo(x + 8, y - 2);
    context.lineTo(x + 4, y + 3);
  } else {
    context.moveTo(x + 2, y - 4);
    context.lineTo(x + 7, y);
    context.lineTo(x + 2, y + 4);
  }
  context.fill();
}

function paintDurations(frame: Frame, size: Measures, lines: readonly Line[]): void {
  const { context, palette, labels, model } = frame;
  const font = FONT.small(palette.font);
  const right = size.isNarrow ? frame.width - 8 : size.timeX - 10;
  context.font = font;
  context.fillStyle = palette.colour["ink-soft"];
  for (const { span, group, y } of lines) {
    const nanos = group === null ? (model.columns.duration[span] ?? 0) : group.to - group.from;
    const text = signedDuration(nanos);
    const { width } = labels.label(text, font);
    context.fillText(text, right - width, y + (size.isNarrow ? 14 : size.rowHeight / 2));
  }
}

/** The row at a point, and whether the point is on its sign for open and closed. */
export function rowAt(
  frame: Pick<Frame, "model" | "width" | "top">,
  x: number,
  y: number,
): { readonly value: number; readonly isTwisty: boolean } {
  const size = measures(frame.width);
  const row = Math.floor((y - AXIS_HEIGHT + frame.top) / size.rowHeight);
  const value = y < AXIS_HEIGHT || row < 0 || row >= frame.model.rows.count ? NONE : frame.model.rows.at(row);
  if (value === NONE) {
    return { value, isTwisty: false };
  }
  const depth = frame.model.columns.depth[spanOfRow(value)] ?? 0;
  const levels = Math.min(depth, size.isNarrow ? LEVELS_MAX_NARROW : LEVELS_MAX);
  const left = GUTTER + levels * (size.isNarrow ? STEP / 2 : STEP);
  return { value, isTwisty: frame.model.hasInside(value) && x >= left - 6 && x < left + 14 };
}
