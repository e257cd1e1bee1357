import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useKeys } from "../kit/use-shortcut.ts";
import { words } from "../words.ts";
import { readWindow, windowText } from "./clock.ts";
import { hexId, NONE, spansOfIds } from "./columns.ts";
import { type CommandHost, focusOf, goTo, keepSelected, run, setLevel, toggle } from "./commands.ts";
import type { Focus } from "./focus.ts";
import { GraphView } from "./graph.tsx";
import { commandOf } from "./input.ts";
import { isGroup, spanOfRow } from "./layout.ts";
import type { Deciding, TraceModel } from "./model.ts";
import { SidePanel } from "./panel.tsx";
import { SearchField } from "./search-field.tsx";
import type { SpanSource } from "./source.ts";
import { Stage } from "./stage.ts";
import { StageView } from "./stage-view.tsx";
import { TableView } from "./table.tsx";
import { Toolbar } from "./toolbar.tsx";
import type { TraceSearch } from "./trace-search.ts";
import styles from "./view.module.css";

interface Props {
  readonly model: TraceModel;
  readonly source: SpanSource;
  readonly deciding: Deciding;
  readonly search: TraceSearch;
  readonly onSearch: (changes: TraceSearch) => void;
}

/** A trace: waterfall, flame, service graph and table, with the details of the selected span. */
export function TraceView({ model, source, deciding, search, onSearch }: Props) {
  // A view is made for one trace: its owner gives another key to another one.
  const [stage] = useState(() => openStage(model, deciding, search));
  const [isPanelOpen, setPanelOpen] = useState(search.span !== undefined);
  const resting = useSyncExternalStore(stage.subscribe, stage.snapshot);
  const view = search.view ?? "waterfall";
  const focus = focusOf(search.focus, model);
  const isFolded = search.fold !== "off";
  useAddress(stage, search, onSearch);
  useEffect(() => {
    stage.setMode(view === "flame" ? "flame" : "waterfall");
  }, [stage, view]);
  useEffect(() => {
    if (model.focus !== focus) {
      model.setFocus(focus);
      keepSelected(stage);
    }
  }, [stage, model, focus]);
  const host: CommandHost = {
    view: (it) => onSearch({ view: it === "waterfall" ? undefined : it }),
    setFocus: (it) => onSearch({ focus: it }),
    details: (isOpen) => {
      setPanelOpen(isOpen && stage.selected !== NONE);
      return isOpen || (isPanelOpen && stage.selected !== NONE);
    },
    clearSearch: () => {
      onSearch({ q: undefined });
      return search.q !== undefined;
    },
  };
  useKeys((event) => {
    const command = commandOf({
      code: event.code,
      hasModifier: event.ctrlKey || event.metaKey || event.altKey,
      isOnRows: isOnRows(event.target),
      isShifted: event.shiftKey,
    });
    return command !== null && run(stage, host, command);
  });
  const onQuery = useCallback((q: string) => onSearch({ q: q === "" ? undefined : q }), [onSearch]);
  const goToSpan = (span: number) => {
    if (view === "graph" || view === "table") {
      onSearch({ view: undefined });
    }
    goTo(stage, span);
    setPanelOpen(true);
  };
  const select = (value: number) => {
    stage.select(value);
    setPanelOpen(true);
  };
  const onFolding = (isOn: boolean) => {
    onSearch({ fold: isOn ? undefined : "off" });
    model.setFolding(isOn);
    keepSelected(stage);
  };
  const { selected } = resting;
  return (
    <div className={styles.view} data-view={view}>
      <Toolbar
        stage={stage}
        host={host}
        view={view}
        focus={focus}
        isFolded={isFolded}
        onFolding={onFolding}
        search={<SearchField stage={stage} source={source} query={search.q ?? ""} onQuery={onQuery} />}
      />
      <div className={styles.body}>
        <div className={styles.main}>
          {view === "waterfall" || view === "flame" ? <StageView stage={stage} onSelect={select} /> : null}
          {view === "graph" ? <GraphView model={model} /> : null}
          {view === "table" ? (
            <TableView
              model={model}
              source={source}
              by={search.by ?? "name"}
              onBy={(by) => onSearch({ by: by === "name" ? undefined : by })}
              onSpan={goToSpan}
            />
          ) : null}
          {view === "waterfall" && focus !== "all" ? (
            <Outside model={model} focus={focus} onShow={() => onSearch({ focus: "all" })} />
          ) : null}
        </div>
        {isPanelOpen && selected !== NONE ? (
          <SidePanel
            model={model}
            source={source}
            value={selected}
            onClose={() => setPanelOpen(false)}
            onSpan={goToSpan}
            onToggle={(value) => toggle(stage, value)}
            onOnly={(q) => onSearch({ q, focus: "hits" })}
          />
        ) : null}
      </div>
    </div>
  );
}

function Outside({
  model,
  focus,
  onShow,
}: {
  readonly model: TraceModel;
  readonly focus: Focus;
  readonly onShow: () => void;
}) {
  // The number is that of the focus that the model has now; both change together.
  const hidden = model.focus === focus ? model.columns.count - model.focused : 0;
  return hidden === 0 ? null : (
    <p className={styles.outside}>
      {words.trace.outside(hidden)}
      <button type="button" onClick={onShow}>
        {words.trace.show}
      </button>
    </p>
  );
}

/** A stage as the address wants it. */
function openStage(model: TraceModel, deciding: Deciding, search: TraceSearch): Stage {
  model.setDeciding(deciding);
  const focus = focusOf(search.focus, model);
  if (focus !== "hits") {
    model.setFocus(focus);
  }
  const stage = new Stage(model);
  if (search.fold === "off") {
    model.setFolding(false);
  } else if (/^\d{1,5}$/.test(search.fold ?? "")) {
    setLevel(stage, Number(search.fold));
  }
  const window = readWindow(search.t);
  if (window !== null) {
    stage.setWindow(window);
  }
  stage.setMode(search.view === "flame" ? "flame" : "waterfall");
  return stage;
}

/** Writes what is in view into the address while the reader rests, and selects what the address names. */
function useAddress(stage: Stage, search: TraceSearch, onSearch: (changes: TraceSearch) => void): void {
  const written = useRef<string | undefined>(undefined);
  const { columns } = stage.model;
  const { span: id } = search;
  useEffect(() => {
    if (id === written.current) {
      return;
    }
    written.current = id;
    const [span] = id === undefined ? [] : spansOfIds(columns, [id]);
    if (span !== undefined) {
      goTo(stage, span);
    }
  }, [stage, columns, id]);
  const latest = useRef({ search, onSearch });
  latest.current = { search, onSearch };
  useEffect(
    () =>
      stage.subscribe(() => {
        const { selected, window, isFit, isWhole, level } = stage.snapshot();
        const { search: now, onSearch: write } = latest.current;
        const span = selected === NONE || isGroup(selected) ? undefined : hexId(columns, spanOfRow(selected));
        const t = isFit || isWhole ? undefined : windowText(window);
        const fold =
          now.fold === "off" || level === null ? (now.fold === "off" ? "off" : undefined) : String(level);
        if (span !== now.span || t !== now.t || fold !== now.fold) {
          written.current = span;
          write({ span, t, fold });
        }
      }),
    [stage, columns],
  );
}

/** Whether a key belongs to the rows: nothing else that uses arrows has the focus. */
function isOnRows(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target === document.body || target.id === "content" || target.closest('[role="treegrid"]') !== null)
  );
}
