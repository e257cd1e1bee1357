import { useQuery } from "@tanstack/react-query";
import { Search, X } from "lucide-react";
import { useEffect, useState } from "react";
import { asFailure } from "../api/problem.ts";
import { Button } from "../kit/button.tsx";
import { Field } from "../kit/field.tsx";
import { Prose } from "../kit/text.tsx";
import { words } from "../words.ts";
import { spansOfIds } from "./columns.ts";
import { jump } from "./commands.ts";
import { isSelector, spansWith } from "./hits.ts";
import styles from "./search-field.module.css";
import type { SpanSource } from "./source.ts";
import type { Stage } from "./stage.ts";
import { HitTools } from "./toolbar.tsx";

interface Props {
  readonly stage: Stage;
  readonly source: SpanSource;
  readonly query: string;
  readonly onQuery: (query: string) => void;
}

/** How long the reader pauses before a search begins. */
const PAUSE_MS = 250;

/** Finds spans by a selector, which the server evaluates, or by a text. */
export function SearchField({ stage, source, query, onQuery }: Props) {
  const [typed, setTyped] = useState(query);
  const latest = useLatest(query, typed, setTyped, onQuery);
  const selected = useSelected(source, query);
  const { model } = stage;
  const [found, setFound] = useState(0);
  useEffect(() => {
    if (selected.isText) {
      model.setHits(spansWith(model.columns, query));
    } else if (selected.data !== undefined) {
      model.setHits(spansOfIds(model.columns, selected.data.spans));
    } else if (selected.isFailed) {
      model.setHits(new Uint32Array(0));
    } else {
      return;
    }
    setFound(model.hits.length);
    stage.changed();
  }, [stage, model, query, selected.isText, selected.data, selected.isFailed]);
  const isEmpty = query.trim() === "";
  const total = selected.data?.total ?? found;
  const text = selected.isPending
    ? words.trace.searching
    : found === 0
      ? words.trace.noHits
      : words.trace.hits(total, model.columns.count);
  return (
    <div className={styles.search}>
      <div className={styles.line}>
        <Field
          isSearch
          label={null}
          aria-label={words.trace.searchLabel}
          placeholder={words.trace.search}
          icon={<Search size={14} aria-hidden="true" />}
          value={typed}
          onChange={latest}
          onKeyDown={(event) => {
            if (event.key === "Enter") {
              onQuery(typed);
              jump(stage, event.shiftKey ? -1 : 1);
            }
          }}
        />
        {isEmpty ? null : (
          <>
            <Button
              look="quiet"
              icon={<X size={14} aria-hidden="true" />}
              hint={words.runs.clear}
              onPress={() => onQuery("")}
            />
            <HitTools text={text} isDisabled={found === 0} onJump={(by) => jump(stage, by)} />
          </>
        )}
      </div>
      {selected.failure === null ? null : (
        <p className={styles.failure} role="alert">
          <Prose value={selected.failure} />
        </p>
      )}
      {selected.data?.cut === true ? (
        <p className={styles.note}>{words.trace.hitsCut(found, selected.data.total)}</p>
      ) : null}
      {source.select === null && isSelector(query) ? (
        <p className={styles.note}>{words.trace.needsServer}</p>
      ) : null}
    </div>
  );
}

/** The text as it is typed, and the query behind it once the reader pauses. */
function useLatest(
  query: string,
  typed: string,
  setTyped: (text: string) => void,
  onQuery: (query: string) => void,
): (text: string) => void {
  useEffect(() => setTyped(query), [query, setTyped]);
  useEffect(() => {
    if (typed === query) {
      return;
    }
    const timer = setTimeout(() => onQuery(typed), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed, query, onQuery]);
  return setTyped;
}

function useSelected(source: SpanSource, query: string) {
  const isText = source.select === null || !isSelector(query);
  const answer = useQuery({
    queryKey: ["hits", ...source.key, query],
    queryFn: ({ signal }) =>
      source.select?.(query, signal) ?? Promise.resolve({ spans: [], total: 0, cut: false }),
    enabled: !isText,
    gcTime: 60_000,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return {
    isText,
    data: isText ? undefined : answer.data,
    isPending: !isText && answer.isPending,
    isFailed: !isText && answer.isError,
    failure: !isText && answer.isError ? asFailure(answer.error).message : null,
  };
}
