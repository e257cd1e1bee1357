/** What of a trace is in its address, so that a link shows the same. */

import type { Focus } from "./focus.ts";
import type { Grouping } from "./groups.ts";
import type { View } from "./input.ts";

export interface TraceSearch {
  /** The id of the selected span. */
  readonly span?: string | undefined;
  /** A selector, or a text. */
  readonly q?: string | undefined;
  readonly view?: View | undefined;
  /** The window of time, such as `12ms..40ms`. */
  readonly t?: string | undefined;
  readonly focus?: Focus | undefined;
  /** The level below which all is closed, or `off` where alike spans are shown one by one. */
  readonly fold?: string | undefined;
  /** What the table groups by: `attr:` and the name of an attribute, or one of the columns. */
  readonly by?: Grouping | `attr:${string}` | undefined;
}
