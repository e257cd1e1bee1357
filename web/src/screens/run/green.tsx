import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { greenQuery } from "../../api/queries.ts";
import { Moment } from "../../kit/moment.tsx";
import { Text } from "../../kit/text.tsx";
import { differences } from "../../verdict/difference.ts";
import { words } from "../../words.ts";
import { useProject } from "../search.ts";
import styles from "./green.module.css";

/** The last run of the test that passed before this one; undefined while it is read, and for a run that passed itself. */
export function useGreen(run: Schemas["Run"]): Schemas["Run"] | null | undefined {
  const project = useProject();
  const isNeeded = run.state === "ended" && run.verdict !== "passed";
  return useQuery({ ...greenQuery(project, run.test, run.acceptedAt), enabled: isNeeded }).data;
}

/** What differs from the last green run. */
export function GreenView({ run }: { readonly run: Schemas["Run"] }) {
  const green = useGreen(run);
  const labels = words.run.green;
  if (green === undefined) {
    return null;
  }
  return (
    <section className={styles.section}>
      <h2>{labels.title}</h2>
      <div className={styles.card}>
        {green === null ? <p>{labels.never}</p> : <Compared green={green} run={run} />}
      </div>
    </section>
  );
}

function Compared({ green, run }: { readonly green: Schemas["Run"]; readonly run: Schemas["Run"] }) {
  const labels = words.run.green;
  const rows = differences(green, run);
  return (
    <>
      <p className={styles.run}>
        <Link to="/r/$run" params={{ run: green.id }}>
          {labels.run}
        </Link>
        <Moment at={green.acceptedAt} />
      </p>
      {rows.length === 0 ? (
        <p className={styles.nothing}>{labels.nothing}</p>
      ) : (
        <table className={styles.rows}>
          <thead>
            <tr>
              <th scope="col">{labels.what}</th>
              <th scope="col">{labels.before}</th>
              <th scope="col">{labels.now}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a service and an output may have one name; the list never changes
              <tr key={at}>
                <th scope="row">{row.isName ? <Text value={row.what} charsMax={80} /> : row.what}</th>
                <td>
                  <Text value={row.before} charsMax={120} />
                </td>
                <td className={styles.now}>
                  <Text value={row.now} charsMax={120} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
