import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { followProject } from "../api/follow.ts";

/** The lists that a run changes when it is accepted or ends. */
const LISTS = ["tests", "runs", "test"] as const;

/**
 * Reads the lists of a project again when its runs change, as long as a person sees the page: a browser has few connections to
 * a server, and pages in the background would hold them all.
 */
export function useChanges(project: string): void {
  const queries = useQueryClient();
  useEffect(() => {
    let controller: AbortController | null = null;
    const reload = () => {
      for (const list of LISTS) {
        void queries.invalidateQueries({ queryKey: [list, project] });
      }
    };
    const followIfSeen = () => {
      if (document.visibilityState !== "visible") {
        controller?.abort();
        controller = null;
      } else if (controller === null) {
        controller = new AbortController();
        void followProject(project, reload, controller.signal);
      }
    };
    followIfSeen();
    document.addEventListener("visibilitychange", followIfSeen);
    return () => {
      document.removeEventListener("visibilitychange", followIfSeen);
      controller?.abort();
    };
  }, [project, queries]);
}
