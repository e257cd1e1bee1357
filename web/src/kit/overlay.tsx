import { X } from "lucide-react";
import type { ReactNode } from "react";
import { Dialog, Heading, Modal, ModalOverlay, Popover, type PopoverProps } from "react-aria-components";
import { words } from "../words.ts";
import { Button } from "./button.tsx";
import styles from "./overlay.module.css";

interface SheetProps {
  readonly title: string;
  readonly isOpen: boolean;
  readonly onOpenChange: (isOpen: boolean) => void;
  readonly children: ReactNode;
}

/** A dialog over the page. */
export function Sheet({ title, isOpen, onOpenChange, children }: SheetProps) {
  return (
    <ModalOverlay className={styles.overlay ?? ""} isOpen={isOpen} onOpenChange={onOpenChange} isDismissable>
      <Modal className={styles.modal ?? ""}>
        <Dialog className={styles.dialog ?? ""}>
          <div className={styles.head}>
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            <Button
              look="quiet"
              slot="close"
              icon={<X size={16} aria-hidden="true" />}
              aria-label={words.keys.close}
            />
          </div>
          {children}
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

/** A small panel below a button. */
export function Panel({
  children,
  ...props
}: Omit<PopoverProps, "className" | "children"> & { readonly children: ReactNode }) {
  return (
    <Popover {...props} className={styles.popover ?? ""} offset={6}>
      {children}
    </Popover>
  );
}

export const panelStyles = styles;
