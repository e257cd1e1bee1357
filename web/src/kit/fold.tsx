import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { Button, Disclosure, DisclosurePanel, Heading } from "react-aria-components";
import styles from "./fold.module.css";

interface Props {
  readonly title: ReactNode;
  readonly aside?: ReactNode;
  readonly isOpen?: boolean;
  readonly children: ReactNode;
}

/** A section that the reader opens and closes. */
export function Fold({ title, aside, isOpen = false, children }: Props) {
  return (
    <Disclosure className={styles.fold ?? ""} defaultExpanded={isOpen}>
      <Heading level={2} className={styles.heading}>
        <Button slot="trigger" className={styles.trigger ?? ""}>
          <ChevronRight size={14} aria-hidden="true" className={styles.arrow} />
          <span className={styles.title}>{title}</span>
          {aside === undefined ? null : <span className={styles.aside}>{aside}</span>}
        </Button>
      </Heading>
      <DisclosurePanel className={styles.panel ?? ""}>{children}</DisclosurePanel>
    </Disclosure>
  );
}
