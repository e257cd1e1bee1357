import { Link, useNavigate } from "@tanstack/react-router";
import { ChevronDown, Search } from "lucide-react";
import { useState } from "react";
import {
  Button as AriaButton,
  Label as FieldLabel,
  Form,
  ListBox,
  ListBoxItem,
  Select,
  SelectValue,
} from "react-aria-components";
import { Button, linkButton } from "../../kit/button.tsx";
import { Field } from "../../kit/field.tsx";
import { Panel, panelStyles } from "../../kit/overlay.tsx";
import { words } from "../../words.ts";
import type { RunsSearch } from "../router.tsx";
import { NAME } from "../search.ts";
import styles from "./filters.module.css";
import { hasFilter, localOf, momentOf } from "./moments.ts";

const VERDICTS = ["passed", "failed", "inconclusive"] as const;
const ANY = "any";

/** What narrows the list; the address has it, so that a link shows the same. */
export function Filters({ search }: { readonly search: RunsSearch }) {
  const navigate = useNavigate({ from: "/runs" });
  const [verdict, setVerdict] = useState(search.verdict ?? ANY);
  const apply = (changed: RunsSearch) =>
    void navigate({ search: (before) => ({ ...before, cursor: undefined, ...changed }) });
  return (
    <Form
      className={styles.form ?? ""}
      aria-label={words.runs.filters}
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        const text = (name: string) => String(form.get(name) ?? "").trim() || undefined;
        apply({ test: text("test"), from: momentOf(text("from")), until: momentOf(text("until")) });
      }}
    >
      <Field
        name="test"
        label={<FieldLabel>{words.runs.test}</FieldLabel>}
        placeholder={words.runs.testHint}
        icon={<Search size={14} aria-hidden="true" />}
        defaultValue={search.test ?? ""}
        validate={(value) => (value === "" || NAME.test(value.trim()) ? null : words.top.projectInvalid)}
        isSearch
      />
      <Select
        className={styles.select ?? ""}
        selectedKey={verdict}
        onSelectionChange={(key) => {
          setVerdict(String(key));
          apply({ verdict: key === ANY ? undefined : String(key) });
        }}
      >
        <FieldLabel>{words.runs.verdict}</FieldLabel>
        <AriaButton className={styles.trigger ?? ""}>
          <SelectValue />
          <ChevronDown size={14} aria-hidden="true" />
        </AriaButton>
        <Panel>
          <ListBox className={panelStyles.menu ?? ""}>
            <ListBoxItem id={ANY} className={panelStyles.item ?? ""}>
              {words.runs.anyVerdict}
            </ListBoxItem>
            {VERDICTS.map((it) => (
              <ListBoxItem key={it} id={it} className={panelStyles.item ?? ""}>
                {words.verdict[it]}
              </ListBoxItem>
            ))}
          </ListBox>
        </Panel>
      </Select>
      <Field
        name="from"
        type={"datetime-local" as "text"}
        label={<FieldLabel>{words.runs.from}</FieldLabel>}
        defaultValue={localOf(search.from)}
      />
      <Field
        name="until"
        type={"datetime-local" as "text"}
        label={<FieldLabel>{words.runs.until}</FieldLabel>}
        defaultValue={localOf(search.until)}
      />
      <div className={styles.buttons}>
        <Button type="submit">{words.runs.apply}</Button>
        {hasFilter(search) ? (
          <Link to="/runs" search={(before) => ({ project: before.project })} className={linkButton}>
            {words.runs.clear}
          </Link>
        ) : null}
      </div>
    </Form>
  );
}
