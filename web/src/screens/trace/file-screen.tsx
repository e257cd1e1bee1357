import { useNavigate, useSearch } from "@tanstack/react-router";
import { FileUp } from "lucide-react";
import { type DragEvent, useCallback, useMemo, useRef, useState } from "react";
import { Button } from "../../kit/button.tsx";
import { visible } from "../../kit/marks.ts";
import { Page } from "../../kit/page.tsx";
import { Label } from "../../kit/text.tsx";
import { numbered } from "../../trace/attribute.ts";
import { valueText } from "../../trace/details.ts";
import { columnsOf, type FileTrace, fileTraces } from "../../trace/fromOtlp.ts";
import { type Deciding, TraceModel } from "../../trace/model.ts";
import { attributeOf, detailsOf, FILE_BYTES_MAX, OtlpError } from "../../trace/otlp.ts";
import type { SpanSource } from "../../trace/source.ts";
import type { TraceSearch } from "../../trace/trace-search.ts";
import { TraceView } from "../../trace/view.tsx";
import { words } from "../../words.ts";
import { fileCommand } from "../command.ts";
import styles from "./screen.module.css";

/** The traces of a file that are listed. */
const TRACES_MAX = 500;
const NO_DECIDING: Deciding = { failed: [], open: [] };

interface OpenFile {
  readonly name: string;
  readonly traces: readonly FileTrace[];
  /** Tells one opened file from the next one of the same name. */
  readonly number: number;
}

/** A trace from a file: read by the page, and sent nowhere. */
export default function FileScreen() {
  const [file, setFile] = useState<OpenFile | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const [isReading, setReading] = useState(false);
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const opened = useRef(0);
  const open = async (given: File | undefined) => {
    if (given === undefined) {
      return;
    }
    setReading(true);
    setFailure(null);
    try {
      const traces = await tracesOf(given);
      opened.current += 1;
      setFile({ name: given.name, traces, number: opened.current });
    } catch (error) {
      setFailure(error instanceof OtlpError ? words.trace.file[error.reason] : words.trace.file.unreadable);
    } finally {
      setReading(false);
    }
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void open(event.dataTransfer.files[0]);
  };
  const choose = () => input.current?.click();
  return (
    <Page
      isFull
      tab={file === null ? words.trace.file.title : visible(file.name)}
      title={file === null ? words.trace.file.title : <Label value={file.name} />}
      actions={file === null ? null : <Button onPress={choose}>{words.trace.file.another}</Button>}
      command={fileCommand()}
    >
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button does the same by keyboard */}
      <div
        className={file === null ? undefined : styles.only}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={onDrop}
      >
        <input
          ref={input}
          type="file"
          accept=".json,.jsonl,.ndjson,.otlp,application/json"
          className={styles.input}
          aria-label={words.trace.file.choose}
          onChange={(event) => {
            void open(event.target.files?.[0]);
            // The same file may be chosen once more, after it has changed.
            event.target.value = "";
          }}
        />
        {file === null ? (
          <div className={styles.drop} data-over={isOver}>
            <FileUp size={28} aria-hidden="true" />
            <h2>{words.trace.file.drop}</h2>
            <p>{words.trace.file.dropMore}</p>
            <Button look="primary" onPress={choose}>
              {words.trace.file.choose}
            </Button>
            <Report failure={failure} isReading={isReading} />
          </div>
        ) : (
          <div className={styles.open}>
            <Report failure={failure} isReading={isReading} />
            <FileView key={file.number} file={file} />
          </div>
        )}
      </div>
    </Page>
  );
}

function Report({ failure, isReading }: { readonly failure: string | null; readonly isReading: boolean }) {
  if (isReading) {
    return <p role="status">{words.trace.file.reading}</p>;
  }
  return failure === null ? null : (
    <p className={styles.failure} role="alert">
      {words.trace.file.refused}: {failure}
    </p>
  );
}

function FileView({ file }: { readonly file: OpenFile }) {
  const search = useSearch({ from: "/trace" });
  const navigate = useNavigate({ from: "/trace" });
  const onSearch = useCallback(
    (changes: TraceSearch) =>
      void navigate({ search: (before) => ({ ...before, ...changes }), replace: true, resetScroll: false }),
    [navigate],
  );
  const [chosen, setChosen] = useState(0);
  const trace = file.traces[chosen];
  const { model, source } = useMemo(() => {
    const placed = columnsOf(trace?.spans ?? []);
    const at = (span: number) => {
      const found = placed.spans[span];
      if (found === undefined) {
        throw new RangeError(`there is no span ${span}`);
      }
      return found;
    };
    const ofFile: SpanSource = {
      key: ["file", String(file.number), String(chosen)],
      details: (span) => Promise.resolve(detailsOf(at(span))),
      select: null,
      attribute: (key) => {
        const textOf = (span: number) => {
          const value = attributeOf(at(span), key);
          return value === undefined ? null : valueText(value);
        };
        return Promise.resolve(numbered(placed.columns.count, textOf));
      },
    };
    return { model: new TraceModel(placed.columns), source: ofFile };
  }, [trace, file.number, chosen]);
  return (
    <div className={file.traces.length > 1 ? styles.open : styles.only}>
      {file.traces.length > 1 ? (
        <label className={styles.trace}>
          {words.trace.file.trace}
          <select value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
            {file.traces.slice(0, TRACES_MAX).map((it, index) => (
              <option key={it.traceId} value={index}>
                {words.trace.file.option(it.traceId, it.spans.length)}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      <TraceView
        key={chosen}
        model={model}
        source={source}
        deciding={NO_DECIDING}
        search={search}
        onSearch={onSearch}
      />
    </div>
  );
}

async function tracesOf(file: File): Promise<FileTrace[]> {
  if (file.size > FILE_BYTES_MAX) {
    throw new OtlpError("tooLarge");
  }
  return fileTraces(await file.text());
}
