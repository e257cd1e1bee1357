import { useEffect, useState } from "react";

/** How long a text stays as it is before it is requested. */
const SETTLED_MS = 200;

/** Returns a text as it was when typing last paused. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
