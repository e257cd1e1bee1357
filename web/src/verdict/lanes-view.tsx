import { Text } from "../kit/text.tsx";
import { duration } from "../kit/time.ts";
import { words } from "../words.ts";
import type { Lane, Timeline } from "./lanes.ts";
import styles from "./lanes-view.module.css";

/** The processes on one line of time: when the last span of each arrived, and how long it had to be quiet. */
export function LanesView({
  timeline,
  waitedNs,
}: {
  readonly timeline: Timeline;
  readonly waitedNs: number;
}) {
  const labels = words.run.settlement;
  return (
    <div className={styles.view}>
      <div className={styles.lanes}>
        {timeline.lanes.map((lane, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two processes of a service may have no instance; the list never changes
          <LaneRow key={at} lane={lane} timeline={timeline} />
        ))}
        <div className={styles.axis} aria-hidden="true">
          <span style={{ insetInlineStart: percent(timeline.answered) }} className={styles.from}>
            {labels.answered}
          </span>
          <span style={{ insetInlineEnd: percent(1 - timeline.decided) }} className={styles.until}>
            {labels.decided} +{duration(waitedNs)}
          </span>
        </div>
      </div>
      <ul className={styles.legend} aria-hidden="true">
        <li>
          <i className={styles.arrivals} /> {labels.legend.arrivals}
        </li>
        <li>
          <i className={styles.reached} /> {labels.legend.reached}
        </li>
        <li>
          <i className={styles.short} /> {labels.legend.short}
        </li>
      </ul>
    </div>
  );
}

function LaneRow({ lane, timeline }: { readonly lane: Lane; readonly timeline: Timeline }) {
  const { process } = lane;
  const label = words.run.settlement.bar(duration(process.silentNs), duration(process.quietNs));
  return (
    <div className={styles.lane}>
      <span className={styles.service}>
        <Text value={process.service} charsMax={40} />
      </span>
      <div className={styles.track} role="img" aria-label={label} title={label}>
        <i className={styles.arrivals} style={{ inlineSize: percent(lane.last) }} />
        <i
          className={`${lane.isReached ? styles.reached : styles.short} ${lane.isCut ? styles.cut : ""}`}
          style={{
            insetInlineStart: percent(lane.last),
            inlineSize: percent(lane.due - lane.last),
          }}
        />
        <i className={styles.moment} style={{ insetInlineStart: percent(timeline.answered) }} />
        <i className={styles.decision} style={{ insetInlineStart: percent(timeline.decided) }} />
        <i className={styles.last} style={{ insetInlineStart: percent(lane.last) }} />
      </div>
    </div>
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)}%`;
}
