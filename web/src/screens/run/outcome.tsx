import { type ReactNode, useMemo } from "react";
import type { Schemas } from "../../api/client.ts";
import { Fold } from "../../kit/fold.tsx";
import { Text } from "../../kit/text.tsx";
import { AnalyzerView } from "../../verdict/analyzer.tsx";
import { HeldStatements } from "../../verdict/held.tsx";
import { OpenList } from "../../verdict/open-list.tsx";
import { SettlementView } from "../../verdict/settlement.tsx";
import { settlementLine } from "../../verdict/settlement-line.ts";
import { StatementCard } from "../../verdict/statement-card.tsx";
import { type Outcome, type Statement, statements } from "../../verdict/statements.ts";
import { DecidingTree } from "../../verdict/tree.tsx";
import { TriggerView } from "../../verdict/trigger.tsx";
import { triggerLine } from "../../verdict/trigger-line.ts";
import { whys } from "../../verdict/why.ts";
import { WhyList } from "../../verdict/why-list.tsx";
import { words } from "../../words.ts";
import { GreenView } from "./green.tsx";
import styles from "./outcome.module.css";
import { TriggerRequest } from "./request.tsx";
import { StartedWith } from "./started.tsx";
import { Steps } from "./steps.tsx";

/** The cards that are shown; the HTML report has all. */
const CARDS_MAX = 100;

/** What a run ended with: what does not hold, why, and what it is based on. */
export function OutcomeView({ run, outcome }: { readonly run: Schemas["Run"]; readonly outcome: Outcome }) {
  const all = useMemo(() => statements(outcome), [outcome]);
  const reasons = useMemo(() => whys(outcome), [outcome]);
  const of = (verdict: Statement["verdict"]) => all.filter((it) => it.verdict === verdict);
  const held = of("passed");
  const open = of("inconclusive");
  const hasTree = outcome.verdict !== "passed" && outcome.judgement.tree.length > 0;
  return (
    <>
      <Cards title={words.run.failedStatements} statements={of("failed")} />
      {reasons.length === 0 ? null : (
        <Section title={words.run.why}>
          <WhyList whys={reasons} />
        </Section>
      )}
      {open.length === 0 ? null : (
        <Section title={words.run.openStatements}>
          <OpenList statements={open} />
        </Section>
      )}
      {outcome.verdict === "passed" ? null : <GreenView run={run} />}
      {hasTree ? (
        <Section title={outcome.verdict === "failed" ? words.run.tree : words.run.treeOpen}>
          <div className={styles.card}>
            <DecidingTree outcome={outcome} />
          </div>
        </Section>
      ) : null}
      <div className={styles.folds}>
        <Settled outcome={outcome} />
        <Trigger run={run} outcome={outcome} />
        <StartedWith run={run} />
        {outcome.judgement.outputs.length === 0 ? null : <Outputs outcome={outcome} />}
        {held.length === 0 ? null : (
          <Fold
            title={words.run.passedStatements}
            aside={words.run.statements(held.length)}
            isOpen={outcome.verdict === "passed"}
          >
            <HeldStatements statements={held} />
          </Fold>
        )}
        {outcome.analysis === null ? null : (
          <Fold
            title={words.run.analyzer.title}
            aside={words.run.analyzer.score(outcome.analysis.score, outcome.analysis.minimumScore)}
          >
            <AnalyzerView analysis={outcome.analysis} />
          </Fold>
        )}
        {outcome.steps.length === 0 ? null : (
          <Fold title={words.run.steps.title}>
            <Steps steps={outcome.steps} />
          </Fold>
        )}
      </div>
    </>
  );
}

function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className={styles.section}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function Cards({
  title,
  statements: cards,
}: {
  readonly title: string;
  readonly statements: readonly Statement[];
}) {
  return cards.length === 0 ? null : (
    <Section title={title}>
      {cards.slice(0, CARDS_MAX).map((it) => (
        <StatementCard key={it.key} statement={it} />
      ))}
    </Section>
  );
}

function Settled({ outcome }: { readonly outcome: Outcome }) {
  const { settlement } = outcome;
  const labels = words.run.settlement;
  if (settlement === null) {
    return outcome.answer === null ? null : (
      <Fold title={labels.title}>
        <p>{labels.none}</p>
      </Fold>
    );
  }
  const isComplete = settlement.unsettled.length === 0;
  return (
    <Fold
      title={isComplete ? labels.complete : labels.incomplete}
      aside={settlementLine(settlement)}
      isOpen={outcome.verdict !== "passed"}
    >
      <SettlementView settlement={settlement} />
    </Fold>
  );
}

function Trigger({ run, outcome }: { readonly run: Schemas["Run"]; readonly outcome: Outcome }) {
  const { answer } = outcome;
  const line = triggerLine(answer);
  const title = words.run.trigger.title;
  return (
    <Fold title={title} aside={<Text value={line} />}>
      <TriggerRequest run={run} />
      {answer === null || answer === "notFired" ? <p>{line}</p> : <TriggerView answer={answer} />}
    </Fold>
  );
}

function Outputs({ outcome }: { readonly outcome: Outcome }) {
  const { outputs } = outcome.judgement;
  return (
    <Fold title={words.run.outputs.title} aside={outputs.length}>
      <dl className={styles.outputs}>
        {outputs.map((it) => (
          <div key={it.name}>
            <dt>
              <Text value={it.name} charsMax={80} />
            </dt>
            <dd>
              {it.value === null ? (
                <span className={styles.open}>
                  {words.run.outputs.noValue}
                  {it.reason === null ? null : (
                    <>
                      : <Text value={it.reason} />
                    </>
                  )}
                </span>
              ) : (
                <code>
                  <Text value={it.value} />
                </code>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </Fold>
  );
}
