/** The evidence of a statement in words: values, what is required and what was found, and the bars of groups. */

import type { components } from "../api/schema.d.ts";
import { duration } from "../kit/time.ts";
import { words } from "../words.ts";

type Schemas = components["schemas"];

export type StatementEvidence = Schemas["StatementEvidence"];
export type EvidenceValue = Schemas["EvidenceValue"];
type Comparison = Schemas["ComparisonEvidence"];
type List = Schemas["EvidenceList"];

/** The values of a requirement that are shown. */
const FOUND_MAX = 3;

const SYMBOLS: Readonly<Record<string, string>> = { "<=": "≤", ">=": "≥", "!=": "≠" };

/** What a statement requires of an expression, and what was found for it. */
export interface Requirement {
  readonly subject: string;
  readonly expected: string;
  /** The different values that were found, the first of them first. */
  readonly found: readonly string[];
  /** Whether further values were found. */
  readonly hasMore: boolean;
}

/** Joins comparisons with the same requirement, such as those of several spans. */
export function requirements(comparisons: readonly Comparison[]): Requirement[] {
  const all = new Map<string, { subject: string; expected: string; found: Set<string> }>();
  for (const comparison of comparisons) {
    const { subject } = comparison;
    const expected = requiredText(comparison);
    const key = JSON.stringify([subject, expected]);
    const known = all.get(key) ?? { subject, expected, found: new Set<string>() };
    known.found.add(comparison.found === undefined ? words.run.proof.unknown : valueText(comparison.found));
    all.set(key, known);
  }
  return [...all.values()].map(({ subject, expected, found }) => {
    const values = [...found];
    return { subject, expected, found: values.slice(0, FOUND_MAX), hasMore: values.length > FOUND_MAX };
  });
}

/** What is required: the operator as a symbol, with its value. */
export function requiredText({ operator, expected }: Comparison): string {
  const symbol = SYMBOLS[operator] ?? operator;
  return expected === undefined ? symbol : `${symbol} ${valueText(expected)}`;
}

export function valueText(value: EvidenceValue): string {
  if (typeof value === "string") {
    return value === "absent" ? words.run.proof.absent : value;
  }
  if ("boolean" in value) {
    return String(value.boolean);
  }
  if ("number" in value) {
    return value.number;
  }
  if ("durationNs" in value) {
    const { durationNs } = value;
    return durationNs < 0 ? `−${duration(-durationNs)}` : duration(durationNs);
  }
  if ("text" in value) {
    return `"${value.text}"`;
  }
  if ("json" in value) {
    return value.json;
  }
  if ("list" in value) {
    return `[${listText(value.list)}]`;
  }
  if ("anyOf" in value) {
    return `${words.run.proof.oneOf} ${listText(value.anyOf)}`;
  }
  if ("between" in value) {
    return `${valueText(value.between.low)} ${words.run.proof.to} ${valueText(value.between.high)}`;
  }
  // A later server may send others.
  return JSON.stringify(value);
}

function listText({ items, more }: List): string {
  const listed = items.map(valueText).join(", ");
  return more === undefined || more === 0 ? listed : `${listed}, ${words.run.proof.more(more)}`;
}

/** A group with the length of its bar. */
export interface GroupBar {
  readonly key: string;
  readonly value: string;
  /** From 0 to 1: the value in relation to the largest one; null if it has no size. */
  readonly share: number | null;
  readonly holds: boolean;
}

export function groupBars(groups: Schemas["GroupsEvidence"]): GroupBar[] {
  const sizes = groups.worst.map((group) => sizeOf(group.value));
  const largest = Math.max(0, ...sizes.map((size) => size ?? 0));
  return groups.worst.map((group, at) => {
    const size = sizes[at] ?? null;
    return {
      key: group.key.map((part) => keyText(part, group.key.length)).join(", "),
      value: valueText(group.value),
      share: size === null || largest === 0 ? null : Math.max(0, size) / largest,
      holds: group.holds,
    };
  });
}

/** The value of a part of a key; its name too, if there are several parts or if it has no text of its own. */
function keyText({ name, value }: Schemas["GroupKeyPart"], parts: number): string {
  const isText = typeof value !== "string" && "text" in value;
  return parts > 1 || !isText ? `${name} ${valueText(value)}` : value.text;
}

/** The condition that a near miss does not meet; the prefix of its attribute is for the parser only. */
export function conditionText({ condition }: Schemas["NearMiss"]): string {
  return condition.replace(/^attr:/, "");
}

function sizeOf(value: EvidenceValue): number | null {
  if (typeof value === "string") {
    return null;
  }
  const size = "number" in value ? Number(value.number) : "durationNs" in value ? value.durationNs : null;
  return size !== null && Number.isFinite(size) ? size : null;
}
