import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { demoQuery, serverQuery } from "../../api/queries.ts";
import { linkButton } from "../../kit/button.tsx";
import { words } from "../../words.ts";
import { useProject } from "../search.ts";
import styles from "./screen.module.css";

/** The test of the demo shop, as the server names it. */
const DEMO_TEST = "checkout";

/** Behind a run of the demo shop: the way to break or mend it. Other runs have no such step. */
export function NextStep({ run }: { readonly run: Schemas["Run"] }) {
  const project = useProject();
  const isDemoTest = run.test === DEMO_TEST;
  const server = useQuery({ ...serverQuery, enabled: isDemoTest });
  const demo = useQuery({ ...demoQuery(project), enabled: isDemoTest && server.data?.demo === "offered" });
  if (!isDemoTest || demo.data?.test?.isOfShop !== true) {
    return null;
  }
  return (
    <p className={styles.next}>
      {words.start.demo.next}
      <Link
        to="/start"
        search={(before) => ({ project: before.project, door: "demo" })}
        className={linkButton}
      >
        {demo.data.faults.length === 0 ? words.start.demo.breakIt : words.start.demo.mendIt}
      </Link>
    </p>
  );
}
