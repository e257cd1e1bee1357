import { Link } from "@tanstack/react-router";
import { linkButton } from "../../kit/button.tsx";
import { Page } from "../../kit/page.tsx";
import { Empty } from "../../kit/states.tsx";
import { words } from "../../words.ts";
import { testsCommand } from "../command.ts";
import { useProject } from "../search.ts";

/** An address that no screen has. */
export function Missing() {
  const project = useProject();
  return (
    <Page tab={words.failure.notFound} title={words.failure.notFound} command={testsCommand(project)}>
      <Empty title={words.missing.title}>
        <p>{words.missing.text}</p>
        <Link to="/" className={linkButton}>
          {words.failure.toTests}
        </Link>
      </Empty>
    </Page>
  );
}
