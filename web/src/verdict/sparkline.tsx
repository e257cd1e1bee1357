import type { Schemas } from "../api/client.ts";
import { words } from "../words.ts";
import styles from "./sparkline.module.css";
import { type RunMark, SPARKLINE_RUNS, sparkline } from "./trend.ts";

type Trend = Schemas["Trend"];

const STEP = 6;
const HEIGHT = 20;

/** The last runs, the newest on the right: low bars passed, high ones with a foot failed, diamonds are inconclusive. */
export function Sparkline({ trend }: { readonly trend: Trend }) {
  const marks = sparkline(trend);
  const first = SPARKLINE_RUNS - marks.length;
  const number = (mark: RunMark) => marks.filter((it) => it === mark).length;
  const label =
    marks.length === 0
      ? words.trend.none
      : words.trend.label(marks.length, number("passed"), number("failed"), number("inconclusive"));
  return (
    <svg
      className={styles.line}
      width={SPARKLINE_RUNS * STEP}
      height={HEIGHT}
      viewBox={`0 0 ${SPARKLINE_RUNS * STEP} ${HEIGHT}`}
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      <path d={`M0 ${HEIGHT - 0.5}h${SPARKLINE_RUNS * STEP}`} className={styles.base} />
      {marks.map((mark, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a mark is its position
        <Bar key={at} mark={mark} x={(first + at) * STEP} />
      ))}
    </svg>
  );
}

function Bar({ mark, x }: { readonly mark: RunMark; readonly x: number }) {
  const middle = x + STEP / 2;
  switch (mark) {
    case "passed":
      return <rect x={x + 1} y={HEIGHT - 8} width={STEP - 2} height={7} rx="1" className={styles.passed} />;
    case "failed":
      return <rect x={x + 1} y={1} width={STEP - 2} height={HEIGHT - 2} rx="1" className={styles.failed} />;
    case "inconclusive":
      return <path d={`M${middle} 5.5l2.9 4.5-2.9 4.5-2.9-4.5Z`} className={styles.inconclusive} />;
    default:
      return <circle cx={middle} cy={HEIGHT - 5} r="1.9" className={styles.running} />;
  }
}
