import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/client.ts";
import { Moment } from "../../kit/moment.tsx";
import { Prose, Text } from "../../kit/text.tsx";
import { between, duration } from "../../kit/time.ts";
import { Mark } from "../../verdict/mark.tsx";
import type { SentencePart } from "../../verdict/sentence.ts";
import type { RunMark } from "../../verdict/trend.ts";
import { words } from "../../words.ts";
import styles from "./head.module.css";

/** The verdict and the one sentence. */
export function Banner({ mark, parts }: { readonly mark: RunMark; readonly parts: readonly SentencePart[] }) {
  return (
    <section className={`${styles.banner} ${styles[mark]}`} aria-label={words.verdict[mark]} data-sentence="">
      <Mark mark={mark} size={22} />
      <p>
        {parts.map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a part is its position
          <Part key={at} part={part} />
        ))}
      </p>
    </section>
  );
}

function Part({ part }: { readonly part: SentencePart }) {
  switch (part.role) {
    case "words":
      return part.text;
    case "subject":
      return (
        <strong>
          “<Text value={part.text} charsMax={200} />”
        </strong>
      );
    case "value":
      return <Prose value={part.text} />;
  }
}

/** When, how long, by whom, and the ids. */
export function Facts({ run }: { readonly run: Schemas["Run"] }) {
  const labels = words.run.facts;
  const steps = run.outcome?.steps ?? [];
  const nanos = between(run.acceptedAt, run.endedAt ?? steps.at(-1)?.ended);
  return (
    <dl className={styles.facts}>
      <Fact name={labels.started}>
        <Moment at={run.acceptedAt} />
        {run.startedBy ? ` ${labels.by} ${labels.starters[run.startedBy] ?? run.startedBy}` : null}
      </Fact>
      {nanos === null ? null : <Fact name={labels.took}>{duration(nanos)}</Fact>}
      <Fact name={labels.version}>{run.version}</Fact>
      {run.revision ? (
        <Fact name={labels.revision}>
          <Text value={run.revision} charsMax={80} />
        </Fact>
      ) : null}
      {run.suiteRun ? (
        <Fact name={labels.suite}>
          <code>{run.suiteRun}</code>
        </Fact>
      ) : null}
      <Fact name={labels.run}>
        <code>{run.id}</code>
      </Fact>
      {run.traceId ? (
        <Fact name={labels.trace}>
          <code>{run.traceId}</code> <TraceFact run={run} />
        </Fact>
      ) : null}
    </dl>
  );
}

function TraceFact({ run }: { readonly run: Schemas["Run"] }) {
  const labels = words.run.facts;
  const { state, spans, bytes } = run.trace;
  if (state === "expired") {
    return labels.expired;
  }
  if (state !== "stored") {
    return null;
  }
  return (
    <>
      <Link to="/r/$run/trace" params={{ run: run.id }}>
        {labels.open}
      </Link>{" "}
      {labels.size(spans ?? 0, Math.ceil((bytes ?? 0) / 1024))}
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
