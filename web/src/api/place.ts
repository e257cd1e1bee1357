/** Where the server is: the path prefix that it wrote into the page. */

export const prefix: string = readPrefix(document);

/** Returns the address of an endpoint on this server, with its query. */
export function address(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const search = new URLSearchParams(given).toString();
  return `${prefix}${path}${search === "" ? "" : `?${search}`}`;
}

function readPrefix(page: Document): string {
  const written = page.querySelector('meta[name="qualitytrace-prefix"]')?.getAttribute("content") ?? "";
  // Without a server in front, as in a test of a component, the word is still there.
  return written.startsWith("/") ? written.replace(/\/+$/, "") : "";
}
