import { useState } from "react";
import { Button } from "../kit/button.tsx";
import { Prose, Text } from "../kit/text.tsx";
import { words } from "../words.ts";
import { EvidenceView } from "./evidence-view.tsx";
import { Mark } from "./mark.tsx";
import { SpanLink } from "./span-link.tsx";
import styles from "./statement-card.module.css";
import type { SpanEvidence, Statement } from "./statements.ts";
import { decidedWords, unfolded } from "./statements.ts";

/** The spans of a card that are shown before the reader asks for the others, and fewer beside values. */
const SPANS_SHOWN = 5;
const SPANS_BESIDE_VALUES = 3;
/** The characters of what was found at a span that are shown before the reader asks for the others. */
const FOUND_CHARS_MAX = 300;

/** A statement that does not hold: its text with its place, what was found, and how final that is. */
export function StatementCard({ statement }: { readonly statement: Statement }) {
  const { name, text, place, verdict } = statement;
  return (
    <article className={`${styles.card} ${styles[verdict]}`}>
      <header className={styles.head}>
        <Mark mark={verdict} />
        <h3 className={styles.title}>
          {name === null ? <code>{unfoldedText(text)}</code> : <Text value={name} />}
        </h3>
        <span className={styles.place}>
          <Text value={`${place.file}:${place.line}:${place.column}`} />
        </span>
      </header>
      <StatementBody statement={statement} />
    </article>
  );
}

/** What there is to a statement below its title. */
export function StatementBody({ statement }: { readonly statement: Statement }) {
  const { name, text, reason, selector } = statement;
  return (
    <>
      {selector === null ? null : (
        <p className={styles.selector}>
          {selector === "" ? words.run.everySpan : <code>{unfoldedText(selector)}</code>}
          {statement.matched === null ? null : <span>{words.run.selects(statement.matched)}</span>}
        </p>
      )}
      {name === null ? null : (
        <pre className={styles.text}>
          <Text value={text} layout="block" />
        </pre>
      )}
      {reason === null ? null : (
        <p className={styles.reason}>
          <Prose value={reason} />
        </p>
      )}
      {statement.evidence === undefined ? null : (
        <EvidenceView evidence={statement.evidence} statement={text} />
      )}
      <Evidence statement={statement} />
      <p className={styles.decided}>{decidedWords(statement)}</p>
    </>
  );
}

function unfoldedText(text: string) {
  return <Text value={unfolded(text)} />;
}

function Evidence({ statement }: { readonly statement: Statement }) {
  const [isOpen, setOpen] = useState(false);
  const { moreSpans: more, spans } = statement;
  const max = statement.evidence === undefined ? SPANS_SHOWN : SPANS_BESIDE_VALUES;
  if (spans.length === 0) {
    return null;
  }
  const worst = [...spans].sort((a, b) => rank(a) - rank(b));
  const shown = isOpen ? worst : worst.slice(0, max);
  return (
    <div className={styles.evidence}>
      <table>
        <thead>
          <tr>
            <th scope="col">{words.run.found}</th>
            <th scope="col">{words.run.span}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((span, at) => (
            // A span may be listed more than once; the list never changes.
            // biome-ignore lint/suspicious/noArrayIndexKey: see above
            <tr key={at}>
              <td className={styles.found} colSpan={hasSpan(span) ? 1 : 2}>
                <Mark mark={span.verdict} size={12} />
                <span>
                  <Prose value={span.found} charsMax={FOUND_CHARS_MAX} />
                </span>
              </td>
              {hasSpan(span) ? (
                <td className={styles.span}>
                  {span.name === "" ? null : <Text value={span.name} charsMax={80} />}
                  {span.spanId === null ? null : <SpanLink span={span.spanId} />}
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
      {!isOpen && spans.length > max ? (
        <Button look="quiet" onPress={() => setOpen(true)}>
          {words.run.showAll(spans.length)}
        </Button>
      ) : null}
      {more > 0 && (isOpen || spans.length <= max) ? (
        <p className={styles.more}>{words.run.andMore(more)}</p>
      ) : null}
    </div>
  );
}

function rank(span: SpanEvidence): number {
  return span.verdict === "failed" ? 0 : span.verdict === "inconclusive" ? 1 : 2;
}

/** What was found may be of the whole trace or of the response. */
function hasSpan(span: SpanEvidence): boolean {
  return span.name !== "" || span.spanId !== null;
}
