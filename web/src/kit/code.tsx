import styles from "./code.module.css";
import { CopyButton } from "./copy.tsx";

/** A command, one a line, with a button that copies all of them. */
export function Code({ lines }: { readonly lines: readonly string[] }) {
  return (
    <div className={styles.box}>
      <pre className={styles.lines}>{lines.join("\n")}</pre>
      <CopyButton text={() => lines.join("\n")} look="quiet" />
    </div>
  );
}
