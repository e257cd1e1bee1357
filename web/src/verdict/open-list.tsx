import { ChevronRight } from "lucide-react";
import { Button, Disclosure, DisclosurePanel, Heading } from "react-aria-components";
import { Prose, Text } from "../kit/text.tsx";
import { Mark } from "./mark.tsx";
import styles from "./open-list.module.css";
import { StatementBody } from "./statement-card.tsx";
import { type Statement, sharedReason, unfolded } from "./statements.ts";

/** Statements that are not decided: a line each, since they mostly have one reason, which is stated once. */
export function OpenList({ statements }: { readonly statements: readonly Statement[] }) {
  const shared = sharedReason(statements);
  return (
    <div className={styles.box}>
      {shared === null ? null : (
        <p className={styles.shared}>
          <Prose value={shared} />
        </p>
      )}
      {statements.map((it) => (
        <OpenStatement key={it.key} statement={it.reason === shared ? { ...it, reason: null } : it} />
      ))}
    </div>
  );
}

function OpenStatement({ statement }: { readonly statement: Statement }) {
  const { name, text, place, verdict } = statement;
  return (
    <Disclosure className={styles.item ?? ""}>
      <Heading level={3} className={styles.heading}>
        <Button slot="trigger" className={styles.trigger ?? ""}>
          <ChevronRight size={14} aria-hidden="true" className={styles.arrow} />
          <Mark mark={verdict} size={14} />
          <span className={styles.words}>
            {name === null ? null : (
              <span className={styles.name}>
                <Text value={name} charsMax={120} isPlain />
              </span>
            )}
            <code>
              <Text value={unfolded(text)} charsMax={120} isPlain />
            </code>
          </span>
          <span className={styles.place}>
            {place.line}:{place.column}
          </span>
        </Button>
      </Heading>
      <DisclosurePanel className={styles.panel ?? ""}>
        <StatementBody statement={statement} />
      </DisclosurePanel>
    </Disclosure>
  );
}
