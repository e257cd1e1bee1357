import { Text } from "../../kit/text.tsx";
import { between, duration } from "../../kit/time.ts";
import { eventLine } from "../../verdict/event.ts";
import { words } from "../../words.ts";
import styles from "./live.module.css";
import type { Live } from "./use-live.ts";

/** What happens in a run while it is in progress. */
export function LiveEvents({ live, acceptedAt }: { readonly live: Live; readonly acceptedAt: string }) {
  return (
    <section className={styles.box} aria-label={words.run.live.title}>
      <ol className={styles.list} aria-live="polite">
        {live.events.map((numbered) => {
          const { text, detail } = eventLine(numbered);
          const nanos = between(acceptedAt, numbered.event.at);
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
      {live.failure === null ? null : (
        <p className={styles.cut} role="status">
          {words.run.live.cut} <Text value={live.failure.message} />
        </p>
      )}
    </section>
  );
}
