/** Where the view gets what is not in the columns: from the server, or from the file that is open. */

import type { Schemas } from "../api/client.ts";

/** Everything about one span, as the server has it. */
export type SpanDetails = Schemas["CompleteSpan"];
export type SpanAttribute = Schemas["SpanAttribute"];

/** The values of one attribute: for each span the number of its value, or of one that stands for none. */
export interface AttributeValues {
  number(span: number): number;
  /** The value with this number; null for spans without the attribute. */
  value(number: number): string | null;
}

export interface SpanSource {
  /** Tells the spans of one source from those of another one. */
  readonly key: readonly string[];
  details(span: number, signal: AbortSignal): Promise<SpanDetails>;
  /** Evaluates a selector; null where there is no server that could. */
  readonly select: ((selector: string, signal: AbortSignal) => Promise<Schemas["SelectedSpans"]>) | null;
  /** Reads the values of an attribute of all spans. */
  attribute(key: string, signal: AbortSignal): Promise<AttributeValues>;
}
