import { Text } from "../kit/text.tsx";
import { duration } from "../kit/time.ts";
import { words } from "../words.ts";
import type { Arrived, Lane, Timeline } from "./lanes.ts";
import styles from "./lanes-view.module.css";

/** The processes on one line of time: when the spans of each arrived, and how long it had to be quiet. */
export function LanesView({
  timeline,
  waitedNs,
  isOpen = false,
}: {
  readonly timeline: Timeline;
  readonly waitedNs: number;
  /** Whether spans may still arrive. */
  readonly isOpen?: boolean;
}) {
  const labels = words.run.settlement;
  const isKnown = timeline.lanes.every((lane) => lane.arrived !== null);
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
            {isOpen ? labels.now : labels.decided} +{duration(waitedNs)}
          </span>
        </div>
      </div>
      <ul className={styles.legend} aria-hidden="true">
        {isKnown ? (
          <li>
            <i className={styles.arrived} /> {labels.legend.arrivals}
          </li>
        ) : (
          <li>
            <i className={styles.arrivals} /> {labels.legend.untilLast}
          </li>
        )}
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
        {lane.arrived === null ? (
          <i className={styles.arrivals} style={{ inlineSize: percent(lane.last) }} />
        ) : (
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
            <path className={styles.arrived} d={lane.arrived.map(bar).join("")} />
          </svg>
        )}
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

/** The units of the picture of arrivals, which is stretched to its place. */
const WIDTH = 1000;
const HEIGHT = 14;
/** A few spans must be seen beside many. */
const LEAST = { width: 3, height: 4 };

function bar({ from, to, height }: Arrived): string {
  const x = Math.min(from * WIDTH, WIDTH - LEAST.width);
  const width = Math.max((to - from) * WIDTH, LEAST.width);
  const tall = Math.max(Math.sqrt(height) * HEIGHT, LEAST.height);
  return `M${x.toFixed(1)} ${HEIGHT}h${width.toFixed(1)}v-${tall.toFixed(1)}h-${width.toFixed(1)}z`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)}%`;
}
