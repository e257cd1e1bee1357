import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client.ts";
import { testDocumentQuery } from "../../api/queries.ts";
import { Text } from "../../kit/text.tsx";
import { RequestView } from "../../verdict/trigger.tsx";
import { words } from "../../words.ts";
import { useProject } from "../search.ts";
import styles from "./request.module.css";

/** The request that was fired; of a run that recorded none, the trigger of its test. */
export function TriggerRequest({ run }: { readonly run: Schemas["Run"] }) {
  const request = run.outcome?.request;
  return request ? <RequestView request={request} /> : <DocumentRequest run={run} />;
}

/** The trigger of the test in the version that ran: its variables are not filled in. */
function DocumentRequest({ run }: { readonly run: Schemas["Run"] }) {
  const project = useProject();
  const { data } = useQuery(testDocumentQuery(project, run.test, run.version));
  const trigger = triggerOf(data);
  return trigger === null ? null : (
    <div className={styles.request}>
      <h3>{words.run.trigger.document}</h3>
      <pre>
        <Text value={JSON.stringify(trigger, null, 2)} layout="block" />
      </pre>
    </div>
  );
}

function triggerOf(document: unknown): object | null {
  const spec = fieldOf(document, "spec");
  const trigger = fieldOf(spec, "trigger");
  return typeof trigger === "object" ? trigger : null;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && name in value
    ? (value as Readonly<Record<string, unknown>>)[name]
    : null;
}
