import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { Moment } from "../../kit/moment.tsx";
import { Label } from "../../kit/text.tsx";
import { duration } from "../../kit/time.ts";
import { VerdictWord } from "../../verdict/mark.tsx";
import { Sparkline } from "../../verdict/sparkline.tsx";
import { markOf } from "../../verdict/trend.ts";
import { words } from "../../words.ts";
import styles from "./rows.module.css";

type TestTrend = Schemas["TestTrend"];

/** A row for each test: its last verdict, its name, its last runs, how long they take, and when the last one was. */
export function TestRows({ tests }: { readonly tests: readonly TestTrend[] }) {
  const { columns } = words.tests;
  return (
    <table className={styles.table}>
      <thead>
        <tr>
          <th scope="col">{words.runs.columns.verdict}</th>
          <th scope="col">{columns.test}</th>
          <th scope="col">{columns.last}</th>
          <th scope="col" className={styles.number}>
            {columns.median}
          </th>
          <th scope="col" className={styles.number}>
            {columns.at}
          </th>
        </tr>
      </thead>
      <tbody>
        {tests.map((test) => (
          <Row key={test.id} test={test} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ test }: { readonly test: TestTrend }) {
  const { trend } = test;
  const [last] = trend.last;
  return (
    <tr className={styles.row}>
      <td className={styles.verdict}>
        {last === undefined ? (
          <span className={styles.soft}>{words.tests.never}</span>
        ) : (
          <Link to="/r/$run" params={{ run: last.id }} className={styles.why}>
            <VerdictWord mark={markOf(last)} isProvisional={!last.verdict && !!last.provisionalVerdict} />
          </Link>
        )}
      </td>
      <th scope="row" className={styles.name}>
        <Link to="/t/$test" params={{ test: test.id }}>
          <Label value={test.name} />
        </Link>
        {trend.flaky > 0 ? (
          <span className={styles.flaky} title={words.tests.flakyMark(trend.flaky)}>
            ~ {words.test.flaky} ×{trend.flaky}
          </span>
        ) : null}
        {test.name === test.id ? null : <span className={styles.id}>{test.id}</span>}
      </th>
      <td className={styles.line}>
        <Sparkline trend={trend} />
      </td>
      <td className={styles.number}>{trend.medianNs === null ? "–" : duration(trend.medianNs)}</td>
      <td className={styles.at}>{last === undefined ? "–" : <Moment at={last.acceptedAt} />}</td>
    </tr>
  );
}
