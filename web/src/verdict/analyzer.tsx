import type { Schemas } from "../api/client.ts";
import { Text } from "../kit/text.tsx";
import { words } from "../words.ts";
import styles from "./analyzer.module.css";

type Rule = Schemas["RuleAnalysis"];

/** The score of the trace, and the rules that are broken. */
export function AnalyzerView({ analysis }: { readonly analysis: Schemas["Analysis"] }) {
  const labels = words.run.analyzer;
  return (
    <div className={styles.view}>
      {analysis.plugins.map((plugin) => {
        const broken = plugin.rules.filter((rule) => findings(rule) > 0);
        return (
          <section key={plugin.id} className={styles.plugin}>
            <h3>
              <Text value={plugin.id} charsMax={60} />
              <span>
                {plugin.score} · {labels.rules(plugin.rules.length)},{" "}
                {broken.length === 0 ? labels.kept : labels.broken(broken.length)}
              </span>
            </h3>
            {broken.map((rule) => (
              <RuleView key={rule.id} rule={rule} />
            ))}
          </section>
        );
      })}
    </div>
  );
}

function RuleView({ rule }: { readonly rule: Rule }) {
  const labels = words.run.analyzer;
  return (
    <div className={styles.rule}>
      <p>
        <span className={styles[rule.level]}>{labels[rule.level]}</span>{" "}
        <Text value={rule.id} charsMax={80} />
        <span className={styles.soft}>{labels.findings(findings(rule))}</span>
      </p>
      <ul>
        {rule.findings.map((it, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: findings may be alike; the list never changes
          <li key={at}>
            {it.name === "" ? null : <Text value={it.name} charsMax={80} />}{" "}
            <span className={styles.soft}>
              <Text value={it.message} />
            </span>
          </li>
        ))}
        {rule.moreFindings > 0 ? <li className={styles.soft}>{labels.more(rule.moreFindings)}</li> : null}
      </ul>
    </div>
  );
}

function findings(rule: Rule): number {
  return rule.findings.length + rule.moreFindings;
}
