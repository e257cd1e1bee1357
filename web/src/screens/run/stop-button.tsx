import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Square } from "lucide-react";
import { type Schemas, stopRun } from "../../api/client.ts";
import { asFailure } from "../../api/problem.ts";
import { callerQuery, runQuery } from "../../api/queries.ts";
import { Button } from "../../kit/button.tsx";
import { Text } from "../../kit/text.tsx";
import { words } from "../../words.ts";
import { mayEdit } from "../role.ts";
import { useProject } from "../search.ts";

/** Stops a run that is in progress. */
export function StopButton({ run }: { readonly run: Schemas["Run"] }) {
  const project = useProject();
  const caller = useQuery(callerQuery);
  const queries = useQueryClient();
  const stop = useMutation({
    mutationFn: () => stopRun(project, run.id),
    onSettled: () => queries.invalidateQueries({ queryKey: runQuery(project, run.id).queryKey }),
  });
  const isStopping = stop.isPending || !!run.stopAt;
  const isAllowed = mayEdit(caller.data);
  return (
    <>
      <Button
        look="danger"
        icon={<Square size={12} aria-hidden="true" />}
        isDisabled={isStopping || !isAllowed}
        onPress={() => stop.mutate()}
        hint={isAllowed ? undefined : words.run.mayNotStop}
      >
        {isStopping ? words.run.stopping : words.run.stop}
      </Button>
      {stop.error === null ? null : (
        <span role="alert">
          <Text value={asFailure(stop.error).message} />
        </span>
      )}
    </>
  );
}
