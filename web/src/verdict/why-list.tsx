import { Prose } from "../kit/text.tsx";
import { SpanLink } from "./span-link.tsx";
import type { Why } from "./why.ts";
import styles from "./why-list.module.css";

/** Why, and what to do. */
export function WhyList({ whys }: { readonly whys: readonly Why[] }) {
  return (
    <ul className={styles.list}>
      {whys.map((why, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: reasons may be alike; the list never changes
        <li key={at}>
          <p className={styles.summary}>
            <Prose value={why.summary} />
          </p>
          {why.advice === null ? null : (
            <p className={styles.advice}>
              <span aria-hidden="true">→</span>
              <span>
                <Prose value={why.advice} />
              </span>
            </p>
          )}
          {why.cause === null && why.spans.length === 0 ? null : (
            <p className={styles.more}>
              {why.cause === null ? null : <code>{why.cause}</code>}
              {why.spans.map((span) => (
                <SpanLink key={span} span={span} />
              ))}
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}
