import { useEffect, useRef } from "react";
import { toggle } from "./commands.ts";
import { Mirror } from "./mirror.tsx";
import { attachPointer } from "./pointer.ts";
import type { Stage } from "./stage.ts";
import styles from "./stage-view.module.css";

interface Props {
  readonly stage: Stage;
  readonly onSelect: (value: number) => void;
}

/** The elements that a stage paints into. It renders once; what moves is painted without React. */
export function StageView({ stage, onSelect }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const select = useRef(onSelect);
  select.current = onSelect;
  useEffect(() => {
    if (canvas.current === null || minimap.current === null) {
      return;
    }
    if (scroller.current === null || spacer.current === null) {
      return;
    }
    const parts = {
      canvas: canvas.current,
      minimap: minimap.current,
      scroller: scroller.current,
      spacer: spacer.current,
    };
    const focusRows = () =>
      parts.scroller.querySelector<HTMLElement>("[data-rows]")?.focus({ preventScroll: true });
    const detachPointer = attachPointer(stage, parts, {
      select: (value) => {
        select.current(value);
        focusRows();
      },
      toggle: (value) => {
        toggle(stage, value);
        focusRows();
      },
    });
    const detach = stage.attach(parts);
    return () => {
      detach();
      detachPointer();
    };
  }, [stage]);
  return (
    <div className={styles.view}>
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas takes no focus; the mirror stands for it */}
      <canvas ref={minimap} className={styles.minimap} aria-hidden="true" />
      <div ref={scroller} className={styles.scroller} data-scroller="">
        <div className={styles.stage}>
          {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: as above */}
          <canvas ref={canvas} className={styles.canvas} aria-hidden="true" data-stage="" />
          <Mirror stage={stage} />
        </div>
        <div ref={spacer} />
      </div>
    </div>
  );
}
