import { useEffect, useRef } from "react";
import { isTypingIn, KeySequence, type Shortcut } from "./keys.ts";

const sequence = new KeySequence();
const handlers = new Map<Shortcut, Set<() => void>>();

function onKeyDown(event: KeyboardEvent): void {
  // Behind an open dialog nothing happens.
  if (event.defaultPrevented || document.querySelector('[role="dialog"]') !== null) {
    return;
  }
  const shortcut = sequence.press({
    atMs: event.timeStamp,
    hasModifier: event.ctrlKey || event.metaKey || event.altKey,
    isTyping: isTypingIn(event.target),
    key: event.key,
  });
  const called = shortcut === null ? undefined : handlers.get(shortcut);
  if (called !== undefined && called.size > 0) {
    event.preventDefault();
    for (const handler of called) {
      handler();
    }
  }
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
