/** The search without a server: a text within names and services, whatever the case. */

import { type Columns, OTHER_SERVICE } from "./columns.ts";

/** Whether a query is a selector, which the server evaluates, and not a text. */
export function isSelector(query: string): boolean {
  return query.includes("[");
}

/** Returns the spans whose name or service contains the text, ascending. */
export function spansWith(columns: Columns, text: string): Uint32Array {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") {
    return new Uint32Array(0);
  }
  const isNamed = columns.names.map((name) => name.toLowerCase().includes(wanted));
  const isServed = columns.services.map((service) => service.toLowerCase().includes(wanted));
  const isHit = (span: number): boolean => {
    const service = columns.service[span] ?? OTHER_SERVICE;
    return isNamed[columns.name[span] ?? 0] === true || isServed[service] === true;
  };
  let count = 0;
  for (let span = 0; span < columns.count; span += 1) {
    count += isHit(span) ? 1 : 0;
  }
  const found = new Uint32Array(count);
  for (let span = 0, at = 0; at < count; span += 1) {
    if (isHit(span)) {
      found[at] = span;
      at += 1;
    }
  }
  return found;
}
