import type { ReactNode } from "react";
import { Button as AriaButton, type ButtonProps, Tooltip, TooltipTrigger } from "react-aria-components";
import styles from "./button.module.css";

interface Props extends Omit<ButtonProps, "className" | "children"> {
  readonly look?: "plain" | "primary" | "quiet" | "danger";
  readonly icon?: ReactNode;
  /** Why the button is disabled, or what its icon means; shown beside it. */
  readonly hint?: string | undefined;
  readonly children?: ReactNode;
}

export function Button({ look = "plain", icon, hint, children, ...props }: Props) {
  const button = (
    <AriaButton
      {...props}
      {...(hint !== undefined && children === undefined ? { "aria-label": hint } : {})}
      className={`${styles.button} ${styles[look]} ${children === undefined ? styles.square : ""}`}
    >
      {icon}
      {children === undefined ? null : <span>{children}</span>}
    </AriaButton>
  );
  if (hint === undefined) {
    return button;
  }
  return (
    <TooltipTrigger delay={400}>
      {button}
      <Tooltip className={styles.tooltip ?? ""} offset={6}>
        {hint}
      </Tooltip>
    </TooltipTrigger>
  );
}

export const linkButton: string = `${styles.button} ${styles.plain}`;

/** A link that looks like the first thing to do. */
export const primaryLink: string = `${styles.button} ${styles.primary}`;
