/** Mouse and touch on the canvas and the minimap. */

import { NONE } from "./columns.ts";
import { AXIS_HEIGHT } from "./paint/frame.ts";
import type { Stage, StageParts } from "./stage.ts";
import { panned, type TimeWindow, zoomed } from "./window.ts";

/** A drag over fewer pixels is a click. */
const DRAG_MIN = 4;
const WHEEL_ZOOM = 1.0018;

export interface PointerHost {
  select(value: number): void;
  toggle(value: number): void;
}

interface Drag {
  readonly kind: "axis" | "pan" | "minimap" | "press";
  readonly x: number;
  readonly y: number;
  readonly window: TimeWindow;
  readonly moment: number;
}

/** Listens until the returned function is called. */
export function attachPointer(stage: Stage, parts: StageParts, host: PointerHost): () => void {
  let drag: Drag | null = null;
  const place = (event: MouseEvent, element: HTMLElement) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const momentOnMinimap = (x: number) => (x / Math.max(1, stage.width)) * stage.model.columns.spanNs;

  const onDown = (event: PointerEvent) => {
    if (event.button !== 0) {
      return;
    }
    const isMinimap = event.currentTarget === parts.minimap;
    const { x, y } = place(event, isMinimap ? parts.minimap : parts.canvas);
    const kind = isMinimap ? "minimap" : y < AXIS_HEIGHT ? "axis" : event.shiftKey ? "pan" : "press";
    const moment = isMinimap ? momentOnMinimap(x) : stage.momentAt(x);
    drag = { kind, x, y, window: stage.shownWindow(), moment };
    // A finger scrolls the rows; the browser does that.
    if (kind !== "press" && event.currentTarget instanceof Element) {
      event.currentTarget.setPointerCapture(event.pointerId);
      event.preventDefault();
    }
  };
  const onMove = (event: PointerEvent) => {
    const isMinimap = event.currentTarget === parts.minimap;
    const { x, y } = place(event, isMinimap ? parts.minimap : parts.canvas);
    if (!isMinimap) {
      stage.pointer = stage.momentAt(x);
      stage.hover(drag === null && event.pointerType === "mouse" ? stage.at(x, y).value : NONE);
    }
    if (drag === null || Math.abs(x - drag.x) < DRAG_MIN) {
      return;
    }
    if (drag.kind === "pan") {
      stage.setWindow(
        panned(drag.window, (drag.x - x) / stage.timeArea().timeWidth, stage.model.columns.spanNs),
      );
    } else if (drag.kind !== "press") {
      const moment = drag.kind === "minimap" ? momentOnMinimap(x) : momentIn(stage, drag.window, x);
      const shown = { from: Math.min(moment, drag.moment), to: Math.max(moment, drag.moment) };
      if (drag.kind === "minimap") {
        stage.setWindow(shown);
      } else {
        stage.brush(shown);
      }
    }
  };
  const onUp = (event: PointerEvent) => {
    const ended = drag;
    drag = null;
    const brushed = stage.brushed;
    stage.brush(null);
    const isMinimap = event.currentTarget === parts.minimap;
    const { x, y } = place(event, isMinimap ? parts.minimap : parts.canvas);
    if (brushed !== null) {
      stage.setWindow(brushed);
    } else if (ended !== null && Math.hypot(x - ended.x, y - ended.y) < DRAG_MIN) {
      if (ended.kind === "press") {
        const { value, isTwisty } = stage.at(x, y);
        if (isTwisty) {
          host.toggle(value);
        } else if (value !== NONE) {
          host.select(value);
        }
      } else if (ended.kind === "minimap") {
        centre(stage, ended.moment);
      }
    }
  };
  const onLeave = () => {
    stage.pointer = null;
    stage.hover(NONE);
  };
  const onCancel = () => {
    drag = null;
    stage.brush(null);
  };
  const onWheel = (event: WheelEvent) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const at = stage.momentAt(place(event, parts.canvas).x);
      stage.setWindow(
        zoomed(stage.shownWindow(), WHEEL_ZOOM ** -event.deltaY, at, stage.model.columns.spanNs),
      );
      return;
    }
    const across = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (Math.abs(across) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      stage.setWindow(
        panned(stage.shownWindow(), across / stage.timeArea().timeWidth, stage.model.columns.spanNs),
      );
      return;
    }
    if (stage.scroll.wheel(event.deltaMode === 1 ? event.deltaY * stage.rowHeight : event.deltaY)) {
      event.preventDefault();
    }
  };

  const controller = new AbortController();
  const { signal } = controller;
  for (const element of [parts.canvas, parts.minimap]) {
    element.addEventListener("pointerdown", onDown, { signal });
    element.addEventListener("pointermove", onMove, { signal });
    element.addEventListener("pointerup", onUp, { signal });
    element.addEventListener("pointercancel", onCancel, { signal });
    element.addEventListener("pointerleave", onLeave, { signal });
  }
  parts.canvas.addEventListener("wheel", onWheel, { passive: false, signal });
  return () => controller.abort();
}

/** The moment at a point in a window that was shown before. */
function momentIn(stage: Stage, window: TimeWindow, x: number): number {
  const { timeX, timeWidth } = stage.timeArea();
  const share = Math.min(1, Math.max(0, (x - timeX) / timeWidth));
  return window.from + share * (window.to - window.from);
}

function centre(stage: Stage, moment: number): void {
  const { from, to } = stage.shownWindow();
  const half = (to - from) / 2;
  stage.setWindow({ from: moment - half, to: moment + half });
}
