import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { words } from "../words.ts";
import { Button } from "./button.tsx";

interface Props {
  readonly label?: string;
  /** Returns the text; it may have to be fetched first. */
  readonly text: () => string | Promise<string>;
  readonly look?: "plain" | "quiet";
}

const SHOWN_MS = 2000;

export function CopyButton({ label = words.copy.copy, text, look = "plain" }: Props) {
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") {
      return;
    }
    const timer = setTimeout(() => setState("idle"), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(await text());
      setState("copied");
    } catch {
      // Without a secure context there is no clipboard.
      setState("failed");
    }
  };
  const icon =
    state === "copied" ? <Check size={14} aria-hidden="true" /> : <Copy size={14} aria-hidden="true" />;
  return (
    <Button look={look} icon={icon} onPress={() => void copy()}>
      <span aria-live="polite">
        {state === "copied" ? words.copy.copied : state === "failed" ? words.copy.failed : label}
      </span>
    </Button>
  );
}
