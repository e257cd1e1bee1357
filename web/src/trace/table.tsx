import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Failed } from "../kit/states.tsx";
import { Label } from "../kit/text.tsx";
import { duration } from "../kit/time.ts";
import { words } from "../words.ts";
import { GROUPINGS, type Grouping, groups, keyBy, numberBy, type SpanGroup } from "./groups.ts";
import type { TraceModel } from "./model.ts";
import type { AttributeValues, SpanSource } from "./source.ts";
import styles from "./table.module.css";

const ROWS_MAX = 500;

type By = Grouping | `attr:${string}`;

interface Props {
  readonly model: TraceModel;
  readonly source: SpanSource;
  readonly by: By;
  readonly onBy: (by: By) => void;
  readonly onSpan: (span: number) => void;
}

const NUMBERS = ["count", "errors", "totalNs", "selfNs", "p50", "p95", "max"] as const;
type Column = (typeof NUMBERS)[number];

const TITLES: Readonly<Record<Column, string>> = {
  count: words.trace.table.count,
  errors: words.trace.table.errors,
  totalNs: words.trace.table.total,
  selfNs: words.trace.table.self,
  p50: words.trace.table.p50,
  p95: words.trace.table.p95,
  max: words.trace.table.max,
};

/** All spans, grouped, with their times. */
export function TableView({ model, source, by, onBy, onSpan }: Props) {
  const [column, setColumn] = useState<Column>("selfNs");
  const key = by.startsWith("attr:") ? by.slice(5) : "";
  const attribute = useQuery({
    queryKey: ["attribute", ...source.key, String(model.columns.count), key],
    queryFn: ({ signal }) => source.attribute(key, signal),
    enabled: key !== "",
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });
  const values = key === "" ? undefined : attribute.data;
  const all = useMemo(() => groupsBy(model, by, values), [model, by, values]);
  const sorted = useMemo(() => all.toSorted((a, b) => b[column] - a[column]), [all, column]);
  return (
    <div className={styles.view}>
      <Chooser by={by} onBy={onBy} />
      {attribute.error === null ? null : (
        <Failed error={attribute.error} onRetry={() => void attribute.refetch()} />
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard */}
      <section className={styles.scroller} tabIndex={0} aria-label={words.trace.views.table}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{words.trace.table.group}</th>
              {NUMBERS.map((it) => (
                <th key={it} scope="col" aria-sort={it === column ? "descending" : undefined}>
                  <button type="button" onClick={() => setColumn(it)}>
                    {TITLES[it]}
                    {it === column ? " ↓" : ""}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, ROWS_MAX).map((group) => (
              <Row key={group.key.join("\n")} group={group} by={by} onSpan={onSpan} />
            ))}
          </tbody>
        </table>
        {sorted.length > ROWS_MAX ? (
          <p className={styles.more}>{words.trace.table.more(sorted.length - ROWS_MAX)}</p>
        ) : null}
      </section>
    </div>
  );
}

function Row({
  group,
  by,
  onSpan,
}: {
  readonly group: SpanGroup;
  readonly by: By;
  readonly onSpan: (span: number) => void;
}) {
  const [first = "", second] = group.key;
  const shown = by === "kind" ? (words.trace.kinds[Number(first)] ?? first) : first;
  return (
    <tr>
      <th scope="row">
        <button type="button" title={words.trace.table.toLongest} onClick={() => onSpan(group.span)}>
          <Label value={shown === "" ? words.trace.table.without : shown} />
        </button>
        {second === undefined ? null : (
          <span className={styles.second}>
            <Label value={second} />
          </span>
        )}
      </th>
      {NUMBERS.map((it) => (
        <td key={it} className={it === "errors" && group.errors > 0 ? styles.errors : undefined}>
          {it === "count" || it === "errors" ? group[it].toLocaleString("en") : duration(group[it])}
        </td>
      ))}
    </tr>
  );
}

function Chooser({ by, onBy }: { readonly by: By; readonly onBy: (by: By) => void }) {
  const labels = words.trace.table;
  const names: Readonly<Record<Grouping, string>> = {
    name: labels.byName,
    service: labels.byService,
    kind: labels.byKind,
    attribute: labels.byAttribute,
  };
  const key = by.startsWith("attr:") ? by.slice(5) : "";
  const shown = by.startsWith("attr:") ? "attribute" : by;
  return (
    <div className={styles.chooser}>
      <label>
        {labels.by}
        <select
          value={shown}
          onChange={(event) => {
            const chosen = GROUPINGS.find((it) => it === event.target.value);
            onBy(chosen ?? "name");
          }}
        >
          {GROUPINGS.map((it) => (
            <option key={it} value={it}>
              {names[it]}
            </option>
          ))}
        </select>
      </label>
      {shown === "attribute" ? (
        <label>
          {labels.attribute}
          <input
            defaultValue={key}
            placeholder="http.route"
            onBlur={(event) => onBy(`attr:${event.target.value.trim()}`)}
            onKeyDown={(event) => {
              if (event.key === "Enter") {
                onBy(`attr:${event.currentTarget.value.trim()}`);
              }
            }}
          />
        </label>
      ) : null}
    </div>
  );
}

function groupsBy(model: TraceModel, by: By, values: AttributeValues | undefined): SpanGroup[] {
  const { columns } = model;
  if (by.startsWith("attr:")) {
    return values === undefined
      ? []
      : groups(columns, (span) => [values.value(values.number(span)) ?? ""], values.number);
  }
  if (by === "service" || by === "kind" || by === "name") {
    return groups(columns, keyBy(columns, by), numberBy(columns, by));
  }
  return [];
}
