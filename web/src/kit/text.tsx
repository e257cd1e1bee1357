import { useState } from "react";
import { Button } from "react-aria-components";
import { words } from "../words.ts";
import { cut, type Layout, pieces } from "./marks.ts";
import styles from "./text.module.css";

/** The characters of a value that are shown before the reader asks for more, on a line and in a block. */
const LINE_CHARS_MAX = 300;
const BLOCK_CHARS_MAX = 2000;
const PROSE_CHARS_MAX = 1000;

interface Props {
  readonly value: string;
  readonly layout?: Layout;
  readonly charsMax?: number;
  /** Inside of a button there is no button for the rest. */
  readonly isPlain?: boolean;
}

/** Untrusted text: text nodes only, invisible characters as marks, long values cut until the reader asks. */
export function Text({ value, layout = "line", charsMax, isPlain = false }: Props) {
  const [isOpen, setOpen] = useState(false);
  const max = charsMax ?? (layout === "line" ? LINE_CHARS_MAX : BLOCK_CHARS_MAX);
  const { head, rest } = cut(value, max);
  return (
    <>
      <bdi>
        <Marked text={isOpen ? value : head} layout={layout} />
        {rest > 0 && !isOpen ? "…" : null}
      </bdi>
      {rest > 0 && !isPlain ? <More rest={rest} isOpen={isOpen} onChange={setOpen} /> : null}
    </>
  );
}

interface ProseProps {
  readonly value: string;
  readonly charsMax?: number;
}

/** A sentence of the server: what it puts in backticks is code. */
export function Prose({ value, charsMax = PROSE_CHARS_MAX }: ProseProps) {
  const [isOpen, setOpen] = useState(false);
  const { head, rest } = cut(value, charsMax);
  return (
    <>
      <bdi>
        {(isOpen ? value : head).split(/(`[^`]+`)/).map((part, at) =>
          part.startsWith("`") && part.endsWith("`") && part.length > 2 ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: a part is its position
            <code key={at} className={styles.code}>
              <Marked text={part.slice(1, -1)} layout="line" />
            </code>
          ) : (
            // biome-ignore lint/suspicious/noArrayIndexKey: a part is its position
            <Marked key={at} text={part} layout="line" />
          ),
        )}
        {rest > 0 && !isOpen ? "…" : null}
      </bdi>
      {rest > 0 ? <More rest={rest} isOpen={isOpen} onChange={setOpen} /> : null}
    </>
  );
}

interface MoreProps {
  readonly rest: number;
  readonly isOpen: boolean;
  readonly onChange: (isOpen: boolean) => void;
}

function More({ rest, isOpen, onChange }: MoreProps) {
  return (
    <>
      {" "}
      <Button className={styles.more ?? ""} onPress={() => onChange(!isOpen)}>
        {isOpen ? words.text.less : words.text.more(rest)}
      </Button>
    </>
  );
}

/** Untrusted text in the place of a title or a cell: marks, and cut by the style where there is no room. */
export function Label({ value }: { readonly value: string }) {
  return (
    <bdi>
      <Marked text={cut(value, LINE_CHARS_MAX).head} layout="line" />
    </bdi>
  );
}

function Marked({ text, layout }: { readonly text: string; readonly layout: Layout }) {
  return pieces(text, layout).map((piece, at) =>
    piece.mark === null ? (
      piece.text
    ) : (
      // The position is the identity of a piece: the text is never reordered.
      // biome-ignore lint/suspicious/noArrayIndexKey: see above
      <span key={at} className={styles.mark} title={words.text.markOf(piece.mark)}>
        {piece.mark}
      </span>
    ),
  );
}
