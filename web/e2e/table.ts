/** The output of a benchmark of the page, as the other benchmarks have it: a table, then one line of JSON. */

export interface Goal {
  readonly atMost: number;
}

export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly goal?: Goal;
}

export function render(bench: string, rows: readonly Row[]): string {
  const width = Math.max(...rows.map((it) => it.name.length));
  const lines = rows.map((it) => {
    const goal = it.goal === undefined ? "" : `   goal ${words(it.goal)}: ${isMet(it) ? "met" : "NOT met"}`;
    return `${it.name.padEnd(width)}  ${it.value.toFixed(3).padStart(12)} ${it.unit}${goal}`;
  });
  const json = rows.map(({ name, value, unit, goal }) => ({
    name,
    value,
    unit,
    ...(goal && { goal: words(goal), met: value <= goal.atMost }),
  }));
  return `${[...lines, JSON.stringify({ bench, rows: json })].join("\n")}\n`;
}

function isMet({ value, goal }: Row): boolean {
  return goal === undefined || value <= goal.atMost;
}

function words({ atMost }: Goal): string {
  return `<= ${atMost}`;
}
