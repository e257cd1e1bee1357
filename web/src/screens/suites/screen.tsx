import { useInfiniteQuery } from "@tanstack/react-query";
import { suitesQuery } from "../../api/queries.ts";
import { Button } from "../../kit/button.tsx";
import { Code } from "../../kit/code.tsx";
import { Loaded } from "../../kit/loaded.tsx";
import { Moment } from "../../kit/moment.tsx";
import { Page } from "../../kit/page.tsx";
import { Empty } from "../../kit/states.tsx";
import { Label } from "../../kit/text.tsx";
import { words } from "../../words.ts";
import { applyCommand, suitesCommand } from "../command.ts";
import { useProject } from "../search.ts";
import styles from "./screen.module.css";

/** The suites of the project. Their runs have no list in the API yet. */
export default function SuitesScreen() {
  const project = useProject();
  const query = useInfiniteQuery(suitesQuery(project));
  const { columns } = words.suites;
  return (
    <Page tab={words.suites.title} title={words.suites.title} command={suitesCommand(project)}>
      <Loaded query={query}>
        {(data) => {
          const suites = data.pages.flatMap((page) => page.items);
          return suites.length === 0 ? (
            <Empty title={words.suites.empty}>
              <p>{words.suites.emptyMore}</p>
              <Code lines={applyCommand(project)} />
            </Empty>
          ) : (
            <>
              <table className={styles.table}>
                <thead>
                  <tr>
                    <th scope="col">{columns.suite}</th>
                    <th scope="col">{columns.version}</th>
                    <th scope="col">{columns.at}</th>
                  </tr>
                </thead>
                <tbody>
                  {suites.map((suite) => (
                    <tr key={suite.id}>
                      <th scope="row">
                        <Label value={suite.name} />
                        {suite.name === suite.id ? null : <span className={styles.id}>{suite.id}</span>}
                      </th>
                      <td>{suite.version}</td>
                      <td>{suite.createdAt ? <Moment at={suite.createdAt} /> : "–"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {query.hasNextPage ? (
                <div>
                  <Button onPress={() => void query.fetchNextPage()} isDisabled={query.isFetchingNextPage}>
                    {words.suites.more}
                  </Button>
                </div>
              ) : null}
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}
