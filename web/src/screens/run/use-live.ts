import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { followRun, type NumberedEvent, type Settlement } from "../../api/follow.ts";
import type { RequestFailure } from "../../api/problem.ts";
import { runQuery } from "../../api/queries.ts";

/** The events that are kept: a run has some ten. */
const EVENTS_MAX = 1000;

export interface Live {
  readonly events: readonly NumberedEvent[];
  /** What the run has of its trace; null until its spans arrive. */
  readonly gathering: Settlement | null;
  /** Why the stream was cut; null while it is read. */
  readonly failure: RequestFailure | null;
}

const NOTHING: Live = { events: [], gathering: null, failure: null };

/** Follows the events of a run as long as it is in progress, and reads the run again when they change it. */
export function useLive(project: string, run: string, isActive: boolean): Live {
  const queries = useQueryClient();
  const [live, setLive] = useState<Live>(NOTHING);
  useEffect(() => {
    if (!isActive) {
      return;
    }
    const controller = new AbortController();
    const reload = () => void queries.invalidateQueries({ queryKey: runQuery(project, run).queryKey });
    setLive(NOTHING);
    void followRun(
      project,
      run,
      {
        onEvent: (event) => {
          setLive(({ events, gathering }) => ({
            events: [...events, event].slice(-EVENTS_MAX),
            gathering,
            failure: null,
          }));
          reload();
        },
        onGathering: (gathering) => setLive((before) => ({ ...before, gathering, failure: null })),
        onEnd: reload,
        onCut: (failure) => setLive((before) => ({ ...before, failure })),
      },
      controller.signal,
    );
    return () => controller.abort();
  }, [project, run, isActive, queries]);
  return live;
}
