/** Why a pasted command becomes no test. */

import type { words } from "../../words.ts";

export interface CurlRefusal {
  readonly reason: keyof typeof words.start.own.refused;
  /** The part of the command that is meant; none if it is all of it. */
  readonly value: string | null;
}

export function isRefusal(it: object): it is CurlRefusal {
  return "reason" in it;
}
