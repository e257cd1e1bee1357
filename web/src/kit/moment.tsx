import { useEffect, useState } from "react";
import { ago, dateTime } from "./time.ts";

const STEP_MS = 15_000;

/** How long ago a moment was; the moment itself on hover. */
export function Moment({ at }: { readonly at: string }) {
  const [nowMs, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), STEP_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={at} title={dateTime(at)}>
      {ago(at, Math.max(nowMs, Date.now()))}
    </time>
  );
}
