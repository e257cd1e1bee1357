/** Why a request failed: the Problem of the server as given, or that there was no answer. */

import { words } from "../words.ts";
import type { components } from "./schema.d.ts";

export type Problem = components["schemas"]["Problem"];

export class RequestFailure extends Error {
  /** The HTTP status, or 0 where the server did not answer. */
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly problem: Problem | null;

  constructor(status: number, problem: Problem | null) {
    super(
      problem?.detail ?? (status === 0 ? words.failure.noAnswerDetail : words.failure.unreadable(status)),
    );
    this.name = "RequestFailure";
    this.status = status;
    this.problem = problem;
    this.code = problem?.code ?? (status === 0 ? "no-answer" : "unreadable");
    this.title = problem?.title ?? (status === 0 ? words.failure.noAnswer : words.failure.failed);
  }

  /** Whether the server is there and will be ready later, so that the page asks again by itself. */
  get isWaiting(): boolean {
    return this.status === 503 && (this.code === "not-ready" || this.code === "unavailable");
  }
}

/** Reads the failure from an answer whose status is not a success. */
export function failureOf(status: number, body: unknown): RequestFailure {
  return new RequestFailure(status, isProblem(body) ? body : null);
}

export function asFailure(error: unknown): RequestFailure {
  return error instanceof RequestFailure ? error : new RequestFailure(0, null);
}

function isProblem(body: unknown): body is Problem {
  return (
    typeof body === "object" &&
    body !== null &&
    typeof (body as Problem).code === "string" &&
    typeof (body as Problem).title === "string" &&
    typeof (body as Problem).detail === "string"
  );
}
