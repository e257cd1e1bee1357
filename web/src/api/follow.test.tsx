import { afterEach, expect, it, vi } from "vitest";
import { type Follower, followProject, followRun, type NumberedEvent } from "./follow.ts";

/** A response of the server: a piece of a stream, or a status. */
type Answer = string | number;

/** Answers each request with the next of these, and notes what was requested. */
function serve(answers: Answer[]): Array<{ readonly url: string; readonly last: string | undefined }> {
  const requests: Array<{ readonly url: string; readonly last: string | undefined }> = [];
  vi.stubGlobal("fetch", (url: string, { headers }: { headers: Record<string, string> }) => {
    requests.push({ url, last: headers["last-event-id"] });
    const answer = answers.shift() ?? 403;
    return Promise.resolve(
      typeof answer === "string"
        ? new Response(answer)
        : new Response(answer === 204 ? null : "{}", { status: answer }),
    );
  });
  return requests;
}

/** Notes what a follower of a run gets. */
function notes(): { readonly follower: Follower; readonly got: string[] } {
  const got: string[] = [];
  const follower: Follower = {
    onEvent: (event: NumberedEvent) => got.push(`event ${event.n}`),
    onGathering: (settlement) => got.push(`gathering ${settlement.spans}`),
    onEnd: () => got.push("end"),
    onCut: (failure) => got.push(`cut ${failure.status}`),
  };
  return { follower, got };
}

const event = (n: number) => `id: ${n}\nevent: attempted\ndata: {"n":${n},"event":{}}\n\n`;
const gathering = 'event: gathering\ndata: {"spans":7,"waitedNs":1,"processes":[]}\n\n';
const end = 'event: end\ndata: {"verdict":"passed"}\n\n';

afterEach(() => {
  vi.unstubAllGlobals();
});

it("reads the events of a run and what arrives, until the end", async () => {
  const requests = serve([event(1) + gathering + event(2) + end + event(3)]);
  const { follower, got } = notes();
  await followRun("p", "r", follower, new AbortController().signal);
  expect(got).toEqual(["event 1", "gathering 7", "event 2", "end"]);
  expect(requests[0]?.url).toContain("gathering=true");
});

it("requests a stream that was cut again, from its last numbered event", async () => {
  const requests = serve([event(1) + gathering, 204]);
  const { follower, got } = notes();
  await followRun("p", "r", follower, new AbortController().signal);
  expect(got).toEqual(["event 1", "gathering 7", "end"]);
  expect(requests.map((it) => it.last)).toEqual([undefined, "1"]);
});

it("ends with a refusal that a repetition does not change", async () => {
  const requests = serve([403, event(1)]);
  const { follower, got } = notes();
  await followRun("p", "r", follower, new AbortController().signal);
  expect(got).toEqual(["cut 403"]);
  expect(requests.length).toBe(1);
});

it("passes over what a later server may send", async () => {
  serve([`event: other\ndata: 7\n\ndata: no JSON\n\nevent: gathering\ndata: {}\n\n${end}`]);
  const { follower, got } = notes();
  await followRun("p", "r", follower, new AbortController().signal);
  expect(got).toEqual(["end"]);
});

it("reports each change of the runs of a project", async () => {
  serve(["event: runs\ndata: {}\n\n: comment\n\nevent: other\ndata: {}\n\nevent: runs\ndata: {}\n\n", 403]);
  const changes = vi.fn();
  await followProject("p", changes, new AbortController().signal);
  expect(changes).toHaveBeenCalledTimes(2);
});
