/** A run as Markdown, for an issue: the same as its page. */

import type { Schemas } from "../api/client.ts";
import { visible } from "../kit/marks.ts";
import { words } from "../words.ts";
import type { Difference } from "./difference.ts";
import { conditionText, groupBars, requirements, valueText } from "./evidence.ts";
import { type SentencePart, sentence } from "./sentence.ts";
import { settlementLine } from "./settlement-line.ts";
import { decidedWords, type Outcome, type Statement, statements, unfolded } from "./statements.ts";
import { triggerLine } from "./trigger-line.ts";
import { unsettledWords } from "./unsettled.ts";
import { whys } from "./why.ts";

const STATEMENTS_MAX = 30;
const SPANS_MAX = 5;
const TEXT_CHARS_MAX = 500;
const BODY_CHARS_MAX = 2000;

/** What is known of the run that passed last. */
export interface GreenRun {
  readonly address: string;
  readonly differences: readonly Difference[];
}

export function runMarkdown(run: Schemas["Run"], address: string, green: GreenRun | null): string {
  const { outcome } = run;
  if (!outcome) {
    return `[${words.run.title} ${run.id}](${address})\n`;
  }
  const all = statements(outcome);
  const of = (verdict: Statement["verdict"]) => all.filter((it) => it.verdict === verdict);
  const held = of("passed");
  return [
    `## ${MARKS[outcome.verdict]} ${words.verdict[outcome.verdict]}: ${prose(outcome.test)}`,
    sentence(outcome).map(partText).join(""),
    facts(run, address),
    section(words.run.failedStatements, of("failed").slice(0, STATEMENTS_MAX).map(statementText)),
    section(words.run.why, [whys(outcome).map(whyText).join("\n")]),
    section(words.run.openStatements, of("inconclusive").slice(0, STATEMENTS_MAX).map(statementText)),
    green === null ? "" : greenText(green),
    settledText(outcome),
    triggerText(outcome),
    outputsText(outcome),
    section(words.run.passedStatements, [held.map((it) => `- ${code(it.name ?? it.text)}`).join("\n")]),
  ]
    .filter((part) => part !== "")
    .join("\n\n")
    .concat("\n");
}

const MARKS: Readonly<Record<Outcome["verdict"], string>> = { passed: "✔", failed: "✘", inconclusive: "?" };

function facts(run: Schemas["Run"], address: string): string {
  const labels = words.run.facts;
  const parts = [
    `[${labels.run} \`${run.id}\`](${address})`,
    `${labels.test} ${code(run.test)}, ${words.test.version(run.version)}`,
    ...(run.revision ? [`${labels.revision} ${code(run.revision)}`] : []),
    `${labels.started} ${run.acceptedAt}`,
    ...(run.traceId ? [`${labels.trace} \`${run.traceId}\``] : []),
  ];
  return parts.join(" · ");
}

function partText({ role, text }: SentencePart): string {
  return role === "words" ? text : role === "subject" ? code(text) : prose(text);
}

function section(title: string, parts: readonly string[]): string {
  const given = parts.filter((part) => part !== "");
  return given.length === 0 ? "" : [`### ${title}`, ...given].join("\n\n");
}

