import { SquareTerminal } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { words } from "../words.ts";
import { Button } from "./button.tsx";
import { Code } from "./code.tsx";
import { Sheet } from "./overlay.tsx";
import styles from "./page.module.css";
import { useShortcut } from "./use-shortcut.ts";

interface Props {
  /** The title of the browser's tab. */
  readonly tab: string;
  readonly title: ReactNode;
  readonly above?: ReactNode;
  readonly actions?: ReactNode;
  /** The commands that show or do the same in a terminal. */
  readonly command: readonly string[];
  /** The screen has the window to itself: its content fills the height, and scrolls within itself. */
  readonly isFull?: boolean;
  readonly children: ReactNode;
}

/** The frame of a screen: its title, its actions, and its command. */
export function Page({ tab, title, above, actions, command, isFull = false, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  useShortcut("command", () => setOpen(true));
  useEffect(() => {
    document.title = `${tab} · ${words.product}`;
  }, [tab]);
  return (
    <div className={`${styles.page} ${isFull ? styles.full : ""}`}>
      <header className={styles.head}>
        <div className={styles.titles}>
          {above}
          <h1 className={styles.title}>{title}</h1>
        </div>
        <div className={styles.actions}>
          {actions}
          <Button
            look="quiet"
            icon={<SquareTerminal size={16} aria-hidden="true" />}
            hint={words.command.open}
            onPress={() => setOpen(true)}
          />
        </div>
      </header>
      {children}
      <Sheet title={words.command.title} isOpen={isOpen} onOpenChange={setOpen}>
        <Code lines={command} />
      </Sheet>
    </div>
  );
}
