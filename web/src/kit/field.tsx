import type { ReactNode } from "react";
import { Input, TextField, type TextFieldProps } from "react-aria-components";
import styles from "./field.module.css";

interface Props extends Omit<TextFieldProps, "className" | "children" | "style"> {
  readonly label: ReactNode;
  readonly below?: ReactNode;
  readonly icon?: ReactNode;
  readonly placeholder?: string;
  /** The key `/` moves the focus here. */
  readonly isSearch?: boolean;
}

export function Field({ label, below, icon, placeholder, isSearch, ...props }: Props) {
  return (
    <TextField {...props} className={styles.field ?? ""} {...(isSearch ? { "data-search": "" } : {})}>
      {label}
      <span className={styles.box}>
        {icon}
        <Input className={styles.input ?? ""} {...(placeholder === undefined ? {} : { placeholder })} />
      </span>
      {below}
    </TextField>
  );
}
