/** The moments of the filters: local in the form, as the API wants them in a request. */

import type { RunsSearch } from "../router.tsx";

/** Returns a moment of the address in UTC; undefined if it is none. */
export function momentOf(text: string | undefined): string | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isFinite(ms) ? new Date(ms).toISOString() : undefined;
}

/** Returns a moment as `<input type="datetime-local">` has it, in the time zone of the reader. */
export function localOf(text: string | undefined): string {
  const moment = momentOf(text);
  if (moment === undefined) {
    return "";
  }
  const date = new Date(moment);
  const two = (number: number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function hasFilter(search: RunsSearch): boolean {
  return [search.test, search.verdict, search.from, search.until].some((it) => it !== undefined);
}
