import type { ErrorComponentProps } from "@tanstack/react-router";
import { Button } from "../../kit/button.tsx";
import { Empty } from "../../kit/states.tsx";
import { Text } from "../../kit/text.tsx";
import { words } from "../../words.ts";

/** A screen that threw: a bug of the page, or a file of an older version that the server no longer has. */
export function Broken({ error }: ErrorComponentProps) {
  return (
    <Empty title={words.failure.broken}>
      <p>
        <Text value={error instanceof Error ? error.message : String(error)} />
      </p>
      <Button onPress={() => location.reload()}>{words.failure.retry}</Button>
    </Empty>
  );
}
