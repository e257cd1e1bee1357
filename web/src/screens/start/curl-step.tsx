import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Label as FieldLabel, Text as FieldText, Form } from "react-aria-components";
import { createTest } from "../../api/client.ts";
import { asFailure } from "../../api/problem.ts";
import { callerQuery } from "../../api/queries.ts";
import { Area } from "../../kit/area.tsx";
import { Button } from "../../kit/button.tsx";
import { Field } from "../../kit/field.tsx";
import { Text } from "../../kit/text.tsx";
import { words } from "../../words.ts";
import { mayEdit } from "../role.ts";
import { NAME, useProject } from "../search.ts";
import { RunButton } from "../test/run-button.tsx";
import { type CurlRequest, readCurl } from "./curl.ts";
import { documentOf, idOf, mayHoldSecret } from "./document.ts";
import { type CurlRefusal, isRefusal } from "./refusal.ts";
import styles from "./screen.module.css";
import { Step } from "./step.tsx";

/** A pasted curl command becomes a stored test, which is then run. */
export function CurlStep() {
  const project = useProject();
  const queries = useQueryClient();
  const caller = useQuery(callerQuery);
  const [command, setCommand] = useState("");
  // What the reader wrote; until then it is made of the request.
  const [ownId, setOwnId] = useState<string | null>(null);
  const read = command.trim() === "" ? null : readCurl(command);
  const request = read === null || isRefusal(read) ? null : read;
  const id = ownId ?? (request === null ? "" : idOf(request));
  const create = useMutation({
    mutationFn: (given: CurlRequest) => createTest(project, id, documentOf(given, id)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["tests", project] }),
  });
  const edit = (change: () => void) => {
    change();
    create.reset();
  };
  const isReady = request !== null && NAME.test(id) && mayEdit(caller.data) && !create.isPending;
  const [stored] = create.data?.documents ?? [];
  return (
    <>
      <Step number={2} title={words.start.own.step2} text={words.start.own.step2Text}>
        <Form
          className={styles.form ?? ""}
          onSubmit={(event) => {
            event.preventDefault();
            if (isReady && stored === undefined) {
              create.mutate(request);
            }
          }}
        >
          <Area
            label={<FieldLabel>{words.start.own.command}</FieldLabel>}
            placeholder={words.start.own.placeholder}
            value={command}
            onChange={(text) => edit(() => setCommand(text))}
            isInvalid={read !== null && isRefusal(read)}
          />
          {read !== null && isRefusal(read) ? <Refused refusal={read} /> : null}
          {request === null ? null : <Summary request={request} />}
          <Field
            label={<FieldLabel>{words.start.own.id}</FieldLabel>}
            value={id}
            onChange={(text) => edit(() => setOwnId(text === "" ? null : text))}
            below={<FieldText slot="description">{words.start.own.idHint}</FieldText>}
          />
          <div className={styles.line}>
            <Button type="submit" isDisabled={!isReady || stored !== undefined}>
              {words.start.own.create}
            </Button>
            {mayEdit(caller.data) ? null : <span className={styles.soft}>{words.test.mayNot}</span>}
          </div>
          {create.error === null ? null : <Failure error={create.error} />}
        </Form>
      </Step>
      {stored === undefined ? null : (
        <Step number={3} title={words.start.own.step3}>
          <p className={styles.line}>
            {words.start.own.step3Text} <code>{stored.id}</code>
          </p>
          <div className={styles.line}>
            <RunButton test={stored.id} label={words.start.own.run} look="primary" />
          </div>
        </Step>
      )}
    </>
  );
}

function Refused({ refusal }: { readonly refusal: CurlRefusal }) {
  return (
    <p className={styles.warning} aria-live="polite">
      <strong>{words.start.own.refusedTitle}.</strong> {words.start.own.refused[refusal.reason]}{" "}
      {refusal.value === null ? null : (
        <code>
          <Text value={refusal.value} charsMax={200} />
        </code>
      )}
    </p>
  );
}

function Summary({ request }: { readonly request: CurlRequest }) {
  return (
    <>
      <p className={styles.summary}>
        <strong>{<Text value={request.method} charsMax={20} />}</strong>{" "}
        <Text value={request.url} charsMax={200} />
      </p>
      {mayHoldSecret(request) ? <p className={styles.warning}>{words.start.own.secret}</p> : null}
    </>
  );
}

function Failure({ error }: { readonly error: unknown }) {
  const failure = asFailure(error);
  return (
    <p className={styles.failure} role="alert">
      {failure.status === 412 ? words.start.own.exists : <Text value={failure.message} layout="block" />}
    </p>
  );
}
