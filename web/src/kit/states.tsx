import { useRouter } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { asFailure, type RequestFailure } from "../api/problem.ts";
import { words } from "../words.ts";
import { Button } from "./button.tsx";
import styles from "./states.module.css";
import { Prose } from "./text.tsx";

/** Grey lines while the first data is on its way; they appear after 150 ms, so that fast answers do not flicker. */
export function Loading({ rows = 6 }: { readonly rows?: number }) {
  return (
    <div className={styles.loading} role="status">
      <span className={styles.spoken}>{words.loading}</span>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are alike and never change places
        <div key={row} className={styles.line} aria-hidden="true" />
      ))}
    </div>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly children?: ReactNode;
}

export function Empty({ title, children }: EmptyProps) {
  return (
    <div className={styles.state}>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

interface FailureProps {
  readonly error: unknown;
  readonly onRetry: () => void;
  /** The role of the caller, where it is known. */
  readonly role?: string | undefined;
}

/** A failed request: to the login, waiting, forbidden, not found, or the Problem as given. */
export function Failed({ error, onRetry, role }: FailureProps) {
  const failure = asFailure(error);
  if (failure.status === 401) {
    return <ToLogin />;
  }
  if (failure.isWaiting) {
    return <Waiting failure={failure} />;
  }
  const title =
    failure.code === "forbidden"
      ? words.failure.forbidden
      : failure.status === 404
        ? words.failure.notFound
        : failure.title;
  return (
    <div className={styles.state} role="alert">
      <h2>{title}</h2>
      <p className={styles.detail}>
        <Prose value={failure.message} />
      </p>
      {failure.code === "forbidden" && role !== undefined ? <p>{words.failure.forbiddenMore(role)}</p> : null}
      <p className={styles.code}>
        {failure.status === 0 ? null : `${failure.status} · `}
        {words.failure.code} <code>{failure.code}</code>
      </p>
      <Button onPress={onRetry}>{words.failure.retry}</Button>
    </div>
  );
}

function Waiting({ failure }: { readonly failure: RequestFailure }) {
  return (
    <div className={styles.state} role="status">
      <h2>
        <span className={styles.pulse} aria-hidden="true" />
        {words.failure.waiting}
      </h2>
      <p className={styles.detail}>
        <Prose value={failure.message} />
      </p>
      <p className={styles.code}>{words.failure.waitingMore}</p>
    </div>
  );
}

function ToLogin() {
  const router = useRouter();
  useEffect(() => {
    // By the time of a second call the address is already that of the login.
    const { href, pathname } = router.latestLocation;
    if (!pathname.endsWith("/login")) {
      void router.navigate({
        to: "/login",
        search: (before) => ({ project: before.project, return: href }),
        replace: true,
      });
    }
  }, [router]);
  return <Loading rows={1} />;
}
