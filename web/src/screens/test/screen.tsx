import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { asFailure } from "../../api/problem.ts";
import { trendQuery, versionsQuery } from "../../api/queries.ts";
import { linkButton } from "../../kit/button.tsx";
import { Fold } from "../../kit/fold.tsx";
import { Loaded } from "../../kit/loaded.tsx";
import { Moment } from "../../kit/moment.tsx";
import { Page } from "../../kit/page.tsx";
import { Empty, Failed } from "../../kit/states.tsx";
import { Label } from "../../kit/text.tsx";
import { duration } from "../../kit/time.ts";
import { Sparkline } from "../../verdict/sparkline.tsx";
import { words } from "../../words.ts";
import { testCommand } from "../command.ts";
import { RunsTable } from "../runs/table.tsx";
import { useProject } from "../search.ts";
import { useChanges } from "../use-changes.ts";
import { RunButton } from "./run-button.tsx";
import styles from "./screen.module.css";

/** The history of a test. */
export default function TestScreen() {
  const project = useProject();
  const { test } = useParams({ from: "/t/$test" });
  const trend = useQuery(trendQuery(project, test));
  useChanges(project);
  const versions = useQuery(versionsQuery(project, test));
  // A deleted test still has its runs.
  const isUnknown = versions.error !== null && asFailure(versions.error).status === 404;
  const name = versions.data?.items[0]?.name ?? test;
  return (
    <Page
      tab={name}
      title={<Label value={name} />}
      above={name === test ? undefined : <code className={styles.id}>{test}</code>}
      command={testCommand(project, test)}
      actions={
        isUnknown ? null : (
          <>
            <RunButton test={test} label={words.test.run} />
            <Link to="/runs" search={(before) => ({ project: before.project, test })} className={linkButton}>
              {words.test.all}
            </Link>
          </>
        )
      }
    >
      <Loaded query={trend} rows={10}>
        {(data) =>
          data.last.length === 0 && isUnknown ? (
            <Failed error={versions.error} onRetry={() => void versions.refetch()} />
          ) : data.last.length === 0 ? (
            <Empty title={words.test.empty}>
              <RunButton test={test} label={words.test.run} look="primary" />
            </Empty>
          ) : (
            <>
              <Numbers trend={data} />
              <RunsTable runs={data.last} hasTests={false} />
            </>
          )
        }
      </Loaded>
      {isUnknown ? null : (
        <Fold title={words.test.versions} aside={versions.data?.items.length}>
          <Loaded query={versions} rows={2}>
            {(page) => <Versions versions={page.items} />}
          </Loaded>
        </Fold>
      )}
    </Page>
  );
}

function Numbers({ trend }: { readonly trend: Schemas["Trend"] }) {
  const numbers: ReadonlyArray<readonly [string, string, string | undefined]> = [
    [words.test.runs, String(trend.runs), undefined],
    [words.test.passed, String(trend.passed), undefined],
    [words.test.failed, String(trend.failed), undefined],
    [words.test.inconclusive, String(trend.inconclusive), undefined],
    [words.test.median, trend.medianNs === null ? "–" : duration(trend.medianNs), undefined],
    [words.test.flips, String(trend.flips), words.test.flipsMore],
  ];
  return (
    <section className={styles.numbers} aria-label={words.test.last(trend.last.length)}>
      <div className={styles.line}>
        <Sparkline trend={trend} />
        <span>{words.test.last(Math.min(30, trend.last.length))}</span>
      </div>
      <dl>
        {numbers.map(([name, value, more]) => (
          <div key={name} title={more}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
        {trend.flaky > 0 ? (
          <div className={styles.flaky} title={words.test.flakyMore}>
            <dt>~ {words.test.flaky}</dt>
            <dd>{trend.flaky}</dd>
          </div>
        ) : null}
      </dl>
    </section>
  );
}

function Versions({ versions }: { readonly versions: readonly Schemas["DocumentVersion"][] }) {
  return (
    <ul className={styles.versions}>
      {versions.map((it) => (
        <li key={it.version}>
          <span>{words.test.version(it.version)}</span>
          <Label value={it.name} />
          {it.createdAt ? <Moment at={it.createdAt} /> : null}
        </li>
      ))}
    </ul>
  );
}
