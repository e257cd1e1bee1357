/**
 * Reads a pasted curl command as one request. Options that change only the output of curl are passed over; what a test cannot
 * express, or what is on the reader's machine, is refused by its name, so that no part of the request is lost silently.
 */

import { type CurlRefusal, isRefusal } from "./refusal.ts";
import { shellWords } from "./shell.ts";

export interface CurlRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  readonly body: string | null;
  readonly basic: readonly [user: string, password: string] | null;
  readonly bearer: string | null;
  readonly isInsecure: boolean;
  readonly redirects: number;
  /** In seconds, as curl takes it. */
  readonly timeout: string | null;
}

const PASSED_OVER = new Set(
  "-s --silent -S --show-error -v --verbose -i --include -f --fail --fail-with-body --compressed -N --no-buffer -# --progress-bar -0 --http1.0 --http1.1 --http2 -4 --ipv4 -6 --ipv6 -g --globoff -O --remote-name --basic --path-as-is --tcp-nodelay -q --disable".split(
    " ",
  ),
);
const PASSED_OVER_WITH_VALUE = new Set(
  "-o --output -w --write-out -D --dump-header -c --cookie-jar --connect-timeout --retry --retry-delay --retry-max-time --stderr --trace --trace-ascii --limit-rate --keepalive-time".split(
    " ",
  ),
);
const WITH_VALUE = new Set(
  "-X --request -H --header -d --data --data-ascii --data-raw --data-binary --data-urlencode --json -u --user -b --cookie -A --user-agent -e --referer --url --oauth2-bearer -m --max-time --max-redirs".split(
    " ",
  ),
);
/** Options that a test on a server cannot express. */
const REFUSED: ReadonlyArray<readonly [options: string, reason: CurlRefusal["reason"]]> = [
  ["-F --form --form-string", "multipart"],
  ["-T --upload-file --cacert --capath -E --cert --key -K --config", "file"],
  ["-: --next", "several"],
  [
    "-x --proxy --socks5 --socks5-hostname --unix-socket --abstract-unix-socket --resolve --connect-to --interface",
    "way",
  ],
  ["--digest --ntlm --negotiate --anyauth --aws-sigv4", "login"],
];

const REDIRECTS = 10;
const REDIRECTS_MAX = 20;

/** Reads a command; the `$` of a prompt before it is no part of it. */
export function readCurl(text: string): CurlRequest | CurlRefusal {
  const words = shellWords(text.trim().replace(/^\$\s+/, ""));
  if (isRefusal(words)) {
    return words;
  }
  const [program = "", ...rest] = words;
  if (!/^(?:.*\/)?curl(?:\.exe)?$/.test(program)) {
    return { reason: "notCurl", value: program === "" ? null : program };
  }
  const reader = new CurlReader();
  for (let at = 0; at < rest.length; ) {
    const word = rest[at] ?? "";
    const next = rest[at + 1];
    const step =
      word.startsWith("--") && word.length > 2
        ? reader.option(word, next)
        : word.startsWith("-") && word.length > 1
          ? reader.cluster(word, next)
          : reader.url(word);
    if (typeof step === "object") {
      return step;
    }
    at += step;
  }
  return reader.finish();
}

/** How many words an option takes, or why it is refused. */
type Step = number | CurlRefusal;

class CurlReader {
  #method: string | null = null;
  #url: string | null = null;
  #headers: Array<readonly [string, string]> = [];
  #data: string | null = null;
  #basic: readonly [string, string] | null = null;
  #bearer: string | null = null;
  #timeout: string | null = null;
  #redirectsMax = REDIRECTS;
  #isJson = false;
  #isQuery = false;
  #isHead = false;
  #isInsecure = false;
  #follows = false;

  /** Reads short options in one word: `-sSL`, `-XPOST`. */
  cluster(word: string, next: string | undefined): Step {
    for (let at = 1; at < word.length; at += 1) {
      const option = `-${word.charAt(at)}`;
      const rest = word.slice(at + 1);
      if (WITH_VALUE.has(option) || PASSED_OVER_WITH_VALUE.has(option)) {
        const taken = this.option(option, rest === "" ? next : rest);
        return typeof taken === "object" || rest === "" ? taken : 1;
      }
      const step = this.option(option, undefined);
      if (typeof step === "object") {
        return step;
      }
    }
    return 1;
  }

