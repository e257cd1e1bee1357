import {
  ChevronDown,
  ChevronUp,
  FoldVertical,
  Maximize2,
  Route,
  UnfoldVertical,
  ZoomIn,
  ZoomOut,
} from "lucide-react";
import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { afterFrame } from "../kit/after-frame.ts";
import { Button } from "../kit/button.tsx";
import { words } from "../words.ts";
import { type CommandHost, run, setLevel } from "./commands.ts";
import { FOCUSES, type Focus } from "./focus.ts";
import { type Command, VIEWS, type View } from "./input.ts";
import type { TraceModel } from "./model.ts";
import type { Stage } from "./stage.ts";
import styles from "./toolbar.module.css";

interface Props {
  readonly stage: Stage;
  readonly host: CommandHost;
  readonly view: View;
  readonly focus: Focus;
  readonly isFolded: boolean;
  readonly onFolding: (isFolded: boolean) => void;
  /** The search field, which has its own state. */
  readonly search: ReactNode;
}

export function Toolbar({ stage, host, view, focus, isFolded, onFolding, search }: Props) {
  const resting = useSyncExternalStore(stage.subscribe, stage.snapshot);
  const does = (command: Command) => () => void run(stage, host, command);
  const isRows = view === "waterfall";
  return (
    <div className={styles.bar}>
      {/* biome-ignore lint/a11y/useSemanticElements: buttons that belong together, and no form */}
      <div className={styles.views} role="group" aria-label={words.trace.views.label}>
        {VIEWS.map((it) => (
          <button
            key={it}
            type="button"
            className={styles.view}
            aria-pressed={it === view}
            onClick={() => host.view(it)}
          >
            {words.trace.views[it]}
          </button>
        ))}
      </div>
      <FocusSelect model={stage.model} focus={focus} onChange={(it) => host.setFocus(it)} />
      {search}
      <div className={styles.all}>
        {isRows || view === "flame" ? (
          // biome-ignore lint/a11y/useSemanticElements: buttons that belong together, and no form
          <div className={styles.tools} role="group" aria-label={words.trace.time}>
            <Button
              look="quiet"
              icon={<ZoomOut size={15} aria-hidden="true" />}
              hint={words.trace.zoomOut}
              onPress={does({ do: "zoomOut" })}
            />
            <Button
              look="quiet"
              icon={<ZoomIn size={15} aria-hidden="true" />}
              hint={words.trace.zoomIn}
              onPress={does({ do: "zoomIn" })}
            />
            <Button
              look="quiet"
              icon={<Maximize2 size={15} aria-hidden="true" />}
              hint={words.trace.whole}
              isDisabled={resting.isWhole}
              onPress={does({ do: "whole" })}
            />
            {isRows ? (
              <>
                <Check label={words.trace.fit} isOn={resting.isFit} onChange={(it) => stage.setFit(it)} />
                <Check label={words.trace.folding} isOn={isFolded} onChange={onFolding} />
              </>
            ) : null}
          </div>
        ) : null}
        {isRows ? <RowTools stage={stage} level={resting.level} isPathShown={resting.isPathShown} /> : null}
      </div>
    </div>
  );
}

function RowTools({
  stage,
  level,
  isPathShown,
}: {
  readonly stage: Stage;
  readonly level: number | null;
  readonly isPathShown: boolean;
}) {
  const { deepest } = stage.model;
  const now = level ?? deepest + 1;
  return (
    // biome-ignore lint/a11y/useSemanticElements: buttons that belong together, and no form
    <div className={styles.tools} role="group" aria-label={words.trace.rows}>
      <Button
        look="quiet"
        icon={<FoldVertical size={15} aria-hidden="true" />}
        hint={words.trace.foldMore}
        isDisabled={now <= 1}
        onPress={() => setLevel(stage, now - 1)}
      />
      <Button
        look="quiet"
        icon={<UnfoldVertical size={15} aria-hidden="true" />}
        hint={words.trace.foldLess}
        isDisabled={level === null ? false : now > deepest}
        onPress={() => setLevel(stage, now + 1)}
      />
      <Button
        look="quiet"
        icon={<Route size={15} aria-hidden="true" />}
        hint={words.trace.path}
        aria-pressed={isPathShown}
        onPress={() => stage.showPath(!isPathShown)}
      />
    </div>
  );
}

function FocusSelect({
  model,
  focus,
  onChange,
}: {
  readonly model: TraceModel;
  readonly focus: Focus;
  readonly onChange: (focus: Focus) => void;
}) {
  const [isCounted, setCounted] = useState(false);
  // The critical path needs every span, which the spans in view need not wait for.
  useEffect(() => afterFrame(() => setCounted(true)), []);
  const countOf = (it: Focus) => (it === "critical" && !isCounted ? null : model.countOf(it));
  const labelOf = (it: Focus) => {
    const count = countOf(it);
    return count === null
      ? words.trace.focus[it]
      : `${words.trace.focus[it]} (${count.toLocaleString("en")})`;
  };
  return (
    <label className={styles.focus}>
      <span className={styles.focusWord}>{words.trace.focus.label}</span>
      <select
        value={focus}
        onChange={(event) => {
          const chosen = FOCUSES.find((it) => it === event.target.value);
          if (chosen !== undefined) {
            onChange(chosen);
          }
        }}
      >
        {FOCUSES.map((it) => (
          <option key={it} value={it} disabled={it !== focus && it !== "all" && countOf(it) === 0}>
            {labelOf(it)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Check({
  label,
  isOn,
  onChange,
}: {
  readonly label: string;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}) {
  return (
    <label className={styles.check}>
      <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.target.checked)} />
      {label}
    </label>
  );
}

/** The number of hits, and the ways to them. */
export function HitTools({
  text,
  isDisabled,
  onJump,
}: {
  readonly text: string;
  readonly isDisabled: boolean;
  readonly onJump: (by: 1 | -1) => void;
}) {
  return (
    <span className={styles.hits}>
      <output>{text}</output>
      <Button
        look="quiet"
        icon={<ChevronUp size={15} aria-hidden="true" />}
        hint={words.trace.previous}
        isDisabled={isDisabled}
        onPress={() => onJump(-1)}
      />
      <Button
        look="quiet"
        icon={<ChevronDown size={15} aria-hidden="true" />}
        hint={words.trace.next}
        isDisabled={isDisabled}
        onPress={() => onJump(1)}
      />
    </span>
  );
}
