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

/** When, how long, and the ids. */
export function Facts({ run }: { readonly run: Schemas["Run"] }) {
  const steps = run.outcome?.steps ?? [];
  const nanos = between(run.acceptedAt, steps.at(-1)?.ended);
  return (
    <dl className={styles.facts}>
      <Fact name={words.run.facts.started}>
        <Moment at={run.acceptedAt} />
      </Fact>
      {nanos === null ? null : <Fact name={words.run.facts.took}>{duration(nanos)}</Fact>}
      <Fact name={words.run.facts.version}>{run.version}</Fact>
      <Fact name={words.run.facts.run}>
        <code>{run.id}</code>
      </Fact>
      {run.traceId ? (
        <Fact name={words.run.facts.trace}>
          <code>{run.traceId}</code>
        </Fact>
      ) : null}
    </dl>
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
