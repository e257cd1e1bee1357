/** The commands that show or do the same as a screen. */

import type { RunsFilter } from "../api/client.ts";
import { address } from "../api/place.ts";
import { PROJECT } from "./search.ts";

function server(): string {
  return `--server ${location.origin}${address("")}`;
}

function at(project: string): string {
  return project === PROJECT ? server() : `${server()} --project ${quoted(project)}`;
}

/** Quotes a word for a POSIX shell, where it needs it. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9._:/@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function testsCommand(project: string): string[] {
  return [`qualitytrace trend --last 30 ${at(project)}`];
}

export function testCommand(project: string, test: string): string[] {
  return [
    `qualitytrace trend ${quoted(test)} --last 100 ${at(project)}`,
    `qualitytrace get tests ${quoted(test)} ${at(project)}`,
  ];
}

export function runsCommand(project: string, filter: RunsFilter): string[] {
  const { test, verdict, from, until } = filter;
  const url = `${location.origin}${address("/api/v1/runs", { project, test, verdict, from, until })}`;
  return [`curl --oauth2-bearer "$QUALITYTRACE_TOKEN" ${quoted(url)}`];
}

export function runCommand(project: string, run: string, test: string, version: number): string[] {
  const url = `${location.origin}${address(`/api/v1/runs/${encodeURIComponent(run)}/report`, { project, format: "pretty" })}`;
  const report = `curl --oauth2-bearer "$QUALITYTRACE_TOKEN" ${quoted(url)}`;
  const get = `qualitytrace get tests ${quoted(`${test}@${version}`)} ${at(project)} > ${quoted(`${test}.yaml`)}`;
  // `run --server` runs in the default project only.
  const again = project === PROJECT ? [`qualitytrace run ${quoted(`${test}.yaml`)} ${server()}`] : [];
  return [report, get, ...again];
}

/** The command that stores the trace of a run as a file. */
export function traceCommand(project: string, run: string): string[] {
  const url = `${location.origin}${address(`/api/v1/runs/${encodeURIComponent(run)}/trace`, { project })}`;
  return [`curl --oauth2-bearer "$QUALITYTRACE_TOKEN" ${quoted(url)} > trace.json`];
}

/** The command that judges a test on the trace of a file. */
export function fileCommand(): string[] {
  return ["qualitytrace check test.yaml --trace trace.json"];
}

export function suitesCommand(project: string): string[] {
  return [`qualitytrace list suites ${at(project)}`];
}

export function applyCommand(project: string): string[] {
  return [`qualitytrace apply qualitytrace/ ${at(project)}`];
}

export function firstTestCommand(project: string): string[] {
  return ["qualitytrace new -- curl http://127.0.0.1:8080/", ...applyCommand(project)];
}

export function startCommand(project: string): string[] {
  return ["qualitytrace demo", "qualitytrace init", ...applyCommand(project)];
}

export function tokenCommand(): string[] {
  return ["qualitytrace token create --config quality-trace-config.yaml --role ingest --name my-system"];
}
