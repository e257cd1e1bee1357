import { Text } from "../kit/text.tsx";
import styles from "./held.module.css";
import { Mark } from "./mark.tsx";
import { type Statement, unfolded } from "./statements.ts";

/** The statements that hold, a line each. */
export function HeldStatements({ statements }: { readonly statements: readonly Statement[] }) {
  return (
    <ul className={styles.list}>
      {statements.map((it) => (
        <li key={it.key}>
          <Mark mark="passed" size={13} />
          <div>
            {it.name === null ? null : (
              <span className={styles.name}>
                <Text value={it.name} />
              </span>
            )}
            <code>
              <Text value={unfolded(it.text)} />
            </code>
          </div>
          <span className={styles.place}>
            {it.place.line}:{it.place.column}
          </span>
        </li>
      ))}
    </ul>
  );
}
