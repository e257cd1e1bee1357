import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client.ts";
import { receiverQuery } from "../../api/queries.ts";
import { Code } from "../../kit/code.tsx";
import { Loaded } from "../../kit/loaded.tsx";
import { Moment } from "../../kit/moment.tsx";
import { Label, Prose } from "../../kit/text.tsx";
import { words } from "../../words.ts";
import { tokenCommand } from "../command.ts";
import { useProject } from "../search.ts";
import { CurlStep } from "./curl-step.tsx";
import { environmentOf } from "./endpoint.ts";
import styles from "./screen.module.css";
import { Step } from "./step.tsx";

type Receiver = Schemas["Receiver"];

/** The reader's own system: where its spans go, whether they come, and a first test from a curl command. */
export function OwnDoor() {
  const receiver = useQuery(receiverQuery(useProject()));
  return (
    <ol className={styles.steps}>
      <Step number={1} title={words.start.own.step1} text={words.start.own.step1Text}>
        <Loaded query={receiver} rows={4}>
          {(data) => (
            <>
              <Environment receiver={data} />
              <Light receiver={data} />
            </>
          )}
        </Loaded>
      </Step>
      <CurlStep />
    </ol>
  );
}

function Environment({ receiver }: { readonly receiver: Receiver }) {
  const names = { fallback: location.hostname, token: words.start.own.tokenPlace };
  if (!receiver.endpoint) {
    return <p className={styles.warning}>{words.start.own.noEndpoint}</p>;
  }
  return (
    <>
      <h3>{words.start.own.grpc}</h3>
      <Code lines={environmentOf(receiver, "grpc", names)} />
      <h3>{words.start.own.http}</h3>
      <Code lines={environmentOf(receiver, "http/protobuf", names)} />
      {receiver.endpoint.host ? null : <p className={styles.soft}>{words.start.own.anyHost}</p>}
      {receiver.isTokenRequired ? (
        <>
          <p className={styles.soft}>{words.start.own.tokenText}</p>
          <Code lines={tokenCommand()} />
        </>
      ) : null}
    </>
  );
}

/** Turns on with the first span of a system. */
function Light({ receiver }: { readonly receiver: Receiver }) {
  const { services, refusals, servers } = receiver;
  const isLit = services.length > 0;
  return (
    <section className={styles.light} data-lit={isLit} aria-label={words.start.own.light}>
      <p className={styles.lightLine} aria-live="polite">
        <span className={styles.lamp} aria-hidden="true" />
        {isLit ? words.start.own.lit(services.length) : words.start.own.dark}
      </p>
      {isLit ? (
        <ul className={styles.services}>
          {services.map((service) => (
            <li key={service.name ?? ""}>
              <strong>{service.name ? <Label value={service.name} /> : words.start.own.noName}</strong>
              <span className={styles.soft}>
                {words.start.own.spans(service.spans)}, <Moment at={service.lastAt} />
              </span>
            </li>
          ))}
          {receiver.hasMore ? <li className={styles.soft}>{words.start.own.more}</li> : null}
        </ul>
      ) : null}
      {refusals.slice(0, 1).map((refusal) => (
        <p key={refusal.at} className={styles.warning}>
          {words.start.own.senderRefused} <Prose value={refusal.reason} />
        </p>
      ))}
      {servers && servers.answered < servers.servers ? (
        <p className={styles.soft}>{words.start.own.partly(servers.answered, servers.servers)}</p>
      ) : null}
    </section>
  );
}
