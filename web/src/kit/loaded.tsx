import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { callerQuery } from "../api/queries.ts";
import styles from "./loaded.module.css";
import { Failed, Loading } from "./states.tsx";

interface Props<T> {
  readonly query: {
    readonly data: T | undefined;
    readonly error: unknown;
    readonly failureReason: unknown;
    readonly refetch: () => unknown;
  };
  readonly rows?: number;
  readonly children: (data: T) => ReactNode;
}

/** The data of a query, or its state: on the way, waiting for the server, failed. */
export function Loaded<T>({ query, rows = 6, children }: Props<T>) {
  const failure = query.error ?? query.failureReason;
  const failed =
    failure === null ? null : <QueryFailed error={failure} onRetry={() => void query.refetch()} />;
  if (query.data === undefined) {
    return failed ?? <Loading rows={rows} />;
  }
  return (
    <>
      {failed === null ? null : <div className={styles.stale}>{failed}</div>}
      {children(query.data)}
    </>
  );
}

function QueryFailed({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  const caller = useQuery({ ...callerQuery, enabled: false });
  return <Failed error={error} onRetry={onRetry} role={caller.data?.role} />;
}
