/** What a picture is made of. */

import type { TraceModel } from "../model.ts";
import type { TimeWindow } from "../window.ts";
import type { Labels } from "./labels.ts";
import type { Palette } from "./palette.ts";

export const AXIS_HEIGHT = 26;
/** Below this width a row has two lines: the text, and the time under it. */
const NARROW_WIDTH = 640;

export interface Frame {
  readonly context: CanvasRenderingContext2D;
  readonly labels: Labels;
  readonly palette: Palette;
  readonly model: TraceModel;
  /** In CSS pixels. */
  readonly width: number;
  readonly height: number;
  /** Device pixels for each of them. */
  readonly ratio: number;
  /** The pixels that are scrolled away at the top. */
  readonly top: number;
  readonly window: TimeWindow;
  /** The rows, as values of the layout, or `NONE`. */
  readonly selected: number;
  readonly hovered: number;
  readonly isPathShown: boolean;
}

/** The sizes of a picture of this width. */
export interface Measures {
  readonly isNarrow: boolean;
  readonly rowHeight: number;
  /** Where the time begins. */
  readonly timeX: number;
  readonly timeWidth: number;
}

export function measures(width: number): Measures {
  const isNarrow = width < NARROW_WIDTH;
  const timeX = isNarrow ? 8 : Math.round(Math.min(560, Math.max(260, width * 0.38)));
  return { isNarrow, rowHeight: isNarrow ? 40 : 24, timeX, timeWidth: Math.max(1, width - timeX - 8) };
}

export const FLAME_LANE = 18;

export const FONT = {
  text: (family: string) => `400 12.5px ${family}`,
  strong: (family: string) => `600 12.5px ${family}`,
  small: (family: string) => `400 11.5px ${family}`,
} as const;
