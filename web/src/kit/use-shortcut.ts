import { useEffect, useRef } from "react";
import { isTypingIn, KeySequence, type Shortcut } from "./keys.ts";

const sequence = new KeySequence();
const handlers = new Map<Shortcut, Set<() => void>>();
/** What a screen does with the keys that are no shortcut; each returns whether the key had a meaning. */
const keyHandlers = new Set<(event: KeyboardEvent) => boolean>();

function onKeyDown(event: KeyboardEvent): void {
  // Behind an open dialog nothing happens.
  if (event.defaultPrevented || document.querySelector('[role="dialog"]') !== null) {
    return;
  }
  const isTyping = isTypingIn(event.target);
  const wasPending = sequence.isPending(event.timeStamp);
  const shortcut = sequence.press({
    atMs: event.timeStamp,
    hasModifier: event.ctrlKey || event.metaKey || event.altKey,
    isTyping,
    key: event.key,
  });
  const called = shortcut === null ? undefined : handlers.get(shortcut);
  if (called !== undefined && called.size > 0) {
    event.preventDefault();
    for (const handler of called) {
      handler();
    }
  } else if (shortcut === null && !isTyping && !wasPending) {
    const isUsed = [...keyHandlers].some((handler) => handler(event));
    if (isUsed) {
      event.preventDefault();
    }
  }
}

/** Calls the handler with each key that is no shortcut, unless the reader types, as long as the component is shown. */
export function useKeys(handler: (event: KeyboardEvent) => boolean): void {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => {
    const call = (event: KeyboardEvent) => latest.current(event);
    keyHandlers.add(call);
    window.addEventListener("keydown", onKeyDown);
    return () => {
      keyHandlers.delete(call);
    };
  }, []);
}

/** Calls the handler whenever the shortcut is pressed, as long as the component is shown. */
export function useShortcut(shortcut: Shortcut, handler: () => void): void {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => {
    const call = () => latest.current();
    const called = handlers.get(shortcut) ?? new Set();
    handlers.set(shortcut, called.add(call));
    window.addEventListener("keydown", onKeyDown);
    return () => {
      called.delete(call);
    };
  }, [shortcut]);
}
