import { createContext, useContext } from "react";
import styles from "./span-link.module.css";

/** Returns the address of a span in its trace; none where no trace is stored. */
export const SpanAddress = createContext<((span: string) => string) | null>(null);

/** The id of a span, which leads to the span in its trace. */
export function SpanLink({ span }: { readonly span: string }) {
  const address = useContext(SpanAddress);
  return address === null ? (
    <code className={styles.span}>{span}</code>
  ) : (
    <a className={styles.span} href={address(span)}>
      {span}
    </a>
  );
}
