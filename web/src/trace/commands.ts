/** What a command of the keyboard does to a stage. */

import { NONE } from "./columns.ts";
import { FOCUSES, type Focus } from "./focus.ts";
import type { Command, View } from "./input.ts";
import { isGroup, spanOfRow } from "./layout.ts";
import { TraceModel } from "./model.ts";
import type { Stage } from "./stage.ts";
import { around, panned, wholeWindow, zoomed } from "./window.ts";

const ZOOM = 1.5;
const PAN = 0.15;

/** What is not on the canvas. */
export interface CommandHost {
  view(view: View): void;
  /** Opens the side panel, or closes it; false if it was closed before. */
  details(isOpen: boolean): boolean;
  setFocus(focus: Focus): void;
  /** Empties the search; false if it was empty before. */
  clearSearch(): boolean;
}

/** Returns whether the command did anything. */
export function run(stage: Stage, host: CommandHost, command: Command): boolean {
  const { model } = stage;
  switch (command.do) {
    case "move":
      return step(stage, command.by);
    case "pageDown":
      return step(stage, stage.rowsInView - 1);
    case "pageUp":
      return step(stage, 1 - stage.rowsInView);
    case "first":
      return step(stage, Number.NEGATIVE_INFINITY);
    case "last":
      return step(stage, Number.POSITIVE_INFINITY);
    case "open":
    case "close":
      return openOrClose(stage, command.do === "open");
    case "details":
      return stage.selected !== NONE && host.details(true);
    case "next":
    case "previous":
      return jump(stage, command.do === "next" ? 1 : -1);
    case "zoomIn":
    case "zoomOut":
      return zoom(stage, command.do === "zoomIn" ? ZOOM : 1 / ZOOM);
    case "panLeft":
    case "panRight":
      stage.setWindow(
        panned(stage.shownWindow(), command.do === "panLeft" ? -PAN : PAN, model.columns.spanNs),
      );
      return true;
    case "fit":
      if (stage.selected === NONE) {
        stage.setFit(!stage.isFit);
      } else {
        stage.setWindow(around(model.interval(stage.selected), model.columns.spanNs));
      }
      return true;
    case "whole":
      stage.setWindow(wholeWindow(model.columns.spanNs));
      return true;
    case "foldMore":
    case "foldLess":
      setLevel(stage, (model.level ?? model.deepest + 1) + (command.do === "foldMore" ? -1 : 1));
      return true;
    case "errors":
      host.setFocus(model.focus === "errors" ? "all" : "errors");
      return true;
    case "critical":
      stage.showPath(!stage.isPathShown);
      return true;
    case "view":
      host.view(command.view);
      return true;
    case "back":
      return back(stage, host);
  }
}

export function setLevel(stage: Stage, level: number): void {
  stage.model.setLevel(level);
  keepSelected(stage);
}

/** Shows a span, whatever hides it, and selects it. */
export function goTo(stage: Stage, span: number): void {
  stage.model.reveal(span);
  stage.changed();
  stage.select(span);
}

export function toggle(stage: Stage, value: number): void {
  stage.model.toggle(value);
  stage.changed();
}

/** Jumps to the next hit, or to the next span that decided, or to the next error. */
export function jump(stage: Stage, by: 1 | -1): boolean {
  const from = stage.selected === NONE ? NONE : spanOfRow(stage.selected);
  const span = TraceModel.near(stage.model.stops, from, by);
  if (span === NONE) {
    return false;
  }
  goTo(stage, span);
  return true;
}

/** The focus that a trace opens with: what decided, if anything did. */
export function focusOf(text: string | undefined, model: TraceModel): Focus {
  const given = FOCUSES.find((it) => it === text);
  return given ?? (model.deciding.length > 0 ? "decided" : "all");
}

function step(stage: Stage, by: number): boolean {
  const { rows } = stage.model;
  if (stage.mode !== "waterfall" || rows.count === 0) {
    return false;
  }
  const selected = stage.selected === NONE ? -1 : rows.rowOfValue(stage.selected);
  const from = selected === -1 ? stage.snapshot().first - Math.sign(by) : selected;
  const row = Math.min(Math.max(0, from + by), rows.count - 1);
  stage.select(rows.at(row));
  return true;
}

/** Right opens, then goes inside; left closes, then goes outside. */
function openOrClose(stage: Stage, isOpening: boolean): boolean {
  const { model, selected } = stage;
  if (selected === NONE) {
    return false;
  }
  if (model.hasInside(selected) && model.isOpen(selected) !== isOpening) {
    toggle(stage, selected);
    return true;
  }
  if (isOpening) {
    return model.hasInside(selected) && step(stage, 1);
  }
  const span = spanOfRow(selected);
  const alike = model.leader[span] ?? NONE;
  const group = alike === NONE || isGroup(selected) ? -1 : model.rows.rowAtOrAfter(alike);
  const above = model.parent[span] ?? NONE;
  if (group >= 0) {
    stage.select(model.rows.at(group));
  } else if (above !== NONE) {
    stage.select(above);
  }
  return true;
}

function zoom(stage: Stage, factor: number): boolean {
  const window = stage.shownWindow();
  const middle = (window.from + window.to) / 2;
  const at = stage.pointer ?? (stage.selected === NONE ? middle : stage.model.interval(stage.selected).from);
  const isInside = at >= window.from && at <= window.to;
  stage.setWindow(zoomed(window, factor, isInside ? at : middle, stage.model.columns.spanNs));
  return true;
}

/** One step outwards: the panel, the selection, the search, the zoom. */
function back(stage: Stage, host: CommandHost): boolean {
  if (host.details(false)) {
    return true;
  }
  if (stage.selected !== NONE) {
    stage.select(NONE);
    return true;
  }
  if (host.clearSearch()) {
    return true;
  }
  if (!stage.snapshot().isWhole && !stage.isFit) {
    stage.setWindow(wholeWindow(stage.model.columns.spanNs));
    return true;
  }
  return false;
}

/** A selected row that is closed away gives the selection to the nearest one above it. */
export function keepSelected(stage: Stage): void {
  const { model, selected } = stage;
  let value = selected;
  while (value !== NONE && model.rows.rowOfValue(value) === -1) {
    const alike = model.leader[spanOfRow(value)] ?? NONE;
    const group = alike === NONE ? -1 : model.rows.rowAtOrAfter(alike);
    const shown = group === -1 ? NONE : model.rows.at(group);
    value =
      shown !== NONE && isGroup(shown) && spanOfRow(shown) === alike
        ? shown
        : (model.parent[spanOfRow(value)] ?? NONE);
  }
  stage.changed();
  if (value !== selected) {
    stage.select(value);
  }
}