function statementText(statement: Statement): string {
  const { name, text, place, reason, selector, evidence } = statement;
  const { comparisons = [], deciding = [], groups, moreDeciding = 0, nearest = [] } = evidence ?? {};
  const labels = words.run.proof;
  const at = code(`${place.file}:${place.line}:${place.column}`);
  const rows = requirements(comparisons).map(
    (it) => `| ${cell(it.subject)} | ${cell(it.expected)} | ${it.found.map(cell).join(", ")} |`,
  );
  const bars = groups === undefined ? [] : groupBars(groups).slice(0, SPANS_MAX);
  const found = comparisons.length > 0 ? [] : statement.spans.filter((it) => it.verdict !== "passed");
  const total = deciding.length + moreDeciding;
  const ids = deciding.slice(0, SPANS_MAX).map((id) => `\`${id}\``);
  return [
    name === null ? `**${code(text)}** ${at}` : `**${prose(name)}** ${at}\n\n${code(text)}`,
    selector === null ? "" : `${labels.on} ${selector === "" ? words.run.everySpan : code(selector)}`,
    reason === null ? "" : prose(reason),
    rows.length === 0
      ? ""
      : [`| | ${labels.expected} | ${words.run.found} |`, "| --- | --- | --- |", ...rows].join("\n"),
    groups === undefined
      ? ""
      : [
          `${labels.groups(groups.broken, groups.worst.length + (groups.more ?? 0))}:`,
          "",
          ...bars.map((bar) => `- ${bar.value}: ${code(bar.key)}`),
        ].join("\n"),
    nearest
      .map((it) => {
        const instead = it.found === undefined ? "" : `${labels.instead} ${code(valueText(it.found))}`;
        return `- ${labels.near} \`${it.spanId}\` ${code(it.name)}: ${labels.not} ${code(conditionText(it))}${instead}`;
      })
      .join("\n"),
    found
      .slice(0, SPANS_MAX)
      .map((it) => `- ${it.spanId === null ? "" : `\`${it.spanId}\` `}${prose(it.found)}`)
      .join("\n"),
    total === 0 ? "" : `${labels.deciding(total)}: ${ids.join(", ")}${total > ids.length ? ", …" : ""}`,
    `_${decidedWords(statement)}_`,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function whyText({ summary, advice }: ReturnType<typeof whys>[number]): string {
  return `- ${prose(summary)}${advice === null ? "" : `\n  → ${prose(advice)}`}`;
}

function greenText({ address, differences }: GreenRun): string {
  const labels = words.run.green;
  const rows = differences.map((it) => {
    const what = it.isName ? cell(it.what) : it.what;
    return `| ${what} | ${cell(it.before)} | ${cell(it.now)} |`;
  });
  return section(labels.title, [
    `[${labels.run}](${address})`,
    rows.length === 0
      ? labels.nothing
      : [`| | ${labels.before} | ${labels.now} |`, "| --- | --- | --- |", ...rows].join("\n"),
  ]);
}

function settledText({ settlement }: Outcome): string {
  if (settlement === null) {
    return "";
  }
  const labels = words.run.settlement;
  const title = settlement.unsettled.length === 0 ? labels.complete : labels.incomplete;
  return section(title, [
    settlementLine(settlement),
    settlement.unsettled.map((it) => `- ${prose(unsettledWords(it))}`).join("\n"),
  ]);
}

function triggerText({ answer }: Outcome): string {
  const body =
    answer === null || answer === "notFired" || "noAnswer" in answer
      ? null
      : "response" in answer
        ? answer.response.body
        : "reply" in answer
          ? answer.reply.body
          : answer.exit.stdout;
  const text = body !== null && "text" in body ? body.text : "";
  return section(words.run.trigger.title, [triggerLine(answer), text === "" ? "" : block(text)]);
}

function outputsText({ judgement }: Outcome): string {
  const labels = words.run.outputs;
  const rows = judgement.outputs.map((it) => {
    const value = it.value === null ? `${labels.noValue}: ${prose(it.reason ?? "")}` : code(it.value);
    return `- ${code(it.name)}: ${value}`;
  });
  return section(labels.title, [rows.join("\n")]);
}

/** Text of a test or a system as code: on one line, and in more backticks than it has itself. */
function code(text: string): string {
  const line = cut(visible(unfolded(text)), TEXT_CHARS_MAX);
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map((it) => it[0].length));
  const fence = "`".repeat(longest + 1);
  const pad = line.startsWith("`") || line.endsWith("`") || line === "" ? " " : "";
  return `${fence}${pad}${line}${pad}${fence}`;
}

/** Code in a cell of a table, where a vertical bar would end the cell. */
function cell(text: string): string {
  return code(text).replaceAll("|", "\\|");
}

/** A sentence: its code stays code, and everything else is plain. */
function prose(text: string): string {
  const line = cut(unfolded(text), TEXT_CHARS_MAX);
  return line
    .split(/(`[^`]+`)/)
    .map((part) => (/^`[^`]+`$/.test(part) ? code(part.slice(1, -1)) : plain(part)))
    .join("");
}

function plain(text: string): string {
  return visible(text).replaceAll(/[\\`*_{}[\]<>#|~!@&]/g, "\\$&");
}

function block(text: string): string {
  const given = cut(text, BODY_CHARS_MAX)
    .split("\n")
    .map((line) => visible(line))
    .join("\n");
  const longest = Math.max(2, ...[...given.matchAll(/`+/g)].map((it) => it[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${given}\n${fence}`;
}

function cut(text: string, charsMax: number): string {
  const chars = [...text];
  return chars.length > charsMax ? `${chars.slice(0, charsMax).join("")}…` : text;
}
