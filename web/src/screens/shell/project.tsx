import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ChevronsUpDown } from "lucide-react";
import { useState } from "react";
import { Dialog, DialogTrigger, FieldError, Label as FieldLabel, Form } from "react-aria-components";
import { callerQuery } from "../../api/queries.ts";
import { Button } from "../../kit/button.tsx";
import { Field } from "../../kit/field.tsx";
import { Panel } from "../../kit/overlay.tsx";
import { words } from "../../words.ts";
import { NAME, PROJECT, useProject } from "../search.ts";
import styles from "./project.module.css";

/** The project of the address, and a way to another one. The server has no list of projects. */
export function ProjectMenu() {
  const project = useProject();
  const navigate = useNavigate();
  const caller = useQuery(callerQuery);
  const [isOpen, setOpen] = useState(false);
  const open = (name: string) => {
    setOpen(false);
    void navigate({ to: "/", search: { project: name === PROJECT ? undefined : name } });
  };
  return (
    <DialogTrigger isOpen={isOpen} onOpenChange={setOpen}>
      <Button look="quiet" aria-label={`${words.top.project}: ${project}`}>
        <span className={styles.trigger}>
          <span className={styles.name}>{project}</span>
          <ChevronsUpDown size={13} aria-hidden="true" />
        </span>
      </Button>
      <Panel placement="bottom start">
        <Dialog className={styles.dialog ?? ""} aria-label={words.top.project}>
          {(caller.data?.projects ?? []).map((name) => (
            <Button key={name} look="quiet" onPress={() => open(name)}>
              {name}
            </Button>
          ))}
          <Form
            className={styles.form ?? ""}
            onSubmit={(event) => {
              event.preventDefault();
              open(String(new FormData(event.currentTarget).get("project")));
            }}
          >
            <Field
              name="project"
              label={<FieldLabel>{words.top.projectName}</FieldLabel>}
              defaultValue={project}
              validate={(value) => (NAME.test(value) ? null : words.top.projectInvalid)}
              below={<FieldError />}
            />
            <Button type="submit" look="primary">
              {words.top.open}
            </Button>
          </Form>
        </Dialog>
      </Panel>
    </DialogTrigger>
  );
}
