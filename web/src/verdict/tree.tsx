import type { CSSProperties } from "react";
import type { Schemas } from "../api/client.ts";
import { Label } from "../kit/text.tsx";
import { duration } from "../kit/time.ts";
import { words } from "../words.ts";
import { decidingSpans } from "./deciding.ts";
import { Mark } from "./mark.tsx";
import type { Outcome } from "./statements.ts";
import styles from "./tree.module.css";

/** The rows that are shown; the HTML report has all. */
const ROWS_MAX = 200;
/** Deeper spans are not indented further. */
const DEPTH_MAX = 24;

/** The spans that decided, with those that lead to them. */
export function DecidingTree({ outcome }: { readonly outcome: Outcome }) {
  const { tree } = outcome.judgement;
  const verdicts = decidingSpans(outcome);
  return (
    <>
      <table className={styles.tree}>
        <thead className={styles.spoken}>
          <tr>
            <th scope="col">{words.run.span}</th>
            <th scope="col">{words.run.settlement.service}</th>
            <th scope="col">{words.runs.columns.duration}</th>
          </tr>
        </thead>
        <tbody>
          {tree.slice(0, ROWS_MAX).map((span) => (
            <Row key={span.spanId} span={span} verdict={verdicts.get(span.spanId)} />
          ))}
        </tbody>
      </table>
      {tree.length > ROWS_MAX ? (
        <p className={styles.more}>{words.run.treeCut(tree.length - ROWS_MAX)}</p>
      ) : null}
    </>
  );
}

function Row({
  span,
  verdict,
}: {
  readonly span: Schemas["TreeSpan"];
  readonly verdict: "failed" | "inconclusive" | undefined;
}) {
  return (
    <tr
      className={verdict === undefined ? undefined : styles.deciding}
      style={{ "--depth": Math.min(span.depth, DEPTH_MAX) } as CSSProperties}
      title={span.spanId}
    >
      <td className={styles.span}>
        <span className={styles.name}>
          <span className={styles.indent} aria-hidden="true" />
          {verdict === undefined ? null : <Mark mark={verdict} size={12} />}
          <span className={styles.label}>
            <Label value={span.name} />
          </span>
          {span.isError ? <span className={styles.error}>{words.run.analyzer.error}</span> : null}
        </span>
      </td>
      <td className={styles.service}>{span.service === null ? null : <Label value={span.service} />}</td>
      <td className={styles.time}>{span.durationNs === null ? "–" : duration(span.durationNs)}</td>
    </tr>
  );
}
