import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { Moment } from "../../kit/moment.tsx";
import { Label } from "../../kit/text.tsx";
import { between, duration } from "../../kit/time.ts";
import { VerdictWord } from "../../verdict/mark.tsx";
import { markOf } from "../../verdict/trend.ts";
import { words } from "../../words.ts";
import styles from "./table.module.css";

interface Props {
  readonly runs: readonly Schemas["ListedRun"][];
  /** Whether the runs are of several tests, so that the test is a column. */
  readonly hasTests: boolean;
}

/** Runs as a table, in the order given. */
export function RunsTable({ runs, hasTests }: Props) {
  const { columns } = words.runs;
  return (
    <table className={styles.table}>
      <thead>
        <tr>
          <th scope="col">{columns.verdict}</th>
          {hasTests ? <th scope="col">{columns.test}</th> : null}
          <th scope="col">{columns.run}</th>
          <th scope="col">{columns.revision}</th>
          <th scope="col" className={styles.number}>
            {columns.version}
          </th>
          <th scope="col" className={styles.number}>
            {columns.duration}
          </th>
          <th scope="col" className={styles.number}>
            {columns.at}
          </th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <Row key={run.id} run={run} hasTests={hasTests} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ run, hasTests }: { readonly run: Schemas["ListedRun"]; readonly hasTests: boolean }) {
  const nanos = between(run.acceptedAt, run.endedAt);
  return (
    <tr className={hasTests ? styles.row : `${styles.row} ${styles.ofOne}`}>
      <td className={styles.verdict}>
        <Link to="/r/$run" params={{ run: run.id }} className={styles.plain}>
          <VerdictWord mark={markOf(run)} isProvisional={!run.verdict && !!run.provisionalVerdict} />
        </Link>
      </td>
      {hasTests ? (
        <td className={styles.test}>
          <Link to="/t/$test" params={{ test: run.test }} className={styles.plain}>
            {run.test}
          </Link>
        </td>
      ) : null}
      <td className={styles.run}>
        <Link to="/r/$run" params={{ run: run.id }} title={run.id}>
          {run.id.slice(-12)}
        </Link>
      </td>
      <td className={styles.revision}>{run.revision ? <Label value={run.revision} /> : null}</td>
      <td className={styles.version}>{run.version}</td>
      <td className={styles.duration}>{nanos === null ? "–" : duration(nanos)}</td>
      <td className={styles.at}>
        <Moment at={run.acceptedAt} />
      </td>
    </tr>
  );
}
