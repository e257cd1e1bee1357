import { useState } from "react";
import { Button } from "react-aria-components";
import { words } from "../words.ts";
import { cut, type Layout, pieces } from "./marks.ts";
import styles from "./text.module.css";

/** The characters of a value that are shown before the reader asks for more, on a line and in a block. */
const LINE_CHARS_MAX = 300;
const BLOCK_CHARS_MAX = 2000;

interface Props {
  readonly value: string;
  readonly layout?: Layout;
  readonly charsMax?: number;
}

/** Untrusted text: text nodes only, invisible characters as marks, long values cut until the reader asks. */
export function Text({ value, layout = "line", charsMax }: Props) {
  const [isOpen, setOpen] = useState(false);
  const max = charsMax ?? (layout === "line" ? LINE_CHARS_MAX : BLOCK_CHARS_MAX);
  const { head, rest } = cut(value, max);
  return (
    <>
      <bdi>
        <Marked text={isOpen ? value : head} layout={layout} />
        {rest > 0 && !isOpen ? "…" : null}
      </bdi>
      {rest > 0 ? (
        <>
          {" "}
          <Button className={styles.more} onPress={() => setOpen(!isOpen)}>
            {isOpen ? words.text.less : words.text.more(rest)}
          </Button>
        </>
      ) : null}
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
