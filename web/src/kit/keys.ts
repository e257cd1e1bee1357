/** Keyboard shortcuts: single keys, and `g` with a second key. */

export type Shortcut = "search" | "tests" | "suites" | "runs" | "traces" | "help" | "command";

/** How long the second key may take, in milliseconds. */
export const SEQUENCE_MS = 1000;

export interface KeyPress {
  readonly key: string;
  readonly atMs: number;
  readonly hasModifier: boolean;
  readonly isTyping: boolean;
}

const SINGLE: Readonly<Record<string, Shortcut>> = { "/": "search", "?": "help", ".": "command" };
const AFTER_G: Readonly<Record<string, Shortcut>> = { t: "tests", s: "suites", r: "runs", o: "traces" };

export class KeySequence {
  #gAtMs: number | null = null;

  /** Whether the next key is the second of a sequence. */
  isPending(atMs: number): boolean {
    return this.#gAtMs !== null && atMs - this.#gAtMs <= SEQUENCE_MS;
  }

  /** Returns the shortcut that the press completes; none while the reader types. */
  press({ key, atMs, hasModifier, isTyping }: KeyPress): Shortcut | null {
    if (isTyping || hasModifier) {
      this.#gAtMs = null;
      return null;
    }
    const isSecond = this.#gAtMs !== null && atMs - this.#gAtMs <= SEQUENCE_MS;
    this.#gAtMs = null;
    if (isSecond && AFTER_G[key] !== undefined) {
      return AFTER_G[key];
    }
    if (key === "g") {
      this.#gAtMs = atMs;
      return null;
    }
    return SINGLE[key] ?? null;
  }
}

/** Whether keys belong to an element: text is typed there, or it searches by letters. */
export function isTypingIn(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest('input, textarea, select, [contenteditable="true"], [role="listbox"], [role="menu"]') !==
      null
  );
}
