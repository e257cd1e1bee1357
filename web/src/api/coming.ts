/** The part of the API that `openapi.json` does not describe yet. */

import type { components } from "./schema.d.ts";

export interface ServerInfo {
  readonly version: string;
  readonly access: "off" | "on";
  readonly login: { readonly oidc: boolean };
}

export type Trend = components["schemas"]["Trend"];

export type TestWithTrend = components["schemas"]["ListedDocument"] & { readonly trend: Trend };

export interface TestsWithTrend {
  readonly items: readonly TestWithTrend[];
  readonly next: string | null;
}

export const SERVER_PATH = "/api/v1/server";
export const TESTS_PATH = "/api/v1/tests";
export const LOGIN_PATH = "/auth/login";
export const LOGOUT_PATH = "/auth/logout";
export const SESSION_PATH = "/auth/session";
