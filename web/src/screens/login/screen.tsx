import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRouter, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { FieldError, Label as FieldLabel, Text as FieldText, Form } from "react-aria-components";
import { LOGIN_PATH } from "../../api/auth-paths.ts";
import { logIn } from "../../api/client.ts";
import { address } from "../../api/place.ts";
import { asFailure, type RequestFailure } from "../../api/problem.ts";
import { serverQuery } from "../../api/queries.ts";
import { Button, linkButton } from "../../kit/button.tsx";
import { Code } from "../../kit/code.tsx";
import { Field } from "../../kit/field.tsx";
import { Loaded } from "../../kit/loaded.tsx";
import { Prose, Text } from "../../kit/text.tsx";
import { words } from "../../words.ts";
import { returnPath } from "../search.ts";
import styles from "./screen.module.css";

const FIRST_TOKEN = ["qualitytrace token create --config quality-trace-config.yaml"];

/** The way in: a pasted token becomes a cookie, or the identity provider does it. */
export default function LoginScreen() {
  const search = useSearch({ from: "/login" });
  const back = returnPath(search.return);
  const failed = failureOf(search.failed);
  const server = useQuery(serverQuery);
  return (
    <div className={styles.place}>
      <title>{`${words.login.title} · ${words.product}`}</title>
      <div className={styles.card}>
        <h1>{words.login.title}</h1>
        <Loaded query={server} rows={3}>
          {(info) =>
            info.access === "off" ? (
              <Off back={back} />
            ) : (
              <>
                {failed === null ? null : (
                  <p className={styles.failure} role="alert">
                    <Prose value={failed} />
                  </p>
                )}
                {info.login.oidc ? (
                  <>
                    <a className={linkButton} href={address(LOGIN_PATH, { return: back })}>
                      {words.login.oidc}
                    </a>
                    <p className={styles.or}>{words.login.or}</p>
                  </>
                ) : null}
                <TokenForm back={back} />
                <p className={styles.how}>{words.login.howTo}</p>
                <Code lines={FIRST_TOKEN} />
              </>
            )
          }
        </Loaded>
      </div>
    </div>
  );
}

/** Only words of this page: anyone can make an address. */
function failureOf(word: string | undefined): string | null {
  const known = Object.entries(words.login.failed).find(([name]) => name === word);
  return known?.[1] ?? null;
}

function Off({ back }: { readonly back: string }) {
  const router = useRouter();
  return (
    <>
      <p>{words.login.off}</p>
      <Button look="primary" onPress={() => router.history.replace(back)}>
        {words.login.go}
      </Button>
    </>
  );
}

function TokenForm({ back }: { readonly back: string }) {
  const router = useRouter();
  const queries = useQueryClient();
  const [isSending, setSending] = useState(false);
  const [failure, setFailure] = useState<RequestFailure | null>(null);
  // Not a mutation of the query library: that would keep the token as its argument.
  const submit = async (token: string) => {
    setSending(true);
    setFailure(null);
    try {
      await logIn(token);
      queries.clear();
      router.history.replace(address(back));
    } catch (error) {
      setFailure(asFailure(error));
    } finally {
      setSending(false);
    }
  };
  return (
    <Form
      className={styles.form ?? ""}
      onSubmit={(event) => {
        event.preventDefault();
        const token = String(new FormData(event.currentTarget).get("token")).trim();
        event.currentTarget.reset();
        void submit(token);
      }}
    >
      <Field
        name="token"
        type="password"
        autoComplete="off"
        isRequired
        label={<FieldLabel>{words.login.token}</FieldLabel>}
        below={
          <>
            <FieldText slot="description">{words.login.tokenHint}</FieldText>
            <FieldError />
          </>
        }
      />
      <Button type="submit" look="primary" isDisabled={isSending}>
        {words.login.submit}
      </Button>
      {failure === null ? null : (
        <p className={styles.failure} role="alert">
          {failure.status === 401 ? `${words.login.refused}: ` : null}
          <Text value={failure.message} />
        </p>
      )}
    </Form>
  );
}
