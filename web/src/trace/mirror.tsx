import { useSyncExternalStore } from "react";
import { visible } from "../kit/marks.ts";
import { words } from "../words.ts";
import { signedDuration } from "./clock.ts";
import { FLAG, NONE, nameOf, serviceOf } from "./columns.ts";
import { isGroup, spanOfRow } from "./layout.ts";
import { MARK } from "./marks.ts";
import styles from "./mirror.module.css";
import type { TraceModel } from "./model.ts";
import type { Stage } from "./stage.ts";

/** A window that is higher has no more rows. */
const ROWS_MAX = 120;

/**
 * The rows in view as a tree grid for assistive technology, beside the canvas, which is hidden from it.
 *
 * It changes when scrolling rests and with each move of the selection, and not with each frame.
 */
export function Mirror({ stage }: { readonly stage: Stage }) {
  const resting = useSyncExternalStore(stage.subscribe, stage.snapshot);
  const { model } = stage;
  const rows = Array.from(
    { length: Math.max(0, Math.min(ROWS_MAX, resting.until - resting.first)) },
    (_, at) => resting.first + at,
  );
  const active = rows.find((row) => model.rows.at(row) === resting.selected);
  return (
    <div
      role="treegrid"
      className={styles.grid}
      tabIndex={0}
      aria-label={words.trace.gridLabel}
      aria-rowcount={model.rows.count}
      aria-colcount={4}
      aria-activedescendant={active === undefined ? undefined : rowId(active)}
      data-rows=""
    >
      {rows.map((row) => (
        <MirrorRow key={row} model={model} row={row} selected={resting.selected} />
      ))}
    </div>
  );
}

function MirrorRow({
  model,
  row,
  selected,
}: {
  readonly model: TraceModel;
  readonly row: number;
  readonly selected: number;
}) {
  const value = model.rows.at(row);
  if (value === NONE) {
    return null;
  }
  const { columns } = model;
  const span = spanOfRow(value);
  const { from, to } = model.interval(value);
  const nanos = isGroup(value) ? to - from : (columns.duration[span] ?? 0);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a row of a tree grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus, and names the active row
    <div
      role="row"
      id={rowId(row)}
      aria-rowindex={row + 1}
      aria-level={(columns.depth[span] ?? 0) + 1}
      aria-selected={value === selected}
      {...(model.hasInside(value) ? { "aria-expanded": model.isOpen(value) } : {})}
    >
      <Cell text={rowText(model, value)} />
      <Cell text={serviceOf(columns, span)} />
      <Cell text={signedDuration(nanos)} />
      <Cell text={marksText(model, value)} />
    </div>
  );
}

function Cell({ text }: { readonly text: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a cell of a tree grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus
    <div role="gridcell">{visible(text)}</div>
  );
}

function rowId(row: number): string {
  return `trace-row-${row}`;
}

function rowText(model: TraceModel, value: number): string {
  const span = spanOfRow(value);
  const name = nameOf(model.columns, span) || words.trace.noName;
  return isGroup(value) ? words.trace.alike(model.group(span).count, name) : name;
}

/** What the colours and the signs of a row mean. */
export function marksText(model: TraceModel, value: number): string {
  const span = spanOfRow(value);
  const group = isGroup(value) ? model.group(span) : null;
  const mark = group === null ? (model.marks[span] ?? 0) : group.deciding | (group.hits > 0 ? MARK.hit : 0);
  const flags = group === null ? (model.columns.flags[span] ?? 0) : 0;
  return [
    (mark & MARK.failed) !== 0 ? words.trace.decided : null,
    (mark & MARK.open) !== 0 ? words.trace.undecided : null,
    (flags & FLAG.error) !== 0 ? words.trace.error : null,
    group !== null && group.errors > 0 ? words.trace.errors(group.errors) : null,
    (mark & MARK.hit) !== 0 ? words.trace.hit : null,
    (flags & FLAG.orphan) !== 0 ? words.trace.orphan : null,
    (flags & FLAG.clock) !== 0 ? words.trace.clock : null,
  ]
    .filter((it) => it !== null)
    .join(", ");
}
