/** The address of a run. */

import { address } from "../../api/place.ts";
import { PROJECT } from "../search.ts";

/** The page of a run, for others to open. */
export function runAddress(project: string, run: string): string {
  const named = project === PROJECT ? undefined : project;
  return `${location.origin}${address(`/r/${encodeURIComponent(run)}`, { project: named })}`;
}
