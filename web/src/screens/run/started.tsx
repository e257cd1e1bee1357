import type { Schemas } from "../../api/client.ts";
import { Fold } from "../../kit/fold.tsx";
import { Text } from "../../kit/text.tsx";
import { words } from "../../words.ts";
import styles from "./outcome.module.css";

/** The variables that a run was started with. */
export function StartedWith({ run }: { readonly run: Schemas["Run"] }) {
  const labels = words.run.started;
  const variables = Object.entries(run.variables);
  const sets = run.variableSets;
  if (variables.length === 0 && sets.length === 0) {
    return null;
  }
  return (
    <Fold title={labels.title} aside={labels.variables(variables.length)}>
      <dl className={styles.outputs}>
        {variables.map(([name, value]) => (
          <div key={name}>
            <dt>
              <Text value={name} charsMax={80} />
            </dt>
            <dd>
              {value === null ? (
                <span className={styles.open}>{labels.secret}</span>
              ) : (
                <code>
                  <Text value={value} />
                </code>
              )}
            </dd>
          </div>
        ))}
        {sets.length === 0 ? null : (
          <div>
            <dt>{labels.sets}</dt>
            <dd>
              <Text value={sets.join(", ")} />
            </dd>
          </div>
        )}
      </dl>
    </Fold>
  );
}
