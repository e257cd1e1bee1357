import { describe, expect, it } from "vitest";
import { type CurlRequest, readCurl } from "./curl.ts";
import { documentOf, idOf, mayHoldSecret } from "./document.ts";
import { isRefusal } from "./refusal.ts";
import { shellWords } from "./shell.ts";

function request(command: string): CurlRequest {
  const read = readCurl(command);
  if (isRefusal(read)) {
    throw new Error(`${command}: ${read.reason} ${read.value}`);
  }
  return read;
}

describe("the words of a command", () => {
  it.each([
    ["curl a", ["curl", "a"]],
    ["  curl \t a  ", ["curl", "a"]],
    ["curl 'a b' \"c d\" e\\ f", ["curl", "a b", "c d", "e f"]],
    ["curl ''", ["curl", ""]],
    ["a'b'\"c\"d", ["abcd"]],
    ["curl \\\n  -H 'a: b' \\\r\n  c", ["curl", "-H", "a: b", "c"]],
    ['"a\\"b\\\\c\\d\\\ne"', ['a"b\\c\\de']],
    ["'a\\'", ["a\\"]],
    ["$'a\\nb\\'c\\u00e4\\x21'", ["a\nb'cä!"]],
    ['"5 $ and $"', ["5 $ and $"]],
    ["a#b a^b", ["a#b", "a^b"]],
    ["", []],
  ])("%j", (text, words) => {
    expect(shellWords(text)).toEqual(words);
  });

  it.each([
    ["curl 'a", "unclosed", "'"],
    ['curl "a', "unclosed", '"'],
    ["curl $'a", "unclosed", "$'"],
    ["curl $URL", "variable", "$URL"],
    [`curl "a\${TOKEN}"`, "variable", `\${TOKEN}`],
    ["curl $(cat url)", "substitution", "$("],
    ["curl `cat url`", "substitution", "`"],
    ["curl a | jq", "operator", "|"],
    ["curl a && curl b", "operator", "&"],
    ["curl a > file", "operator", ">"],
    ["curl a # comment", "operator", "#"],
    ['curl ^"http://a^"', "windows", null],
    ["curl a ^\r\n  -H b", "windows", null],
    [`curl ${"a ".repeat(2000)}`, "tooLong", null],
    [`curl ${"a".repeat(70_000)}`, "tooLong", null],
  ])("%j is refused", (text, reason, value) => {
    expect(shellWords(text)).toEqual({ reason, value });
  });
});

