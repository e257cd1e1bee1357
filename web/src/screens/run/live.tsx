import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { Text } from "../../kit/text.tsx";
import { between, duration } from "../../kit/time.ts";
import { eventLine } from "../../verdict/event.ts";
import { timeline } from "../../verdict/lanes.ts";
import { LanesView } from "../../verdict/lanes-view.tsx";
import { unsettledWords } from "../../verdict/unsettled.ts";
import { words } from "../../words.ts";
import styles from "./live.module.css";
import type { Live } from "./use-live.ts";

/** What happens in a run while it is in progress. */
export function LiveEvents({ live, run }: { readonly live: Live; readonly run: Schemas["Run"] }) {
  return (
    <section className={styles.box} aria-label={words.run.live.title}>
      <ol className={styles.list} aria-live="polite">
        {live.events.map((numbered) => {
          const { text, detail } = eventLine(numbered);
          const nanos = between(run.acceptedAt, numbered.event.at);
          return (
            <li key={numbered.n}>
              <span className={styles.time}>{nanos === null ? "" : duration(Math.max(0, nanos))}</span>
              <span>
                {text}
                {detail === null ? null : (
                  <code>
                    <Text value={detail} />
                  </code>
                )}
              </span>
            </li>
          );
        })}
      </ol>
      {live.gathering === null ? null : <Gathering run={run} settlement={live.gathering} />}
      {live.failure === null ? null : (
        <p className={styles.cut} role="status">
          {words.run.live.cut} <Text value={live.failure.message} />
        </p>
      )}
    </section>
  );
}

/** What the run has of its trace, and what it still waits for. */
function Gathering({
  run,
  settlement,
}: {
  readonly run: Schemas["Run"];
  readonly settlement: Schemas["Settlement"];
}) {
  const labels = words.run.live;
  const line = timeline(settlement);
  return (
    <section className={styles.gathering} aria-label={labels.gathering}>
      <p className={styles.spans}>
        {words.run.settlement.spans(settlement.spans)} {labels.soFar}
        {settlement.spans === 0 ? null : (
          <Link to="/r/$run/trace" params={{ run: run.id }}>
            {words.trace.open}
          </Link>
        )}
      </p>
      {settlement.unsettled.length === 0 ? null : (
        <ul className={styles.open}>
          {settlement.unsettled.map((reason) => (
            <li key={JSON.stringify(reason)}>
              <Text value={unsettledWords(reason)} />
            </li>
          ))}
        </ul>
      )}
      {line === null ? null : <LanesView timeline={line} waitedNs={settlement.waitedNs} isOpen />}
    </section>
  );
}
