import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Search } from "lucide-react";
import { Label as FieldLabel } from "react-aria-components";
import type { Schemas, TestsSort } from "../../api/client.ts";
import { testsQuery } from "../../api/queries.ts";
import { Button, primaryLink } from "../../kit/button.tsx";
import { Code } from "../../kit/code.tsx";
import { Field } from "../../kit/field.tsx";
import { Loaded } from "../../kit/loaded.tsx";
import { Page } from "../../kit/page.tsx";
import { Empty } from "../../kit/states.tsx";
import { Mark } from "../../verdict/mark.tsx";
import { lastJudged, markOf, worstFirst } from "../../verdict/trend.ts";
import { words } from "../../words.ts";
import { firstTestCommand, testsCommand } from "../command.ts";
import { useProject } from "../search.ts";
import { useChanges } from "../use-changes.ts";
import { useSettled } from "../use-settled.ts";
import { TestRows } from "./rows.tsx";
import styles from "./screen.module.css";

type TestTrend = Schemas["TestTrend"];

/** The tests of the project, the worst first. */
export default function TestsScreen() {
  const project = useProject();
  const { q = "", sort = "worst" } = useSearch({ from: "/" });
  const navigate = useNavigate({ from: "/" });
  const text = useSettled(q);
  const query = useInfiniteQuery(testsQuery(project, { q: text === "" ? undefined : text, sort }));
  useChanges(project);
  const filter = (text: string) =>
    void navigate({ search: (before) => ({ ...before, q: text === "" ? undefined : text }), replace: true });
  return (
    <Page
      tab={words.tests.title}
      title={words.tests.title}
      command={testsCommand(project)}
      actions={
        <div className={styles.filter}>
          <Field
            type="search"
            label={<FieldLabel className={styles.spoken ?? ""}>{words.tests.filter}</FieldLabel>}
            placeholder={words.tests.filter}
            icon={<Search size={14} aria-hidden="true" />}
            value={q}
            onChange={filter}
            isSearch
          />
        </div>
      }
    >
      <Loaded query={query} rows={9}>
        {(data) => (
          <Tests
            tests={ordered(
              data.pages.flatMap((page) => page.items),
              sort,
            )}
            sort={sort}
            isFiltered={text !== ""}
            onClear={() => filter("")}
            {...(query.hasNextPage
              ? { onMore: () => void query.fetchNextPage(), isLoading: query.isFetchingNextPage }
              : {})}
          />
        )}
      </Loaded>
    </Page>
  );
}

interface Props {
  readonly tests: readonly TestTrend[];
  readonly sort: TestsSort;
  readonly isFiltered: boolean;
  readonly onClear: () => void;
  readonly onMore?: () => void;
  readonly isLoading?: boolean;
}

function Tests({ tests, sort, isFiltered, onClear, onMore, isLoading }: Props) {
  const project = useProject();
  if (tests.length === 0 && isFiltered) {
    return (
      <Empty title={words.tests.noMatch}>
        <Button onPress={onClear}>{words.tests.clear}</Button>
      </Empty>
    );
  }
  if (tests.length === 0) {
    return (
      <Empty title={words.tests.empty}>
        <p>{words.tests.emptyMore}</p>
        <Link to="/start" className={primaryLink}>
          {words.tests.emptyStart}
        </Link>
        <p>{words.tests.emptyCommand}</p>
        <Code lines={firstTestCommand(project)} />
      </Empty>
    );
  }
  return (
    <>
      <div className={styles.above}>
        <Counts tests={tests} />
        <Sort />
      </div>
      <TestRows tests={tests} />
      {onMore === undefined ? null : (
        <div className={styles.more}>
          <Button onPress={onMore} isDisabled={isLoading === true}>
            {words.tests.more}
          </Button>
          {sort === "worst" ? <span>{words.tests.partly}</span> : null}
        </div>
      )}
    </>
  );
}

/** The server pages through the tests in this order; flaky ones are sorted here, among those that are loaded. */
function ordered(tests: readonly TestTrend[], sort: TestsSort): readonly TestTrend[] {
  return sort === "worst" ? worstFirst(tests) : tests;
}

function Sort() {
  return (
    <nav aria-label={words.tests.sort} className={styles.sort}>
      {(["worst", "id"] as const).map((it) => (
        <Link
          key={it}
          to="/"
          search={(before) => ({ ...before, sort: it === "id" ? it : undefined })}
          replace
          activeOptions={{ exact: true }}
        >
          {words.tests.sorts[it]}
        </Link>
      ))}
    </nav>
  );
}

function Counts({ tests }: { readonly tests: readonly TestTrend[] }) {
  const marks = tests.map(({ trend }) => {
    const last = lastJudged(trend);
    return last === undefined ? null : markOf(last);
  });
  const failing = marks.filter((mark) => mark === "failed").length;
  const open = marks.filter((mark) => mark === "inconclusive").length;
  const flaky = tests.filter((it) => it.trend.flaky > 0).length;
  return (
    <ul className={styles.counts}>
      <li>{words.tests.count(tests.length)}</li>
      {failing > 0 ? (
        <li className={styles.failing}>
          <Mark mark="failed" size={13} />
          {words.tests.failing(failing)}
        </li>
      ) : null}
      {open > 0 ? (
        <li className={styles.open}>
          <Mark mark="inconclusive" size={13} />
          {words.tests.open(open)}
        </li>
      ) : null}
      {flaky > 0 ? <li className={styles.flaky}>~ {words.tests.flaky(flaky)}</li> : null}
    </ul>
  );
}
