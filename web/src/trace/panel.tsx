import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { Schemas } from "../api/client.ts";
import { asFailure } from "../api/problem.ts";
import { Button } from "../kit/button.tsx";
import { CopyButton } from "../kit/copy.tsx";
import { Failed, Loading } from "../kit/states.tsx";
import { Label, Text } from "../kit/text.tsx";
import { duration } from "../kit/time.ts";
import { words } from "../words.ts";
import { signedDuration } from "./clock.ts";
import { hexId, NONE, nameOf, serviceOf } from "./columns.ts";
import { valueText } from "./details.ts";
import { isGroup, spanOfRow } from "./layout.ts";
import { marksText } from "./mirror.tsx";
import type { TraceModel } from "./model.ts";
import styles from "./panel.module.css";
import { type Place, selectorOf } from "./selector.ts";
import type { SpanAttribute, SpanDetails, SpanSource } from "./source.ts";

/** The entries of a list before the reader wants more. */
const STEP = 100;
/** A value is cut behind so many characters until the reader wants the rest. */
const VALUE_CHARS_MAX = 2048;

interface Props {
  readonly model: TraceModel;
  readonly source: SpanSource;
  /** The value of the selected row. */
  readonly value: number;
  readonly onClose: () => void;
  readonly onSpan: (span: number) => void;
  readonly onToggle: (value: number) => void;
  readonly onOnly: (selector: string) => void;
}

/** Everything about the selected row: a span, or alike spans that are folded. */
export function SidePanel({ model, source, value, onClose, onSpan, onToggle, onOnly }: Props) {
  const span = spanOfRow(value);
  const { columns } = model;
  return (
    <aside className={styles.panel} aria-label={words.trace.panel.label}>
      <header className={styles.head}>
        <h2 className={styles.title}>
          <Text value={nameOf(columns, span) || words.trace.noName} charsMax={400} />
        </h2>
        <Button
          look="quiet"
          icon={<X size={15} aria-hidden="true" />}
          hint={words.trace.panel.close}
          onPress={onClose}
        />
      </header>
      {isGroup(value) ? (
        <GroupFacts model={model} value={value} onToggle={onToggle} />
      ) : (
        <>
          <SpanFacts model={model} span={span} onSpan={onSpan} />
          <Details source={source} model={model} span={span} onOnly={onOnly} />
        </>
      )}
    </aside>
  );
}

function GroupFacts({
  model,
  value,
  onToggle,
}: {
  readonly model: TraceModel;
  readonly value: number;
  readonly onToggle: (value: number) => void;
}) {
  const labels = words.trace.panel;
  const group = model.group(spanOfRow(value));
  return (
    <>
      <dl className={styles.facts}>
        <Fact name={labels.service}>
          <Label value={serviceOf(model.columns, spanOfRow(value))} />
        </Fact>
        <Fact name={labels.count}>{group.count.toLocaleString("en")}</Fact>
        <Fact name={labels.p50}>{duration(group.p50)}</Fact>
        <Fact name={labels.max}>{duration(group.max)}</Fact>
        <Fact name={labels.errors}>{group.errors.toLocaleString("en")}</Fact>
      </dl>
      <p>
        <Button onPress={() => onToggle(value)}>{model.isOpen(value) ? labels.refold : labels.unfold}</Button>
      </p>
    </>
  );
}

function SpanFacts({
  model,
  span,
  onSpan,
}: {
  readonly model: TraceModel;
  readonly span: number;
  readonly onSpan: (span: number) => void;
}) {
  const labels = words.trace.panel;
  const { columns } = model;
  const parent = model.parent[span] ?? NONE;
  const process = columns.processes[columns.process[span] ?? 0]?.name ?? "";
  const marks = marksText(model, span);
  return (
    <>
      {marks === "" ? null : <p className={styles.marks}>{marks}</p>}
      <dl className={styles.facts}>
        <Fact name={labels.service}>
          <Label value={serviceOf(columns, span) || words.trace.noService} />
        </Fact>
        {process === "" ? null : (
          <Fact name={labels.instance}>
            <Label value={process} />
          </Fact>
        )}
        <Fact name={labels.kind}>{words.trace.kinds[columns.kind[span] ?? 0]}</Fact>
        <Fact name={labels.start}>{duration(columns.start[span] ?? 0)}</Fact>
        <Fact name={labels.duration}>{signedDuration(columns.duration[span] ?? 0)}</Fact>
        <Fact name={labels.id}>
          <code>{hexId(columns, span)}</code>
        </Fact>
        {parent === NONE ? null : (
          <Fact name={labels.parent}>
            <button
              type="button"
              className={styles.link}
              title={labels.goToParent}
              onClick={() => onSpan(parent)}
            >
              <Label value={nameOf(columns, parent) || words.trace.noName} />
            </button>
          </Fact>
        )}
      </dl>
    </>
  );
}

