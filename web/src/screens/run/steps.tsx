import type { Schemas } from "../../api/client.ts";
import { between, duration } from "../../kit/time.ts";
import { words } from "../../words.ts";
import styles from "./steps.module.css";

const WIDTH = 1000;

/** The steps of a run on one line of time: where its time went. */
export function Steps({ steps }: { readonly steps: readonly Schemas["StepTime"][] }) {
  const first = steps[0]?.began;
  const placed = steps.map((it) => ({
    step: it.step,
    fromNs: between(first, it.began) ?? 0,
    nanos: Math.max(0, between(it.began, it.ended) ?? 0),
  }));
  const endNs = Math.max(1, ...placed.map((it) => it.fromNs + it.nanos));
  return (
    <div className={styles.view}>
      <svg viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" className={styles.line} aria-hidden="true">
        <rect width={WIDTH} height="10" className={styles.track} />
        {placed.map((it) => (
          <rect
            key={it.step}
            x={(it.fromNs / endNs) * WIDTH}
            width={Math.max(1.5, (it.nanos / endNs) * WIDTH)}
            height="10"
            className={styles[it.step]}
          />
        ))}
      </svg>
      <ul className={styles.legend}>
        {placed.map((it) => (
          <li key={it.step}>
            <svg width="10" height="10" aria-hidden="true">
              <rect width="10" height="10" rx="2" className={styles[it.step]} />
            </svg>
            {words.run.steps.names[it.step] ?? it.step}
            <span>{duration(it.nanos)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
