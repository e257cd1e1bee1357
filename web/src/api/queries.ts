/** What is requested for each screen, and how often. */

import { infiniteQueryOptions, QueryClient, queryOptions } from "@tanstack/react-query";
import * as client from "./client.ts";
import { asFailure } from "./problem.ts";
import * as trace from "./trace.ts";

/** How often the page asks again while the server waits for its database. */
const WAIT_MS = 2000;
const LIST_MS = 15_000;
/** How often a run is read while it is in progress, beside its live events. */
const ACTIVE_RUN_MS = 5000;
/** How often the receiver is asked for the first span, as long as the page is visible. */
const RECEIVER_MS = 2000;
/** How long a trace is kept without its screen: it is requested while the code of the screen is on its way. */
const TRACE_KEPT_MS = 5000;

export function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        networkMode: "always",
        retry: (_, error) => asFailure(error).isWaiting,
        retryDelay: WAIT_MS,
        staleTime: 2000,
      },
      mutations: { networkMode: "always", retry: false },
    },
  });
}

export const serverQuery = queryOptions({
  queryKey: ["server"],
  queryFn: ({ signal }) => client.readServer(signal),
  staleTime: 60_000,
});

export const callerQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => client.readCaller(signal),
  staleTime: 60_000,
});

export const testsQuery = (project: string, filter: Omit<client.TestsFilter, "cursor">) =>
  infiniteQueryOptions({
    queryKey: ["tests", project, filter],
    queryFn: ({ pageParam, signal }) => client.listTests(project, { ...filter, cursor: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    // The tests of before stay while others are on their way, but not those of another project.
    placeholderData: (tests, before) => (before?.queryKey[1] === project ? tests : undefined),
    refetchInterval: LIST_MS,
  });

export const trendQuery = (project: string, test: string) =>
  queryOptions({
    queryKey: ["test", project, test],
    queryFn: ({ signal }) => client.readTest(project, test, signal),
    refetchInterval: LIST_MS,
  });

export const versionsQuery = (project: string, test: string) =>
  queryOptions({
    queryKey: ["versions", project, test],
    queryFn: ({ signal }) => client.readVersions(project, test, signal),
  });

export const runsQuery = (project: string, filter: client.RunsFilter) =>
  queryOptions({
    queryKey: ["runs", project, filter],
    queryFn: ({ signal }) => client.listRuns(project, filter, signal),
    // Older pages do not change.
    refetchInterval: filter.cursor === undefined ? LIST_MS : false,
  });

export const runQuery = (project: string, run: string) =>
  queryOptions({
    queryKey: ["run", project, run],
    queryFn: ({ signal }) => client.readRun(project, run, signal),
    refetchInterval: (query) => (query.state.data?.state === "ended" ? false : ACTIVE_RUN_MS),
  });

export const greenQuery = (project: string, test: string, until: string) =>
  queryOptions({
    queryKey: ["green", project, test, until],
    queryFn: ({ signal }) => client.readLastGreen(project, test, until, signal),
    staleTime: 60_000,
  });

export const testDocumentQuery = (project: string, test: string, version: number) =>
  queryOptions({
    queryKey: ["document", project, test, version],
    queryFn: ({ signal }) => client.readTestDocument(project, test, version, signal),
    // A version never changes.
    staleTime: Number.POSITIVE_INFINITY,
  });

export const suitesQuery = (project: string) =>
  infiniteQueryOptions({
    queryKey: ["suites", project],
    queryFn: ({ pageParam, signal }) => client.listSuites(project, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  });

export const demoQuery = (project: string) =>
  queryOptions({
    queryKey: ["demo", project],
    queryFn: ({ signal }) => client.readDemo(project, signal),
    refetchInterval: LIST_MS,
  });

export const receiverQuery = (project: string) =>
  queryOptions({
    queryKey: ["receiver", project],
    queryFn: ({ signal }) => client.readReceiver(project, signal),
    refetchInterval: RECEIVER_MS,
  });

/**
 * The trace of a run that has ended does not change. It is large, so it goes soon after its screen. Of an active run it is the
 * spans so far.
 */
export const traceQuery = (project: string, run: string, isActive: boolean) =>
  queryOptions({
    queryKey: ["trace", project, run, isActive],
    queryFn: ({ signal }) => trace.readTraceColumns(project, run, signal),
    gcTime: TRACE_KEPT_MS,
    staleTime: (query) => (query.state.data?.isFinal === true ? Number.POSITIVE_INFINITY : 0),
    // Where the reader is in an active trace stays, until they ask for its new spans.
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    structuralSharing: false,
  });
