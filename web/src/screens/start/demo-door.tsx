import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Store } from "lucide-react";
import { type Schemas, startDemo, stopDemo } from "../../api/client.ts";
import { asFailure } from "../../api/problem.ts";
import { callerQuery, demoQuery, testDocumentQuery } from "../../api/queries.ts";
import { Button } from "../../kit/button.tsx";
import { Loaded } from "../../kit/loaded.tsx";
import { Prose, Text } from "../../kit/text.tsx";
import { words } from "../../words.ts";
import { mayEdit } from "../role.ts";
import { useProject } from "../search.ts";
import { RunButton } from "../test/run-button.tsx";
import { partsOf } from "./parts.ts";
import styles from "./screen.module.css";
import { Step } from "./step.tsx";

type Demo = Schemas["Demo"];

/** The demo shop: open it, read its test, run it, break it. */
export function DemoDoor() {
  const demo = useQuery(demoQuery(useProject()));
  return (
    <Loaded query={demo} rows={5}>
      {(data) =>
        data.isOffered ? (
          <Shop demo={data} />
        ) : (
          <section className={styles.off}>
            <h2>{words.start.demo.notOffered}</h2>
            <p>
              <Prose value={data.reason ?? ""} />
            </p>
          </section>
        )
      }
    </Loaded>
  );
}

function Shop({ demo }: { readonly demo: Demo }) {
  const project = useProject();
  const queries = useQueryClient();
  const caller = useQuery(callerQuery);
  // The faults to open the shop with; null closes it.
  const change = useMutation({
    mutationFn: (faults: readonly string[] | null) =>
      faults === null ? stopDemo(project) : startDemo(project, faults),
    onSuccess: (data) => {
      queries.setQueryData(demoQuery(project).queryKey, data);
      void queries.invalidateQueries({ queryKey: ["tests", project] });
    },
  });
  const isAllowed = mayEdit(caller.data);
  const isIdle = isAllowed && !change.isPending;
  const { test } = demo;
  return (
    <ol className={styles.steps}>
      <Step number={1} title={words.start.demo.step1} text={words.start.demo.step1Text}>
        {demo.url === null || demo.url === undefined ? (
          <Button
            look="primary"
            icon={<Store size={14} aria-hidden="true" />}
            isDisabled={!isIdle}
            onPress={() => change.mutate([])}
          >
            {change.isPending ? words.start.demo.opening : words.start.demo.open}
          </Button>
        ) : (
          <p className={styles.line}>
            {words.start.demo.isOpen} <code>{demo.url}</code>
            <Button look="quiet" isDisabled={!isIdle} onPress={() => change.mutate(null)}>
              {words.start.demo.close}
            </Button>
          </p>
        )}
        {isAllowed ? null : <p className={styles.soft}>{words.start.demo.mayNot}</p>}
        {change.error === null ? null : (
          <p className={styles.failure} role="alert">
            <Text value={asFailure(change.error).message} />
          </p>
        )}
        {demo.otherServers > 0 ? (
          <p className={styles.warning}>{words.start.demo.others(demo.otherServers)}</p>
        ) : null}
      </Step>
      {demo.url && test ? (
        <>
          <Step number={2} title={words.start.demo.step2} text={words.start.demo.step2Text}>
            <Parts test={test} />
            {test.isOfShop ? null : <p className={styles.warning}>{words.start.demo.otherAddress}</p>}
          </Step>
          <Step number={3} title={words.start.demo.step3} text={words.start.demo.step3Text}>
            <div className={styles.line}>
              <RunButton test={test.id} label={words.start.demo.run} look="primary" />
              {demo.faults.length === 0 ? null : (
                <span className={styles.broken}>
                  {words.start.demo.isBroken} <code>{demo.faults.join(", ")}</code>
                </span>
              )}
            </div>
          </Step>
          <Step number={4} title={words.start.demo.step4} text={words.start.demo.step4Text}>
            <Faults demo={demo} isIdle={isIdle} onChange={(faults) => change.mutate(faults)} />
          </Step>
        </>
      ) : null}
    </ol>
  );
}

function Parts({ test }: { readonly test: Schemas["DemoTest"] }) {
  const project = useProject();
  const document = useQuery(testDocumentQuery(project, test.id, test.version));
  return (
    <Loaded query={document} rows={4}>
      {(data) => (
        <dl className={styles.parts}>
          {partsOf(data).map(({ kind, text, code }, at, all) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a part is its position
            <div key={at}>
              <dt data-repeated={all[at - 1]?.kind === kind}>{words.start.demo[kind]}</dt>
              <dd>
                <Text value={text} charsMax={200} />
                {code === "" ? null : (
                  <pre>
                    <Text value={code} layout="block" charsMax={400} />
                  </pre>
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </Loaded>
  );
}

interface FaultsProps {
  readonly demo: Demo;
  readonly isIdle: boolean;
  readonly onChange: (faults: readonly string[]) => void;
}

function Faults({ demo, isIdle, onChange }: FaultsProps) {
  const none = { name: words.start.demo.noFault, about: words.start.demo.noFaultText };
  return (
    <fieldset className={styles.faults} aria-label={words.start.demo.faults}>
      {[none, ...demo.knownFaults].map((fault) => {
        const faults = fault === none ? [] : [fault.name];
        const isOn = faults.join() === demo.faults.join();
        return (
          <div key={fault.name}>
            <Button aria-pressed={isOn} isDisabled={!isIdle} onPress={() => onChange(faults)}>
              {fault.name}
            </Button>
            <span className={styles.soft}>{fault.about}</span>
          </div>
        );
      })}
    </fieldset>
  );
}