describe("a curl command", () => {
  it.each<[string, Partial<CurlRequest>]>([
    ["curl http://a/b", { method: "GET", url: "http://a/b", headers: [], body: null, redirects: 0 }],
    ["$ curl localhost:8080", { url: "http://localhost:8080" }],
    ["/usr/bin/curl -sSL http://a", { url: "http://a", redirects: 10 }],
    ["curl -L --max-redirs 99 http://a", { redirects: 20 }],
    ["curl -X put http://a", { method: "PUT" }],
    ["curl -XPOST http://a", { method: "POST" }],
    ["curl -I http://a", { method: "HEAD" }],
    ["curl --url http://a -o /dev/null -w '%{http_code}'", { url: "http://a" }],
    [
      "curl http://a -d x=1 -d y=2",
      { method: "POST", body: "x=1&y=2", headers: [["Content-Type", "application/x-www-form-urlencoded"]] },
    ],
    [
      `curl http://a --json '{"a": 1}'`,
      {
        method: "POST",
        body: '{"a": 1}',
        headers: [
          ["Content-Type", "application/json"],
          ["Accept", "application/json"],
        ],
      },
    ],
    [
      "curl http://a -H 'content-type: text/plain' -H 'Accept:' -H 'X-Empty;' -d hi",
      {
        headers: [
          ["content-type", "text/plain"],
          ["X-Empty", ""],
        ],
      },
    ],
    [
      "curl -G http://a?x=1 -d y=2 --data-urlencode 'z=a b*'",
      { method: "GET", url: "http://a?x=1&y=2&z=a%20b%2A", body: null },
    ],
    ["curl http://a --data-raw @home", { body: "@home" }],
    ["curl -u ada:1:2 http://a", { basic: ["ada", "1:2"] }],
    ["curl --oauth2-bearer t http://a", { bearer: "t" }],
    ["curl -k -m 2.5 http://a", { isInsecure: true, timeout: "2.5" }],
    [
      "curl -A one -b a=1 -e http://b http://a",
      {
        headers: [
          ["User-Agent", "one"],
          ["Cookie", "a=1"],
          ["Referer", "http://b"],
        ],
      },
    ],
  ])("%s", (command, expected) => {
    expect(request(command)).toMatchObject(expected);
  });

  it.each([
    ["", "notCurl", null],
    ["wget http://a", "notCurl", "wget"],
    ["curl -s", "noUrl", null],
    ["curl http://a http://b", "urls", "http://b"],
    ["curl ftp://a", "url", "ftp://a"],
    ["curl http://", "url", "http://"],
    ["curl -H", "noValue", "-H"],
    ["curl -H nothing http://a", "header", "nothing"],
    ["curl --frobnicate http://a", "unknown", "--frobnicate"],
    ["curl -sz http://a", "unknown", "-z"],
    ["curl -F a=b http://a", "multipart", "-F"],
    ["curl -d @body.json http://a", "file", "-d @body.json"],
    ["curl --data-urlencode a@b http://a", "file", "a@b"],
    ["curl --cacert ca.pem http://a", "file", "--cacert"],
    ["curl -b cookies.txt http://a", "file", "-b"],
    ["curl -u ada http://a", "password", "-u"],
    ["curl -x proxy http://a", "way", "-x"],
    ["curl --digest http://a", "login", "--digest"],
    ["curl http://a --next http://b", "several", "--next"],
    ["curl -m soon http://a", "number", "soon"],
    ["curl --max-redirs -1 http://a", "number", "-1"],
    [`curl 'http://a/\${id}'`, "documentVariable", `http://a/\${id}`],
    ["curl http://a -d ./file", "documentFile", "./file"],
  ])("%s is refused: %s", (command, reason, value) => {
    expect(readCurl(command)).toEqual({ reason, value });
  });

  it("as a browser copies it", () => {
    const copied = `curl 'https://shop.example.com/api/orders?x=1' \\
  -H 'accept: */*' \\
  -H 'content-type: application/json' \\
  -b 'session=abc' \\
  --data-raw $'{"note":"it\\'s\\nnew"}' \\
  --compressed`;
    expect(request(copied)).toMatchObject({
      method: "POST",
      url: "https://shop.example.com/api/orders?x=1",
      headers: [
        ["accept", "*/*"],
        ["content-type", "application/json"],
        ["Cookie", "session=abc"],
      ],
      body: '{"note":"it\'s\nnew"}',
    });
  });
});

describe("the test of a request", () => {
  it.each([
    ["curl http://a/", "get-root"],
    ["curl http://a", "get-root"],
    ["curl http://a/orders/7?x=y -d z", "post-orders-7"],
    ["curl http://a/Ä-Ö/b%20c", "get-b-20c"],
    [`curl http://a/${"long/".repeat(40)}`, `get-${"long-".repeat(12).slice(0, -1)}`],
  ])("%s has the id %s", (command, id) => {
    const made = idOf(request(command));
    expect(made).toBe(id);
    expect(made).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
  });

  it("has all parts of the request", () => {
    const made = documentOf(request("curl -kLm 3 -u a:b http://a/x -H 'K: v' -d c"), "first");
    expect(made).toEqual({
      type: "Test",
      spec: {
        id: "first",
        name: "POST http://a/x",
        trigger: {
          type: "http",
          timeout: "3s",
          httpRequest: {
            method: "POST",
            url: "http://a/x",
            sslVerification: false,
            redirects: 10,
            headers: [
              { key: "K", value: "v" },
              { key: "Content-Type", value: "application/x-www-form-urlencoded" },
            ],
            auth: { type: "basic", basic: { username: "a", password: "b" } },
            body: "c",
          },
        },
        trace: [
          { name: "the response is no error", claim: "response.status < 400" },
          { name: "nothing fails on the way", claim: 'no span[status="error"]' },
        ],
      },
    });
  });

  it("is known to hold what may be a secret", () => {
    expect(mayHoldSecret(request("curl http://a -H 'accept: b'"))).toBe(false);
    for (const secret of ["-u a:b", "--oauth2-bearer a", "-H 'X-Api-Key: a'", "-b a=b"]) {
      expect(mayHoldSecret(request(`curl http://a ${secret}`))).toBe(true);
    }
  });
});
