import type { ReactNode } from "react";
import { TextArea, TextField, type TextFieldProps } from "react-aria-components";
import styles from "./area.module.css";

interface Props extends Omit<TextFieldProps, "className" | "children" | "style"> {
  readonly label: ReactNode;
  readonly below?: ReactNode;
  readonly placeholder?: string;
  readonly rows?: number;
}

/** A field for text of several lines, such as a command. */
export function Area({ label, below, placeholder, rows = 5, ...props }: Props) {
  return (
    <TextField {...props} className={styles.field ?? ""}>
      {label}
      <TextArea
        className={styles.input ?? ""}
        rows={rows}
        spellCheck="false"
        autoCapitalize="off"
        {...(placeholder === undefined ? {} : { placeholder })}
      />
      {below}
    </TextField>
  );
}
