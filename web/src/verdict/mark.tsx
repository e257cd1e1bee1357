import { words } from "../words.ts";
import styles from "./mark.module.css";
import type { RunMark } from "./trend.ts";

interface Props {
  readonly mark: RunMark;
  readonly size?: number;
}

/** The symbol of a verdict or of a state: its shape tells it without its colour. */
export function Mark({ mark, size = 16 }: Props) {
  return (
    <svg
      className={`${styles.mark} ${styles[mark]}`}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      aria-hidden="true"
    >
      <Shape mark={mark} />
    </svg>
  );
}

function Shape({ mark }: { readonly mark: RunMark }) {
  switch (mark) {
    case "passed":
      return (
        <>
          <circle cx="8" cy="8" r="7" className={styles.fill} />
          <path d="M4.8 8.2 7 10.4l4.2-4.6" className={styles.sign} />
        </>
      );
    case "failed":
      return (
        <>
          <rect x="1" y="1" width="14" height="14" rx="3" className={styles.fill} />
          <path d="m5.2 5.2 5.6 5.6m0-5.6-5.6 5.6" className={styles.sign} />
        </>
      );
    case "inconclusive":
      return (
        <>
          <path d="M8 .6 15.4 8 8 15.4.6 8Z" className={styles.fill} />
          <path d="M5.2 8h5.6" className={styles.sign} />
        </>
      );
    case "running":
      return (
        <>
          <circle cx="8" cy="8" r="6" className={styles.ring} />
          <path d="M8 2a6 6 0 0 1 6 6" className={styles.turn} />
        </>
      );
    case "queued":
      return <circle cx="8" cy="8" r="6" className={styles.waiting} />;
  }
}

interface WordProps {
  readonly mark: RunMark;
  readonly size?: number;
  readonly isProvisional?: boolean;
}

/** A verdict as symbol and word. */
export function VerdictWord({ mark, size = 14, isProvisional = false }: WordProps) {
  const word = words.verdict[mark];
  return (
    <span
      className={`${styles.word} ${styles[mark]}`}
      title={isProvisional ? words.verdict.provisional : undefined}
    >
      <Mark mark={mark} size={size} />
      {isProvisional ? words.verdict.lingering(word) : word}
    </span>
  );
}
