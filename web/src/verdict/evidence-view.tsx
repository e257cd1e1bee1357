import { useState } from "react";
import type { Schemas } from "../api/client.ts";
import { Button } from "../kit/button.tsx";
import { Text } from "../kit/text.tsx";
import { words } from "../words.ts";
import {
  conditionText,
  groupBars,
  type Requirement,
  requirements,
  type StatementEvidence,
  valueText,
} from "./evidence.ts";
import styles from "./evidence-view.module.css";
import { Mark } from "./mark.tsx";
import { SpanLink } from "./span-link.tsx";

/** The groups and the deciding spans that are shown before the reader asks for the others. */
const GROUPS_SHOWN = 5;
const SPANS_SHOWN = 4;
const VALUE_CHARS_MAX = 160;

/** What is required beside what was found, the groups, the nearest misses, and the spans that decide. */
export function EvidenceView({
  evidence,
  statement,
}: {
  readonly evidence: StatementEvidence;
  /** The text of the statement: a subject that is in it needs no line of its own. */
  readonly statement: string;
}) {
  const { comparisons = [], deciding = [], groups, moreDeciding = 0, nearest = [] } = evidence;
  const required = requirements(comparisons);
  const isNamed = (subject: string) => required.length > 1 || !statement.includes(subject);
  return (
    <div className={styles.view}>
      {required.map((it) => (
        <Compared key={`${it.subject} ${it.expected}`} requirement={it} isNamed={isNamed(it.subject)} />
      ))}
      {groups === undefined ? null : <Groups groups={groups} />}
      {nearest.length === 0 ? null : <Nearest misses={nearest} />}
      {deciding.length === 0 ? null : <Deciding spans={deciding} more={moreDeciding} />}
    </div>
  );
}

function Compared({
  requirement,
  isNamed,
}: {
  readonly requirement: Requirement;
  readonly isNamed: boolean;
}) {
  const { subject, expected, found, hasMore } = requirement;
  return (
    <dl className={styles.compared}>
      <div className={styles.expected}>
        <dt>{words.run.proof.expected}</dt>
        <dd>
          <Text value={expected} charsMax={VALUE_CHARS_MAX} />
        </dd>
      </div>
      <div className={styles.found}>
        <dt>{words.run.found}</dt>
        <dd>
          {found.map((value) => (
            <span key={value}>
              <Text value={value} charsMax={VALUE_CHARS_MAX} />
            </span>
          ))}
          {hasMore ? <span className={styles.soft}>{words.run.proof.others}</span> : null}
        </dd>
      </div>
      {isNamed ? (
        <div className={styles.subject}>
          <dt>{words.run.proof.of}</dt>
          <dd>
            <code>
              <Text value={subject} charsMax={VALUE_CHARS_MAX} />
            </code>
          </dd>
        </div>
      ) : null}
    </dl>
  );
}

function Groups({ groups }: { readonly groups: Schemas["GroupsEvidence"] }) {
  const [isOpen, setOpen] = useState(false);
  const all = groupBars(groups);
  const bars = isOpen ? all : all.slice(0, GROUPS_SHOWN);
  const total = groups.worst.length + (groups.more ?? 0);
  return (
    <div>
      <h4 className={styles.heading}>{words.run.proof.groups(groups.broken, total)}</h4>
      <ul className={styles.groups}>
        {bars.map((bar, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: keys are cut and may be alike; the list never changes
          <li key={at}>
            <Mark mark={bar.holds ? "passed" : "failed"} size={12} />
            <span className={styles.amount}>{bar.value}</span>
            <svg viewBox="0 0 100 8" preserveAspectRatio="none" className={styles.bar} aria-hidden="true">
              <rect width="100" height="8" className={styles.track} />
              {bar.share === null ? null : (
                <rect
                  width={Math.max(1, bar.share * 100)}
                  height="8"
                  className={bar.holds ? styles.held : styles.broken}
                />
              )}
            </svg>
            <span className={styles.key}>
              <Text value={bar.key} charsMax={VALUE_CHARS_MAX} />
            </span>
          </li>
        ))}
      </ul>
      {isOpen || all.length <= GROUPS_SHOWN ? (
        (groups.more ?? 0) > 0 && (
          <p className={styles.soft}>{words.run.proof.moreGroups(groups.more ?? 0)}</p>
        )
      ) : (
        <Button look="quiet" onPress={() => setOpen(true)}>
          {words.run.proof.showGroups(all.length)}
        </Button>
      )}
    </div>
  );
}

function Nearest({ misses }: { readonly misses: readonly Schemas["NearMiss"][] }) {
  return (
    <div>
      <h4 className={styles.heading}>{words.run.proof.nearest}</h4>
      <ul className={styles.misses}>
        {misses.map((miss) => (
          <li key={`${miss.spanId} ${miss.selector}`}>
            <span>
              <Text value={miss.name} charsMax={80} /> <SpanLink span={miss.spanId} />
            </span>
            <span>
              {words.run.proof.not}{" "}
              <code>
                <Text value={conditionText(miss)} charsMax={VALUE_CHARS_MAX} />
              </code>
              {miss.found === undefined ? null : (
                <>
                  {words.run.proof.instead}{" "}
                  <code>
                    <Text value={valueText(miss.found)} charsMax={VALUE_CHARS_MAX} />
                  </code>
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Deciding({ spans, more }: { readonly spans: readonly string[]; readonly more: number }) {
  const rest = spans.length - SPANS_SHOWN + more;
  return (
    <p className={styles.deciding}>
      <span>{words.run.proof.deciding(spans.length + more)}</span>
      {spans.slice(0, SPANS_SHOWN).map((span) => (
        <SpanLink key={span} span={span} />
      ))}
      {rest > 0 ? <span>{words.run.andMore(rest)}</span> : null}
    </p>
  );
}
