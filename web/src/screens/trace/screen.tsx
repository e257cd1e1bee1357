import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useCallback, useMemo } from "react";
import { readTraceAttribute, readTraceSpans, selectTraceSpans } from "../../api/client.ts";
import { runQuery, traceQuery } from "../../api/queries.ts";
import { Button } from "../../kit/button.tsx";
import { Loaded } from "../../kit/loaded.tsx";
import { visible } from "../../kit/marks.ts";
import { Page } from "../../kit/page.tsx";
import { Empty } from "../../kit/states.tsx";
import { Label, Prose } from "../../kit/text.tsx";
import { attributeValues } from "../../trace/attribute.ts";
import { type Columns, ColumnsError, hexId, nameOf, readColumns } from "../../trace/columns.ts";
import { type Deciding, TraceModel } from "../../trace/model.ts";
import type { SpanDetails, SpanSource } from "../../trace/source.ts";
import type { TraceSearch } from "../../trace/trace-search.ts";
import { TraceView } from "../../trace/view.tsx";
import { decidingSpans } from "../../verdict/deciding.ts";
import { VerdictWord } from "../../verdict/mark.tsx";
import type { Outcome } from "../../verdict/statements.ts";
import { markOf } from "../../verdict/trend.ts";
import { words } from "../../words.ts";
import { traceCommand } from "../command.ts";
import { useProject } from "../search.ts";
import styles from "./screen.module.css";

/** The trace of a run, open on the spans that decided. */
export default function TraceScreen() {
  const project = useProject();
  const { run: id } = useParams({ from: "/r/$run/trace" });
  const runAnswer = useQuery(runQuery(project, id));
  const run = runAnswer.data;
  const isActive = run !== undefined && run.state !== "ended";
  const trace = useQuery(traceQuery(project, id, isActive));
  const name = run?.outcome?.test ?? run?.test ?? words.trace.title;
  // The spans that decided come with the run: without it, the trace would open on the wrong ones.
  const isKnown = run !== undefined || runAnswer.isError;
  return (
    <Page
      isFull
      tab={`${words.trace.title}: ${visible(name)}`}
      title={
        <>
          {run === undefined ? null : <VerdictWord mark={markOf({ ...run, state: run.state })} size={17} />}
          <Label value={name} />
        </>
      }
      above={
        <span className={styles.above}>
          {words.trace.ofRun}{" "}
          <Link to="/r/$run" params={{ run: id }}>
            {words.trace.run}
          </Link>
        </span>
      }
      command={traceCommand(project, id)}
    >
      <Loaded query={isKnown ? trace : { ...trace, data: undefined }} rows={12}>
        {({ buffer }) => {
          const open = (
            <OpenTrace
              key={trace.dataUpdatedAt}
              buffer={buffer}
              project={project}
              run={id}
              outcome={run?.outcome ?? null}
            />
          );
          return isActive ? <ActiveTrace onRead={() => void trace.refetch()}>{open}</ActiveTrace> : open;
        }}
      </Loaded>
    </Page>
  );
}

/** The trace of a run that still collects its spans. */
function ActiveTrace({ onRead, children }: { readonly onRead: () => void; readonly children: ReactNode }) {
  return (
    <div className={styles.open}>
      <p className={styles.active}>
        {words.trace.active}
        <Button onPress={onRead}>{words.trace.readAgain}</Button>
      </p>
      {children}
    </div>
  );
}

interface Props {
  readonly buffer: ArrayBuffer;
  readonly project: string;
  readonly run: string;
  readonly outcome: Outcome | null;
}

function OpenTrace({ buffer, project, run, outcome }: Props) {
  const search = useSearch({ from: "/r/$run/trace" });
  const navigate = useNavigate({ from: "/r/$run/trace" });
  const onSearch = useCallback(
    (changes: TraceSearch) =>
      void navigate({ search: (before) => ({ ...before, ...changes }), replace: true, resetScroll: false }),
    [navigate],
  );
  const model = useMemo(() => modelOf(buffer), [buffer]);
  const deciding = useMemo(() => decidingOf(outcome), [outcome]);
  const source = useMemo(
    (): SpanSource => ({
      key: [project, run],
      details: async (span, signal) => {
        const { columns } = model as TraceModel;
        const copies = await readTraceSpans(project, run, hexId(columns, span), signal);
        return copyOf(copies.spans, columns, span);
      },
      select: (selector, signal) => selectTraceSpans(project, run, selector, signal),
      attribute: async (key, signal) => {
        const { columns } = model as TraceModel;
        const answer = await readTraceAttribute(project, run, key, signal);
        return attributeValues(answer, columns.count, words.trace.table);
      },
    }),
    [project, run, model],
  );
  if (model instanceof ColumnsError) {
    return (
      <Empty title={words.trace.unreadable}>
        <p>
          <Prose value={model.message} />
        </p>
      </Empty>
    );
  }
  if (model.columns.count === 0) {
    return (
      <Empty title={words.trace.empty}>
        <p>{words.trace.emptyMore}</p>
      </Empty>
    );
  }
  return (
    <TraceView
      key={run}
      model={model}
      source={source}
      deciding={deciding}
      search={search}
      onSearch={onSearch}
    />
  );
}

/** Of several spans with one id that which is in this row. */
function copyOf(copies: readonly SpanDetails[], columns: Columns, span: number): SpanDetails {
  const start = String(columns.startNs + BigInt(columns.start[span] ?? 0));
  const inRow = copies.find((it) => it.start === start && it.name === nameOf(columns, span));
  const found = inRow ?? copies[0];
  if (found === undefined) {
    throw new ColumnsError(words.trace.unreadable);
  }
  return found;
}

function modelOf(buffer: ArrayBuffer): TraceModel | ColumnsError {
  try {
    return new TraceModel(readColumns(buffer));
  } catch (error) {
    if (error instanceof ColumnsError) {
      return error;
    }
    throw error;
  }
}

function decidingOf(outcome: Outcome | null): Deciding {
  const verdicts = outcome === null ? [] : [...decidingSpans(outcome)];
  return {
    failed: verdicts.filter(([, verdict]) => verdict === "failed").map(([id]) => id),
    open: verdicts.filter(([, verdict]) => verdict === "inconclusive").map(([id]) => id),
  };
}
