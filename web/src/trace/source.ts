/** Where the view gets what is not in the columns: from the server, or from the file that is open. */

import type { Schemas } from "../api/client.ts";

/** Everything about one span, as the server has it. */
export type SpanDetails = Schemas["CompleteSpan"];
export type SpanAttribute = Schemas["SpanAttribute"];

export interface SpanSource {
  /** Tells the spans of one source from those of another one. */
  readonly key: readonly string[];
  details(span: number, signal: AbortSignal): Promise<SpanDetails>;
  /** Evaluates a selector; null where there is no server that could. */
  readonly select: ((selector: string, signal: AbortSignal) => Promise<Schemas["SelectedSpans"]>) | null;
  /** The values of an attribute of each span; null where the page does not have them. */
  readonly attribute: ((span: number, key: string) => string | null) | null;
}
