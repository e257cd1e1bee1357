import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { startRun } from "../../api/client.ts";
import { asFailure } from "../../api/problem.ts";
import { callerQuery } from "../../api/queries.ts";
import { Button } from "../../kit/button.tsx";
import { Text } from "../../kit/text.tsx";
import { words } from "../../words.ts";
import { mayEdit } from "../role.ts";
import { useProject } from "../search.ts";
import styles from "./screen.module.css";

interface Props {
  readonly test: string;
  readonly label: string;
  readonly look?: "plain" | "primary";
}

/** Starts a run of the current version, and shows it. */
export function RunButton({ test, label, look = "plain" }: Props) {
  const project = useProject();
  const navigate = useNavigate();
  const caller = useQuery(callerQuery);
  const start = useMutation({
    mutationFn: () => startRun(project, test),
    onSuccess: (run) => navigate({ to: "/r/$run", params: { run: run.id } }),
  });
  const isAllowed = mayEdit(caller.data);
  return (
    <>
      <Button
        look={look}
        icon={<Play size={13} aria-hidden="true" />}
        isDisabled={!isAllowed || start.isPending}
        onPress={() => start.mutate()}
      >
        {label}
      </Button>
      {isAllowed ? null : <span className={styles.note}>{words.test.mayNot}</span>}
      {start.error === null ? null : (
        <span className={styles.failure} role="alert">
          <Text value={asFailure(start.error).message} />
        </span>
      )}
    </>
  );
}
