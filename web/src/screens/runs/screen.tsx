import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { runsQuery } from "../../api/queries.ts";
import { linkButton } from "../../kit/button.tsx";
import { Code } from "../../kit/code.tsx";
import { Loaded } from "../../kit/loaded.tsx";
import { Page } from "../../kit/page.tsx";
import { Empty } from "../../kit/states.tsx";
import { words } from "../../words.ts";
import { runsCommand, testsCommand } from "../command.ts";
import { useProject } from "../search.ts";
import { useChanges } from "../use-changes.ts";
import { Filters } from "./filters.tsx";
import { hasFilter, momentOf } from "./moments.ts";
import styles from "./screen.module.css";
import { RunsTable } from "./table.tsx";

/** The runs of the project, the newest first. */
export default function RunsScreen() {
  const project = useProject();
  const search = useSearch({ from: "/runs" });
  const filter = { ...search, from: momentOf(search.from), until: momentOf(search.until) };
  const query = useQuery(runsQuery(project, filter));
  useChanges(project);
  return (
    <Page tab={words.runs.title} title={words.runs.title} command={runsCommand(project, filter)}>
      <Filters key={JSON.stringify(search)} search={search} />
      <Loaded query={query} rows={12}>
        {(page) =>
          page.items.length === 0 ? (
            <NoRuns isFiltered={hasFilter(search)} />
          ) : (
            <>
              <RunsTable runs={page.items} hasTests />
              <Pages next={page.next} isFirst={search.cursor === undefined} />
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }) {
  const project = useProject();
  return isFiltered ? (
    <Empty title={words.runs.noMatch}>
      <Link to="/runs" search={(before) => ({ project: before.project })} className={linkButton}>
        {words.runs.clear}
      </Link>
    </Empty>
  ) : (
    <Empty title={words.runs.empty}>
      <p>{words.runs.emptyMore}</p>
      <Code lines={[`qualitytrace run --server ${location.origin}`, ...testsCommand(project)].slice(0, 1)} />
    </Empty>
  );
}

function Pages({ next, isFirst }: { readonly next: string | null; readonly isFirst: boolean }) {
  if (next === null && isFirst) {
    return null;
  }
  return (
    <nav className={styles.pages} aria-label={words.runs.page}>
      {isFirst ? null : (
        <Link to="/runs" search={(before) => ({ ...before, cursor: undefined })} className={linkButton}>
          {words.runs.newest}
        </Link>
      )}
      {next === null ? null : (
        <Link to="/runs" search={(before) => ({ ...before, cursor: next })} className={linkButton}>
          {words.runs.older}
        </Link>
      )}
    </nav>
  );
}
