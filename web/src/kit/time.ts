/** Formats durations and moments. The clock is passed as an argument. */

const UNITS: ReadonlyArray<readonly [string, number]> = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
];

const DATE = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  month: "short",
  second: "2-digit",
  year: "numeric",
});

/** Formats a duration with three significant digits in the unit that fits, as the reports of the command do. */
export function duration(nanos: number): string {
  if (!Number.isFinite(nanos) || nanos < 0) {
    return "–";
  }
  let step = 1;
  while (nanos / step >= 1000 && step < 1e9) {
    step *= 10;
  }
  // Rounding precedes the choice of the unit: 999.9 µs are 1 ms.
  const rounded = Math.round(nanos / step) * step;
  const [unit, size] = UNITS.find(([, it]) => it <= rounded) ?? ["ns", 1];
  const places = rounded >= 1e12 ? 0 : 2;
  return `${Number((rounded / size).toFixed(places))} ${unit}`;
}

/** Returns the nanoseconds between two moments, or null where one is missing or unreadable. */
export function between(from: string | null | undefined, until: string | null | undefined): number | null {
  if (!from || !until) {
    return null;
  }
  const nanos = (Date.parse(until) - Date.parse(from)) * 1e6 + subMillis(until) - subMillis(from);
  return Number.isFinite(nanos) ? nanos : null;
}

/** Formats how long ago a moment was, in one unit. */
export function ago(moment: string, nowMs: number): string {
  const seconds = Math.floor((nowMs - Date.parse(moment)) / 1000);
  if (!Number.isFinite(seconds)) {
    return "–";
  }
  if (seconds < 10) {
    return "just now";
  }
  const [size, unit] =
    seconds < 60
      ? ([1, "s"] as const)
      : seconds < 3600
        ? ([60, "min"] as const)
        : seconds < 86_400
          ? ([3600, "h"] as const)
          : ([86_400, "d"] as const);
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

/** Formats a moment in the time zone of the reader. */
export function dateTime(moment: string): string {
  const ms = Date.parse(moment);
  return Number.isFinite(ms) ? DATE.format(ms) : moment;
}

/** The digits behind the third decimal place of the seconds, in nanoseconds: `Date` has none of them. */
function subMillis(moment: string): number {
  const digits = /\.\d{3}(\d{1,6})/.exec(moment)?.[1] ?? "";
  return Number(digits.padEnd(6, "0"));
}
