import type { Schemas } from "../api/client.ts";
import { Text } from "../kit/text.tsx";
import { words } from "../words.ts";
import styles from "./trigger.module.css";

type Answer = Schemas["Answer"];

/** The answer as it came. */
export function TriggerView({ answer }: { readonly answer: Exclude<Answer, "notFired"> }) {
  const labels = words.run.trigger;
  if ("exit" in answer) {
    return (
      <div className={styles.view}>
        <Body title={labels.stdout} body={answer.exit.stdout} />
        {answer.exit.stderr === "" ? null : (
          <Body title={labels.stderr} body={{ text: answer.exit.stderr }} />
        )}
      </div>
    );
  }
  if ("noAnswer" in answer) {
    return (
      <p className={styles.message}>
        <Text value={answer.noAnswer.message} />
      </p>
    );
  }
  const { headers, body } = "response" in answer ? answer.response : answer.reply;
  return (
    <div className={styles.view}>
      <Body title={labels.body} body={body} />
      <Fields title={labels.headers} fields={headers} />
    </div>
  );
}

/** The request as it was fired, without credentials, and what of it was too long to be recorded. */
export function RequestView({ request }: { readonly request: Schemas["RecordedRequest"] }) {
  const labels = words.run.trigger;
  const { method, target, fields, body } = request;
  const isEmpty = "text" in body && body.text === "";
  return (
    <div className={styles.view}>
      <div>
        <h3>{labels.request}</h3>
        <pre className={styles.body}>
          <Text value={method === "" ? target : `${method} ${target}`} layout="block" />
        </pre>
      </div>
      <Fields title={labels.fields} fields={fields} />
      {request.moreFields === undefined ? null : (
        <p className={styles.message}>{labels.moreFields(request.moreFields)}</p>
      )}
      {isEmpty ? null : <Body title={labels.requestBody} body={body} />}
      {request.moreBodyBytes === undefined ? null : (
        <p className={styles.message}>{labels.moreBytes(request.moreBodyBytes)}</p>
      )}
    </div>
  );
}

function Fields({ title, fields }: { readonly title: string; readonly fields: readonly string[][] }) {
  return fields.length === 0 ? null : (
    <div>
      <h3>{title}</h3>
      <dl className={styles.headers}>
        {fields.map(([name, value], at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a name may come several times; the list never changes
          <div key={at}>
            <dt>
              <Text value={name ?? ""} charsMax={80} />
            </dt>
            <dd>
              <Text value={value ?? ""} />
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Body({ title, body }: { readonly title: string; readonly body: Schemas["AnswerBody"] }) {
  return (
    <div>
      <h3>{title}</h3>
      {"bytes" in body ? (
        <p className={styles.message}>{words.text.bytes(body.bytes.length)}</p>
      ) : body.text === "" ? (
        <p className={styles.message}>{words.text.empty}</p>
      ) : (
        <pre className={styles.body}>
          <Text value={pretty(body.text)} layout="block" />
        </pre>
      )}
    </div>
  );
}

/** The largest body that is laid out as JSON, in characters. */
const PRETTY_CHARS_MAX = 100_000;

function pretty(text: string): string {
  if (text.length > PRETTY_CHARS_MAX || !/^\s*[[{]/.test(text)) {
    return text;
  }
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
