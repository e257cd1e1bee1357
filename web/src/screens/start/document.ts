/** The first test of a request: the document that is stored. */

import type { CurlRequest } from "./curl.ts";

const ID_CHARS_MAX = 64;

export interface TestDocument {
  readonly type: "Test";
  readonly spec: Readonly<Record<string, unknown>>;
}

/** Headers that often contain a secret. */
const SECRETS = ["authorization", "cookie", "x-api-key", "api-key", "proxy-authorization"];

/** Returns an id that is made of the method and the path, such as `post-orders`. */
export function idOf({ method, url }: CurlRequest): string {
  const path = url.replace(/^[a-z]+:\/\/[^/?#]*/i, "").replace(/[?#].*$/s, "");
  const words = `${method} ${path}`.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  const id = words.join("-").slice(0, ID_CHARS_MAX).replace(/-$/, "");
  return words.length > 1 ? id : `${id}-root`;
}

/** Returns a test of the request, with two claims that hold for most systems. */
export function documentOf(request: CurlRequest, id: string): TestDocument {
  const { method, url, headers, body, basic, bearer, isInsecure, redirects, timeout } = request;
  const auth =
    basic !== null
      ? { type: "basic", basic: { username: basic[0], password: basic[1] } }
      : bearer !== null
        ? { type: "bearer", bearer: { token: bearer } }
        : null;
  const httpRequest = {
    method,
    url,
    ...(isInsecure ? { sslVerification: false } : {}),
    redirects,
    ...(headers.length > 0 ? { headers: headers.map(([key, value]) => ({ key, value })) } : {}),
    ...(auth === null ? {} : { auth }),
    ...(body === null ? {} : { body }),
  };
  const trigger = { type: "http", ...(timeout === null ? {} : { timeout: `${timeout}s` }), httpRequest };
  return {
    type: "Test",
    spec: {
      id,
      name: `${method} ${url.replace(/[?#].*$/s, "")}`.slice(0, 200),
      trigger,
      trace: [
        { name: "the response is no error", claim: "response.status < 400" },
        { name: "nothing fails on the way", claim: 'no span[status="error"]' },
      ],
    },
  };
}

/** Whether the request has what may be a secret, which readers of the project then see in the test. */
export function mayHoldSecret({ headers, basic, bearer }: CurlRequest): boolean {
  return basic !== null || bearer !== null || headers.some(([name]) => SECRETS.includes(name.toLowerCase()));
}
