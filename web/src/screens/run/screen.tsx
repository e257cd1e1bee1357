import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";
import { reportAddress, type Schemas } from "../../api/client.ts";
import { runQuery } from "../../api/queries.ts";
import { linkButton } from "../../kit/button.tsx";
import { CopyButton } from "../../kit/copy.tsx";
import { Loaded } from "../../kit/loaded.tsx";
import { visible } from "../../kit/marks.ts";
import { Page } from "../../kit/page.tsx";
import { Label } from "../../kit/text.tsx";
import { differences } from "../../verdict/difference.ts";
import { VerdictWord } from "../../verdict/mark.tsx";
import { type GreenRun, runMarkdown } from "../../verdict/markdown.ts";
import { type SentencePart, sentence } from "../../verdict/sentence.ts";
import { SpanAnchor } from "../../verdict/span-link.tsx";
import { markOf } from "../../verdict/trend.ts";
import { words } from "../../words.ts";
import { runCommand } from "../command.ts";
import { useProject } from "../search.ts";
import { NextStep } from "../start/next-step.tsx";
import { RunButton } from "../test/run-button.tsx";
import { runAddress } from "./addresses.ts";
import { useGreen } from "./green.tsx";
import { Banner, Facts } from "./head.tsx";
import { LiveEvents } from "./live.tsx";
import { OutcomeView } from "./outcome.tsx";
import styles from "./screen.module.css";
import { StopButton } from "./stop-button.tsx";
import { type Live, useLive } from "./use-live.ts";

/** A run: live while it is in progress, and why it passed or not afterwards. */
export default function RunScreen() {
  const project = useProject();
  const { run: id } = useParams({ from: "/r/$run" });
  const query = useQuery(runQuery(project, id));
  const isActive = query.data !== undefined && query.data.state !== "ended";
  const live = useLive(project, id, isActive);
  const run = query.data;
  const mark = run === undefined ? null : markOf({ ...run, state: run.state });
  const name = run?.outcome?.test ?? run?.test ?? words.run.title;
  return (
    <Page
      tab={mark === null ? words.run.title : `${words.verdict[mark]}: ${visible(name)}`}
      title={
        <>
          {mark === null || run === undefined ? null : (
            <VerdictWord mark={mark} size={19} isProvisional={!run.verdict && !!run.provisionalVerdict} />
          )}
          <Label value={name} />
        </>
      }
      above={
        run === undefined ? null : (
          <span className={styles.above}>
            {words.run.of}{" "}
            <Link to="/t/$test" params={{ test: run.test }}>
              {run.test}
            </Link>
          </span>
        )
      }
      actions={run === undefined ? null : <Actions run={run} />}
      command={run === undefined ? [] : runCommand(project, run.id, run.test, run.version)}
    >
      <Loaded query={query} rows={8}>
        {(data) => <RunView run={data} live={live} />}
      </Loaded>
    </Page>
  );
}

function RunView({ run, live }: { readonly run: Schemas["Run"]; readonly live: Live }) {
  const { outcome } = run;
  const ofSpan = (span: string, className: string | undefined) => (
    <Link to="/r/$run/trace" params={{ run: run.id }} search={{ span }} className={className}>
      {span}
    </Link>
  );
  if (!outcome) {
    return (
      <>
        <Banner mark={markOf({ ...run, state: run.state })} parts={progress(run)} />
        <Facts run={run} />
        <LiveEvents live={live} run={run} />
      </>
    );
  }
  return (
    <>
      <Banner mark={outcome.verdict} parts={sentence(outcome)} />
      <NextStep run={run} />
      <Facts run={run} />
      <SpanAnchor value={run.trace.state === "stored" ? ofSpan : null}>
        <OutcomeView run={run} outcome={outcome} />
      </SpanAnchor>
    </>
  );
}

function progress(run: Schemas["Run"]): SentencePart[] {
  const text = run.provisionalVerdict
    ? `${words.verdict.lingering(run.provisionalVerdict)}; ${words.verdict.provisional}.`
    : run.state === "queued"
      ? words.run.queuedSentence
      : words.run.runningSentence;
  return [{ role: "words", text }];
}

function Actions({ run }: { readonly run: Schemas["Run"] }) {
  const project = useProject();
  const green = useGreen(run);
  if (run.state !== "ended") {
    return <StopButton run={run} />;
  }
  const markdown = () => runMarkdown(run, runAddress(project, run.id), greenRun(project, green, run));
  return (
    <>
      <RunButton test={run.test} label={words.run.again} />
      {run.traceId ? (
        <Link to="/r/$run/trace" params={{ run: run.id }} className={linkButton}>
          {words.trace.open}
        </Link>
      ) : null}
      <CopyButton label={words.run.markdown} text={markdown} />
      <ReportLink href={reportAddress(project, run.id, "html")} label={words.run.html} />
      <ReportLink href={reportAddress(project, run.id, "junit")} label={words.run.junit} />
    </>
  );
}

function greenRun(
  project: string,
  green: Schemas["Run"] | null | undefined,
  run: Schemas["Run"],
): GreenRun | null {
  return green ? { address: runAddress(project, green.id), differences: differences(green, run) } : null;
}

function ReportLink({ href, label }: { readonly href: string; readonly label: string }) {
  return (
    <a className={linkButton} href={href} target="_blank" rel="noopener">
      {label}
      <ExternalLink size={13} aria-hidden="true" />
    </a>
  );
}
