/** The values of an attribute of all spans. */

import { ColumnsError } from "./columns.ts";
import type { AttributeValues } from "./source.ts";

/** The number of a span without the attribute, and that of all values beyond what the server returns. */
const ABSENT = 0xffff;
const OTHER = 0xfffe;

/** Reads the answer of the server: numbers in two bytes, little endian, in base64. */
export function attributeValues(
  answer: { readonly values: readonly string[]; readonly spans: string },
  spans: number,
  words: { readonly others: string; readonly changed: string },
): AttributeValues {
  const bytes = Uint8Array.from(atob(answer.spans), (it) => it.charCodeAt(0));
  if (bytes.length !== 2 * spans) {
    throw new ColumnsError(words.changed);
  }
  const numbers = new DataView(bytes.buffer);
  return {
    number: (span) => numbers.getUint16(2 * span, true),
    value: (number) =>
      number === ABSENT ? null : number === OTHER ? words.others : (answer.values[number] ?? null),
  };
}

/** Numbers the values of spans. */
export function numbered(spans: number, textOf: (span: number) => string | null): AttributeValues {
  const known = new Map<string | null, number>();
  const values: Array<string | null> = [];
  const numbers = new Uint32Array(spans);
  for (let span = 0; span < spans; span += 1) {
    const value = textOf(span);
    let number = known.get(value);
    if (number === undefined) {
      number = values.length;
      known.set(value, number);
      values.push(value);
    }
    numbers[span] = number;
  }
  return { number: (span) => numbers[span] ?? 0, value: (number) => values[number] ?? null };
}
