import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { Network, Store } from "lucide-react";
import type { ReactNode } from "react";
import { serverQuery } from "../../api/queries.ts";
import { linkButton } from "../../kit/button.tsx";
import { Loaded } from "../../kit/loaded.tsx";
import { Page } from "../../kit/page.tsx";
import { words } from "../../words.ts";
import { startCommand } from "../command.ts";
import { useProject } from "../search.ts";
import { DemoDoor } from "./demo-door.tsx";
import { OwnDoor } from "./own-door.tsx";
import styles from "./screen.module.css";

type DoorName = "demo" | "own";

/** The first run: on the demo shop, or on the reader's own system. */
export default function StartScreen() {
  const project = useProject();
  const { door } = useSearch({ from: "/start" });
  const server = useQuery(serverQuery);
  return (
    <Page
      tab={words.start.title}
      title={words.start.title}
      command={startCommand(project)}
      actions={
        <Link to="/" className={linkButton}>
          {words.start.toTests}
        </Link>
      }
    >
      <p className={styles.intro}>{words.start.intro}</p>
      <Loaded query={server} rows={4}>
        {(facts) => {
          const isOwn = door === "own" || (door !== "demo" && facts.demo !== "offered");
          return (
            <>
              <nav className={styles.doors} aria-label={words.start.doors}>
                <Door name="demo" isOpen={!isOwn} icon={<Store size={18} aria-hidden="true" />} />
                <Door name="own" isOpen={isOwn} icon={<Network size={18} aria-hidden="true" />} />
              </nav>
              {isOwn ? <OwnDoor /> : <DemoDoor />}
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

interface DoorProps {
  readonly name: DoorName;
  readonly isOpen: boolean;
  readonly icon: ReactNode;
}

function Door({ name, isOpen, icon }: DoorProps) {
  const isDemo = name === "demo";
  return (
    <Link
      to="/start"
      search={(before) => ({ project: before.project, door: name })}
      className={styles.door}
      data-current={isOpen}
      aria-current={isOpen ? "true" : undefined}
    >
      {icon}
      <span>
        <strong>{isDemo ? words.start.demoDoor : words.start.ownDoor}</strong>
        <span className={styles.soft}>{isDemo ? words.start.demoDoorText : words.start.ownDoorText}</span>
      </span>
    </Link>
  );
}
