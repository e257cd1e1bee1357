/** What a role may do. The server decides; the page only does not offer what it would refuse. */

import type { Schemas } from "../api/client.ts";

/** Whether the caller may start and stop runs. Until it is known, nothing is taken away. */
export function mayEdit(caller: Schemas["Caller"] | undefined): boolean {
  return caller === undefined || caller.role === "editor" || caller.role === "admin";
}
