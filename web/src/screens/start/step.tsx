import type { ReactNode } from "react";
import styles from "./screen.module.css";

interface Props {
  readonly number: number;
  readonly title: string;
  readonly text?: string;
  readonly children?: ReactNode;
}

/** A step of a first run, with its number. */
export function Step({ number, title, text, children }: Props) {
  return (
    <li className={styles.step}>
      <h2 className={styles.stepTitle}>
        <span className={styles.number} aria-hidden="true">
          {number}
        </span>
        {title}
      </h2>
      <div className={styles.stepBody}>
        {text === undefined ? null : <p className={styles.soft}>{text}</p>}
        {children}
      </div>
    </li>
  );
}
