import type { Schemas } from "../api/client.ts";
import { duration } from "../kit/time.ts";
import { words } from "../words.ts";

/** A line about the settlement, for the title of its section. */
export function settlementLine(settlement: Schemas["Settlement"]): string {
  const { settlement: labels } = words.run;
  const processes = settlement.processes.length;
  return [
    labels.spans(settlement.spans),
    ...(processes > 1 ? [labels.processes(processes)] : []),
    ...(settlement.drained ? [labels.drained] : []),
    ...(settlement.waitedNs > 0 ? [`${labels.waited} ${duration(settlement.waitedNs)}`] : []),
  ].join(", ");
}