function Details({
  source,
  model,
  span,
  onOnly,
}: {
  readonly source: SpanSource;
  readonly model: TraceModel;
  readonly span: number;
  readonly onOnly: (selector: string) => void;
}) {
  const id = hexId(model.columns, span);
  const query = useQuery({
    queryKey: ["span-details", ...source.key, id, span],
    queryFn: ({ signal }) => source.details(span, signal),
    gcTime: 30_000,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (query.error !== null) {
    return <Failed error={asFailure(query.error)} onRetry={() => void query.refetch()} />;
  }
  if (query.data === undefined) {
    return <Loading rows={4} />;
  }
  // Without a server nothing evaluates a selector.
  return <Sections key={id} details={query.data} {...(source.select === null ? {} : { onOnly })} />;
}

function Sections({
  details,
  onOnly,
}: {
  readonly details: SpanDetails;
  readonly onOnly?: (selector: string) => void;
}) {
  const labels = words.trace.panel;
  const { status, scope } = details;
  return (
    <>
      {status.message ? (
        <p className={styles.status}>
          <Text value={status.message} layout="block" charsMax={VALUE_CHARS_MAX} />
        </p>
      ) : null}
      <Section title={labels.attributes} count={details.attributes.length}>
        <Values values={details.attributes} {...only("attr:", onOnly)} />
      </Section>
      {details.events.length === 0 ? null : (
        <Section title={labels.events} count={details.events.length}>
          <Stepped
            all={details.events}
            row={(event, at) => <EventRow key={at} event={event} start={details.start} />}
          />
        </Section>
      )}
      {details.links.length === 0 ? null : (
        <Section title={labels.links} count={details.links.length}>
          <Stepped
            all={details.links}
            row={(link, at) => (
              <div key={at} className={styles.entry}>
                <p className={styles.entryHead}>
                  <code>
                    <Label value={`${link.traceId ?? labels.invalid} ${link.spanId ?? labels.invalid}`} />
                  </code>
                </p>
                <Values values={link.attributes} />
              </div>
            )}
          />
        </Section>
      )}
      <Section title={labels.resource} count={details.resource.length}>
        <Values values={details.resource} {...only("resource.", onOnly)} />
      </Section>
      {scope.name ? (
        <dl className={styles.facts}>
          <Fact name={labels.scope}>
            <Label value={[scope.name, scope.version].filter((it) => it).join(" ")} />
          </Fact>
        </dl>
      ) : null}
      <p>
        <CopyButton look="quiet" label={labels.raw} text={() => JSON.stringify(details, null, 2)} />
      </p>
    </>
  );
}

function EventRow({ event, start }: { readonly event: Schemas["SpanEvent"]; readonly start: string }) {
  const nanos = nanosBetween(start, event.time);
  return (
    <div className={styles.entry}>
      <p className={styles.entryHead}>
        <strong>
          <Text value={event.name} charsMax={200} />
        </strong>
        {nanos === null ? null : (
          <span
            title={
              nanos < 0
                ? words.trace.panel.beforeStart(duration(-nanos))
                : words.trace.panel.behindStart(duration(nanos))
            }
          >
            {nanos < 0 ? signedDuration(nanos) : `+${duration(nanos)}`}
          </span>
        )}
      </p>
      <Values values={event.attributes} />
    </div>
  );
}

function Section({
  title,
  count,
  children,
}: {
  readonly title: string;
  readonly count: number;
  readonly children: ReactNode;
}) {
  return (
    <section className={styles.section}>
      <h3>
        {title} <span className={styles.count}>{count.toLocaleString("en")}</span>
      </h3>
      {count === 0 ? <p className={styles.none}>{words.trace.panel.none}</p> : children}
    </section>
  );
}

/** What shows only the spans with a value. */
interface Only {
  readonly place: Place;
  readonly onOnly: (selector: string) => void;
}

function only(place: Place, onOnly: Only["onOnly"] | undefined): { readonly only?: Only } {
  return onOnly === undefined ? {} : { only: { place, onOnly } };
}

function Values({ values, only }: { readonly values: readonly SpanAttribute[]; readonly only?: Only }) {
  return values.length === 0 ? null : (
    <dl className={styles.values}>
      <Stepped
        all={values}
        row={(it, at) => <Value key={at} named={it} {...(only === undefined ? {} : { only })} />}
      />
    </dl>
  );
}

function Value({ named, only }: { readonly named: SpanAttribute; readonly only?: Only }) {
  const { key, type, value } = named;
  const selector = only === undefined ? null : selectorOf(only.place, named);
  return (
    <div>
      <dt>
        <Text value={key} charsMax={200} />
        {type === "string" ? null : <span className={styles.type}>{type}</span>}
        {selector === null ? null : (
          <button
            type="button"
            className={styles.only}
            title={words.trace.panel.onlyHint}
            onClick={() => only?.onOnly(selector)}
          >
            {words.trace.panel.only}
          </button>
        )}
      </dt>
      <dd>
        <Text value={valueText(value)} layout="block" charsMax={VALUE_CHARS_MAX} />
      </dd>
    </div>
  );
}

/** A long list, as far as the reader wants it. */
function Stepped<T>({
  all,
  row,
}: {
  readonly all: readonly T[];
  readonly row: (it: T, at: number) => ReactNode;
}) {
  const [shown, setShown] = useState(STEP);
  const rest = all.length - shown;
  return (
    <>
      {all.slice(0, shown).map(row)}
      {rest > 0 ? (
        <div>
          <button type="button" className={styles.link} onClick={() => setShown(shown + 10 * STEP)}>
            {words.trace.panel.more(Math.min(rest, 10 * STEP))}
          </button>
        </div>
      ) : null}
    </>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function nanosBetween(from: string, to: string): number | null {
  return /^\d{1,20}$/.test(from) && /^\d{1,20}$/.test(to) ? Number(BigInt(to) - BigInt(from)) : null;
}