  /** Reads an option, with the word behind it. */
  option(option: string, next: string | undefined): Step {
    const refused = REFUSED.find(([options]) => options.split(" ").includes(option));
    if (refused !== undefined) {
      return { reason: refused[1], value: option };
    }
    if (PASSED_OVER.has(option)) {
      return 1;
    }
    switch (option) {
      case "-k":
      case "--insecure":
        this.#isInsecure = true;
        return 1;
      case "-L":
      case "--location":
      case "--location-trusted":
        this.#follows = true;
        return 1;
      case "-G":
      case "--get":
        this.#isQuery = true;
        return 1;
      case "-I":
      case "--head":
        this.#isHead = true;
        return 1;
    }
    if (!WITH_VALUE.has(option) && !PASSED_OVER_WITH_VALUE.has(option)) {
      return { reason: "unknown", value: option };
    }
    if (next === undefined) {
      return { reason: "noValue", value: option };
    }
    return (PASSED_OVER_WITH_VALUE.has(option) ? null : this.#set(option, next)) ?? 2;
  }

  url(url: string): Step {
    if (this.#url !== null) {
      return { reason: "urls", value: url };
    }
    this.#url = url;
    return 1;
  }

  #set(option: string, value: string): CurlRefusal | null {
    switch (option) {
      case "-X":
      case "--request":
        this.#method = value;
        return null;
      case "--url": {
        const step = this.url(value);
        return typeof step === "object" ? step : null;
      }
      case "-H":
      case "--header":
        return this.#header(value);
      case "-A":
      case "--user-agent":
        return this.#replace("User-Agent", value);
      case "-e":
      case "--referer":
        return this.#replace("Referer", value);
      case "-b":
      case "--cookie":
        return value.includes("=") ? this.#replace("Cookie", value) : { reason: "file", value: option };
      case "-u":
      case "--user": {
        const colon = value.indexOf(":");
        this.#basic = colon === -1 ? null : [value.slice(0, colon), value.slice(colon + 1)];
        return colon === -1 ? { reason: "password", value: option } : null;
      }
      case "--oauth2-bearer":
        this.#bearer = value;
        return null;
      case "-m":
      case "--max-time":
        this.#timeout = value;
        return /^\d{1,5}(?:\.\d{1,3})?$/.test(value) && Number(value) > 0
          ? null
          : { reason: "number", value };
      case "--max-redirs":
        this.#redirectsMax = Number(value);
        return /^\d{1,4}$/.test(value) ? null : { reason: "number", value };
      case "--data-urlencode":
        return this.#encoded(value);
      default:
        return this.#content(option, value);
    }
  }

  #header(header: string): CurlRefusal | null {
    const colon = header.indexOf(":");
    const name = colon === -1 ? header.replace(/;$/, "") : header.slice(0, colon);
    const value = colon === -1 ? "" : header.slice(colon + 1).trim();
    if ((colon === -1 && !header.endsWith(";")) || name.trim() === "") {
      return { reason: "header", value: header };
    }
    // `Name:` removes a header that curl adds by itself, and a test adds none of these.
    if (colon === -1 || value !== "") {
      this.#headers.push([name.trim(), value]);
    }
    return null;
  }

  #replace(name: string, value: string): null {
    this.#headers = [...this.#headers.filter(([known]) => !isSame(known, name)), [name, value]];
    return null;
  }

  #content(option: string, value: string): CurlRefusal | null {
    if (value.startsWith("@") && option !== "--data-raw") {
      return { reason: "file", value: `${option} ${value}` };
    }
    if (option === "--json") {
      this.#isJson = true;
      this.#data = (this.#data ?? "") + value;
    } else {
      this.#add(value);
    }
    return null;
  }

  /** Encodes `content`, `=content` and `name=content`. */
  #encoded(value: string): CurlRefusal | null {
    const at = value.search(/[=@]/);
    if (value.charAt(at) === "@") {
      return { reason: "file", value };
    }
    const [name, content] = at === -1 ? ["", value] : [value.slice(0, at), value.slice(at + 1)];
    this.#add(name === "" ? percent(content) : `${name}=${percent(content)}`);
    return null;
  }

  #add(text: string): void {
    this.#data = this.#data === null ? text : `${this.#data}&${text}`;
  }

  finish(): CurlRequest | CurlRefusal {
    if (this.#url === null) {
      return { reason: "noUrl", value: null };
    }
    let url = this.#url.includes("://") ? this.#url : `http://${this.#url}`;
    if (this.#isQuery && this.#data !== null) {
      url += `${url.includes("?") ? "&" : "?"}${this.#data}`;
      this.#data = null;
    }
    if (!/^https?:\/\/[^\s/]/i.test(url)) {
      return { reason: "url", value: url };
    }
    const byKind = this.#isHead ? "HEAD" : this.#data === null ? "GET" : "POST";
    if (this.#data !== null) {
      this.#default("Content-Type", this.#isJson ? "application/json" : "application/x-www-form-urlencoded");
    }
    if (this.#isJson) {
      this.#default("Accept", "application/json");
    }
    const request = {
      method: (this.#method ?? byKind).toUpperCase(),
      url,
      headers: this.#headers,
      body: this.#data,
      basic: this.#basic,
      bearer: this.#bearer,
      isInsecure: this.#isInsecure,
      redirects: this.#follows ? Math.min(this.#redirectsMax, REDIRECTS_MAX) : 0,
      timeout: this.#timeout,
    };
    return meaning(request) ?? request;
  }

  /** Adds a header that curl sends by default, unless the command has it. */
  #default(name: string, value: string): void {
    if (!this.#headers.some(([known]) => isSame(known, name))) {
      this.#headers.push([name, value]);
    }
  }
}

/** Refuses texts that mean something else in a document: a variable, or a file beside it. */
function meaning(request: CurlRequest): CurlRefusal | null {
  const { url, headers, body, basic, bearer } = request;
  const texts = [url, ...headers.flat(), ...(basic ?? []), ...[body, bearer].filter((it) => it !== null)];
  const taken = texts.find((text) => text.includes("${"));
  if (taken !== undefined) {
    return { reason: "documentVariable", value: taken };
  }
  const isFile = body !== null && /^\.\.?\/\S*$/.test(body);
  return isFile ? { reason: "documentFile", value: body } : null;
}

function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** Encodes all but letters, digits and `-._~`. */
function percent(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
