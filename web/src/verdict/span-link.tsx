import { createContext, type ReactNode, useContext } from "react";
import styles from "./span-link.module.css";

/** Draws the id of a span as a link to the span in its trace; none where no trace is stored. */
export const SpanAnchor = createContext<((span: string, className: string | undefined) => ReactNode) | null>(
  null,
);

/** The id of a span, which leads to the span in its trace. */
export function SpanLink({ span }: { readonly span: string }) {
  const anchor = useContext(SpanAnchor);
  return anchor === null ? <code className={styles.span}>{span}</code> : anchor(span, styles.span);
}
