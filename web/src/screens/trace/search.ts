/** Reads what of a trace is in the address. What is of no use there is left out. */

import { FOCUSES } from "../../trace/focus.ts";
import { GROUPINGS } from "../../trace/groups.ts";
import { VIEWS } from "../../trace/input.ts";
import type { TraceSearch } from "../../trace/trace-search.ts";
import { type SearchText, textOf } from "../search.ts";

/** A longer search is none that was typed. */
const QUERY_CHARS_MAX = 4000;

export function traceSearch(search: SearchText): TraceSearch {
  const by = textOf(search, "by");
  const fold = textOf(search, "fold");
  const span = textOf(search, "span")?.toLowerCase();
  return {
    by: GROUPINGS.find((it) => it === by) ?? (by?.startsWith("attr:") ? (by as `attr:${string}`) : undefined),
    focus: FOCUSES.find((it) => it === search.focus),
    fold: fold !== undefined && /^(off|\d{1,5})$/.test(fold) ? fold : undefined,
    q: textOf(search, "q")?.slice(0, QUERY_CHARS_MAX),
    span: span !== undefined && /^[0-9a-f]{16}$/.test(span) ? span : undefined,
    t: textOf(search, "t"),
    view: VIEWS.find((it) => it === search.view),
  };
}
