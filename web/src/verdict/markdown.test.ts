import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Schemas } from "../api/client.ts";
import { differences } from "./difference.ts";
import { runMarkdown } from "./markdown.ts";
import type { Outcome } from "./statements.ts";

type Run = Schemas["Run"];

const ADDRESS = "http://127.0.0.1:11633/r/1";

function golden(name: string): Outcome {
  const file = new URL(`../../../crates/report/tests/golden/${name}-v1.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { outcome: Outcome }).outcome;
}

function run(outcome: Outcome | null, more: Partial<Run> = {}): Run {
  return {
    acceptedAt: "2026-11-15T02:00:00Z",
    endedAt: "2026-11-15T02:00:01Z",
    id: "01a1dcee-cd00-7101-8101-010101010101",
    outcome,
    revision: "9f3c",
    state: "ended",
    test: "cart",
    trace: { state: "stored", spans: 2, bytes: 100 },
    variableSets: [],
    variables: {},
    verdict: outcome?.verdict ?? null,
    version: 7,
    ...more,
  } as Run;
}

describe("a run as Markdown", () => {
  const failed = runMarkdown(run(golden("failed")), ADDRESS, null);

  it("has the sentence, the facts and the place of each false statement", () => {
    expect(failed).toMatch(/^## ✘ failed: /);
    expect(failed).toContain("`attr:http.status_code = 200` is false: 500 = 200, and 2 more statements too.");
    expect(failed).toContain(`[Run \`01a1dcee-cd00-7101-8101-010101010101\`](${ADDRESS})`);
    expect(failed).toContain("Test `cart`, version 7 · Revision `9f3c`");
    expect(failed).toContain("**the cart answers** `tests/cart.yaml:14:9`\n\n`attr:http.status_code = 200`");
    expect(failed).toContain("**`attr:db.rows = 4`** `tests/cart.yaml:19:9`");
  });

  it("has what was expected beside what was found, and the deciding spans", () => {
    expect(failed).toContain(
      "| | Expected | Found |\n| --- | --- | --- |\n| `http.status_code` | `= 200` | `500`, `absent` |",
    );
    expect(failed).toContain("2 deciding spans: `0101010101010101`, `0202020202020202`");
    expect(failed).toContain("_Decided by presence: final, no further span could change it._");
  });

  it("has what was found in words where there are no values", () => {
    expect(failed).toContain('"oh" = "ok"');
  });

  it("exists for every golden outcome", () => {
    for (const name of [
      "command",
      "no-answer",
      "no-telemetry",
      "not-fired",
      "not-whole",
      "diagnosed",
      "gated",
    ]) {
      expect(runMarkdown(run(golden(name)), ADDRESS, null).length, name).toBeGreaterThan(100);
    }
    expect(runMarkdown(run(null), ADDRESS, null)).toContain(ADDRESS);
  });

  it("makes no markup of hostile text", () => {
    const text = runMarkdown(run(golden("hostile")), ADDRESS, null);
    const code = /(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g;
    const outside = text.replaceAll(code, "");
    expect(outside).not.toMatch(/(^|[^\\])<[a-z!/]/i);
    expect(outside.replaceAll(`](${ADDRESS})`, "")).not.toMatch(/[^\\]\]\(/);
    expect(text).not.toMatch(/(?!\n)[\p{Cc}\u202e\uffff]/u);
  });
});

describe("what differs from the last green run", () => {
  it("is nothing between a run and itself", () => {
    const one = run(golden("passed"));
    expect(differences(one, one)).toEqual([]);
  });

  it("names the revision, variables, the response and the spans of services", () => {
    const green = run(golden("passed"), { revision: "8e1", variables: { SKU: "tea", KEY: null } });
    const now = run(golden("failed"), { version: 8, variables: { SKU: "milk", KEY: null } });
    const found = differences(green, now);
    const of = (what: string) => found.find((it) => it.what === what);
    expect(of("Revision")).toMatchObject({ before: "8e1", now: "9f3c" });
    expect(of("Version of the test")).toMatchObject({ before: "7", now: "8" });
    expect(of(`\${var:SKU}`)).toMatchObject({ before: "tea", now: "milk", isName: true });
    expect(of(`\${var:KEY}`)).toBeUndefined();
    expect(of("Response")).toMatchObject({ before: "200", now: "500" });
  });

  it("is in the Markdown", () => {
    const green = {
      address: "http://127.0.0.1:11633/r/0",
      differences: differences(run(golden("passed"), { revision: "a|b" }), run(golden("failed"))),
    };
    const text = runMarkdown(run(golden("failed")), ADDRESS, green);
    expect(text).toContain("### What differs from the last green run");
    expect(text).toContain("[The last green run](http://127.0.0.1:11633/r/0)");
    expect(text).toContain("| Revision | `a\\|b` | `9f3c` |");
  });
});
