/** What the address says: the path and its search parameters, as plain text. */

import { useSearch } from "@tanstack/react-router";

export const PROJECT = "default";

/** The characters of names and ids, as the API checks them. */
export const NAME = /^[A-Za-z0-9._-]{1,128}$/;

export type SearchText = Readonly<Record<string, unknown>>;

/** Reads `?a=b` without guessing types: the id `007` is not a number. */
export function parseSearch(search: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(search));
}

export function stringifySearch(search: SearchText): string {
  const given = Object.entries(search).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string" && entry[1] !== "",
  );
  const text = new URLSearchParams(given).toString();
  return text === "" ? "" : `?${text}`;
}

export function textOf(search: SearchText, name: string): string | undefined {
  const value = search[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The project of the address. */
export function useProject(): string {
  const search: SearchText = useSearch({ strict: false });
  return textOf(search, "project") ?? PROJECT;
}

/** Returns a path of this page to return to, and never another site. */
export function returnPath(given: string | undefined): string {
  return given !== undefined && /^\/(?![/\\])/.test(given) && !/[\\\p{Cc}]/u.test(given) ? given : "/";
}
