/** Keys of the trace, by their place on the keyboard, and what they mean. */

export const VIEWS = ["waterfall", "flame", "graph", "table"] as const;
export type View = (typeof VIEWS)[number];

export type Command =
  | { readonly do: "move"; readonly by: number }
  | { readonly do: "first" | "last" | "pageUp" | "pageDown" }
  | { readonly do: "open" | "close" | "details" | "back" }
  | { readonly do: "next" | "previous" }
  | { readonly do: "zoomIn" | "zoomOut" | "panLeft" | "panRight" | "fit" | "whole" }
  | { readonly do: "foldMore" | "foldLess" }
  | { readonly do: "errors" | "critical" }
  | { readonly do: "view"; readonly view: View };

export interface TraceKey {
  /** The place of the key, such as `KeyW`. */
  readonly code: string;
  readonly isShifted: boolean;
  readonly hasModifier: boolean;
  /** Whether the focus is on the rows, or on nothing: then arrows and Enter are not needed elsewhere. */
  readonly isOnRows: boolean;
}

const ANYWHERE: Readonly<Record<string, Command>> = {
  Digit0: { do: "whole" },
  Digit1: { do: "view", view: "waterfall" },
  Digit2: { do: "view", view: "flame" },
  Digit3: { do: "view", view: "graph" },
  Digit4: { do: "view", view: "table" },
  BracketLeft: { do: "foldMore" },
  BracketRight: { do: "foldLess" },
  Escape: { do: "back" },
  KeyA: { do: "panLeft" },
  KeyD: { do: "panRight" },
  KeyE: { do: "errors" },
  KeyF: { do: "fit" },
  KeyJ: { do: "move", by: 1 },
  KeyK: { do: "move", by: -1 },
  KeyN: { do: "next" },
  KeyP: { do: "critical" },
  KeyS: { do: "zoomOut" },
  KeyW: { do: "zoomIn" },
};

const ON_ROWS: Readonly<Record<string, Command>> = {
  ArrowDown: { do: "move", by: 1 },
  ArrowLeft: { do: "close" },
  ArrowRight: { do: "open" },
  ArrowUp: { do: "move", by: -1 },
  End: { do: "last" },
  Enter: { do: "details" },
  Home: { do: "first" },
  NumpadEnter: { do: "details" },
  PageDown: { do: "pageDown" },
  PageUp: { do: "pageUp" },
};

export function commandOf({ code, isShifted, hasModifier, isOnRows }: TraceKey): Command | null {
  if (hasModifier) {
    return null;
  }
  if (isShifted) {
    return code === "KeyN" ? { do: "previous" } : null;
  }
  return ANYWHERE[code] ?? (isOnRows ? (ON_ROWS[code] ?? null) : null);
}
