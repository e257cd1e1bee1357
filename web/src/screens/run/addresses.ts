/** The addresses of a run and of what belongs to it. */

import { address } from "../../api/place.ts";
import { PROJECT } from "../search.ts";

/** The trace of a run, at a span if one is named. */
export function traceAddress(project: string, run: string, span?: string): string {
  return address(`/r/${encodeURIComponent(run)}/trace`, { project: named(project), span });
}

/** The page of a run, for others to open. */
export function runAddress(project: string, run: string): string {
  return `${location.origin}${address(`/r/${encodeURIComponent(run)}`, { project: named(project) })}`;
}

function named(project: string): string | undefined {
  return project === PROJECT ? undefined : project;
}
