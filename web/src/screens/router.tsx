/** The screens and their addresses. */

import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  retainSearchParams,
} from "@tanstack/react-router";
import { prefix } from "../api/place.ts";
import { runQuery, traceQuery } from "../api/queries.ts";
import { NAME, PROJECT, parseSearch, type SearchText, stringifySearch, textOf } from "./search.ts";
import { Broken } from "./shell/broken.tsx";
import { Missing } from "./shell/missing.tsx";
import { Shell } from "./shell/shell.tsx";
import { traceSearch } from "./trace/search.ts";

interface ProjectSearch {
  readonly project?: string | undefined;
}

export interface RunsSearch {
  readonly test?: string | undefined;
  readonly verdict?: string | undefined;
  readonly from?: string | undefined;
  readonly until?: string | undefined;
  readonly cursor?: string | undefined;
}

interface Context {
  readonly queries: QueryClient;
}

const root = createRootRouteWithContext<Context>()({
  component: Shell,
  errorComponent: Broken,
  notFoundComponent: Missing,
  validateSearch: (search: SearchText): ProjectSearch => {
    const project = textOf(search, "project");
    return project !== undefined && NAME.test(project) ? { project } : {};
  },
  search: { middlewares: [retainSearchParams(["project"])] },
});

/** What the address says of the list of tests; without `sort` the worst come first. */
interface TestsSearch {
  readonly q?: string | undefined;
  readonly sort?: "id" | undefined;
}

/** The most characters that the API searches for. */
const TESTS_TEXT_MAX = 200;

const tests = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: (search: SearchText): TestsSearch => ({
    q: textOf(search, "q")
      ?.replace(/\p{Cc}/gu, "")
      .slice(0, TESTS_TEXT_MAX),
    sort: textOf(search, "sort") === "id" ? "id" : undefined,
  }),
  component: lazyRouteComponent(() => import("./tests/screen.tsx")),
});

const test = createRoute({
  getParentRoute: () => root,
  path: "/t/$test",
  component: lazyRouteComponent(() => import("./test/screen.tsx")),
});

const runs = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  validateSearch: (search: SearchText): RunsSearch => ({
    test: textOf(search, "test"),
    verdict: textOf(search, "verdict"),
    from: textOf(search, "from"),
    until: textOf(search, "until"),
    cursor: textOf(search, "cursor"),
  }),
  component: lazyRouteComponent(() => import("./runs/screen.tsx")),
});

const run = createRoute({
  getParentRoute: () => root,
  path: "/r/$run",
  component: lazyRouteComponent(() => import("./run/screen.tsx")),
});

const runTrace = createRoute({
  getParentRoute: () => root,
  path: "/r/$run/trace",
  validateSearch: traceSearch,
  // Requested beside the code of the screen, not after it. The screen reads both, and what went wrong with them.
  loaderDeps: ({ search }) => ({ project: textOf(search as SearchText, "project") ?? PROJECT }),
  loader: ({ context, deps, params }) => {
    void context.queries.prefetchQuery(runQuery(deps.project, params.run));
    void context.queries.prefetchQuery(traceQuery(deps.project, params.run, false));
  },
  component: lazyRouteComponent(() => import("./trace/screen.tsx")),
});

const fileTrace = createRoute({
  getParentRoute: () => root,
  path: "/trace",
  validateSearch: traceSearch,
  component: lazyRouteComponent(() => import("./trace/file-screen.tsx")),
});

const suites = createRoute({
  getParentRoute: () => root,
  path: "/suites",
  component: lazyRouteComponent(() => import("./suites/screen.tsx")),
});

const start = createRoute({
  getParentRoute: () => root,
  path: "/start",
  validateSearch: (search: SearchText): { door?: string | undefined } => ({ door: textOf(search, "door") }),
  component: lazyRouteComponent(() => import("./start/screen.tsx")),
});

interface LoginSearch {
  readonly return?: string | undefined;
  /** The word of the server for why a login at the identity provider failed. */
  readonly failed?: string | undefined;
}

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: (search: SearchText): LoginSearch => ({
    return: textOf(search, "return"),
    failed: textOf(search, "failed"),
  }),
  component: lazyRouteComponent(() => import("./login/screen.tsx")),
});

const routeTree = root.addChildren([tests, test, runs, run, runTrace, fileTrace, suites, start, login]);

export function makeRouter(queries: QueryClient) {
  return createRouter({
    routeTree,
    context: { queries },
    basepath: prefix === "" ? "/" : prefix,
    parseSearch,
    stringifySearch,
    defaultPreload: false,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
