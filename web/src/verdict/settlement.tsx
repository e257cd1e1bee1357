import type { Schemas } from "../api/client.ts";
import { Text } from "../kit/text.tsx";
import { duration } from "../kit/time.ts";
import { words } from "../words.ts";
import { timeline } from "./lanes.ts";
import { LanesView } from "./lanes-view.tsx";
import styles from "./settlement.module.css";
import { unsettledWords } from "./unsettled.ts";

type Settlement = Schemas["Settlement"];

/** Why the trace was taken as complete, or not: what each process sent, and how long it was quiet. */
export function SettlementView({ settlement }: { readonly settlement: Settlement }) {
  const unanswered = settlement.unanswered ?? [];
  const line = timeline(settlement);
  return (
    <div className={styles.view}>
      {settlement.unsettled.length === 0 ? null : (
        <ul className={styles.reasons}>
          {settlement.unsettled.map((reason) => (
            <li key={JSON.stringify(reason)}>
              <Text value={unsettledWords(reason)} />
            </li>
          ))}
        </ul>
      )}
      <dl className={styles.facts}>
        {facts(settlement).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {line === null ? null : <LanesView timeline={line} waitedNs={settlement.waitedNs} />}
      {settlement.processes.length === 0 ? null : <Processes processes={settlement.processes} />}
      {unanswered.length === 0 ? null : <Unanswered peers={unanswered} />}
      {(settlement.stores ?? []).map((store) => (
        <p key={store.store} className={styles.note}>
          {words.run.settlement.stores}: <Text value={store.store} />, {words.run.settlement.lag}{" "}
          {duration(store.lagNs)}
        </p>
      ))}
    </div>
  );
}

function facts(settlement: Settlement): Array<readonly [string, string]> {
  const { settlement: labels } = words.run;
  const all: ReadonlyArray<readonly [string, number | null | undefined]> = [
    [labels.waited, settlement.waitedNs],
    [labels.quiet, settlement.quietNs],
    [labels.silent, settlement.silentNs],
    [labels.linger, settlement.lingerNs],
  ];
  return all.flatMap(([name, nanos]) => (nanos ? [[name, duration(nanos)] as const] : []));
}

function Processes({ processes }: { readonly processes: readonly Schemas["ProcessQuiet"][] }) {
  const { settlement: labels } = words.run;
  return (
    <table className={styles.processes}>
      <thead>
        <tr>
          <th scope="col">{labels.service}</th>
          <th scope="col" className={styles.number}>
            {labels.spanCount}
          </th>
          <th scope="col" className={styles.number}>
            {labels.delay}
          </th>
          <th scope="col">{labels.threshold}</th>
          <th scope="col">{labels.reason}</th>
        </tr>
      </thead>
      <tbody>
        {processes.map((it, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two processes of a service may have no instance; the list never changes
          <tr key={at}>
            <td className={styles.service}>
              <Text value={it.service} charsMax={60} />
              {it.instance === null ? null : (
                <span className={styles.instance} title={it.instance}>
                  <Text value={it.instance.slice(0, 8)} />
                </span>
              )}
            </td>
            <td className={styles.number}>{it.spans.toLocaleString("en")}</td>
            <td className={styles.number}>{duration(it.delayNs)}</td>
            <td className={it.silentNs >= it.quietNs ? styles.quiet : styles.short}>
              {duration(it.silentNs)} / {duration(it.quietNs)}
            </td>
            <td className={styles.because}>{words.run.because[it.because] ?? it.because}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Unanswered({ peers }: { readonly peers: readonly Schemas["UnansweredPeer"][] }) {
  const { settlement: labels } = words.run;
  return (
    <div>
      <h3>{labels.unanswered}</h3>
      <ul className={styles.peers}>
        {peers.map((it) => (
          <li key={`${it.service} ${it.peer}`}>
            {it.peer === "" ? labels.unnamed : <Text value={it.peer} charsMax={80} />}
            <span>
              {labels.by} <Text value={it.service} charsMax={60} />, {labels.calls(it.calls)}
              {it.declared ? `, ${labels.declared}` : null}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
