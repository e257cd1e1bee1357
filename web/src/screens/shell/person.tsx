import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useRouterState } from "@tanstack/react-router";
import { CircleUser, LogIn, LogOut, Monitor, Moon, Sun } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Header, Menu, MenuItem, MenuSection, MenuTrigger, Separator } from "react-aria-components";
import { logOut } from "../../api/client.ts";
import { callerQuery, serverQuery } from "../../api/queries.ts";
import { Button } from "../../kit/button.tsx";
import { Panel, panelStyles } from "../../kit/overlay.tsx";
import { Label } from "../../kit/text.tsx";
import { storedTheme, storeTheme, THEMES, type Theme } from "../../kit/theme.ts";
import { words } from "../../words.ts";
import styles from "./person.module.css";

const ICONS: Readonly<Record<Theme, ReactNode>> = {
  dark: <Moon size={14} aria-hidden="true" />,
  light: <Sun size={14} aria-hidden="true" />,
  system: <Monitor size={14} aria-hidden="true" />,
};

/** Who is logged in, the theme, and the version of the server. */
export function PersonMenu() {
  const [theme, setTheme] = useState(storedTheme);
  const navigate = useNavigate();
  const here = useRouterState({ select: (state) => state.location.href });
  const isLogin = useRouterState({ select: (state) => state.location.pathname.endsWith("/login") });
  const server = useQuery(serverQuery);
  const caller = useQuery({ ...callerQuery, enabled: !isLogin });
  const queries = useQueryClient();
  const leave = useMutation({
    mutationFn: logOut,
    onSuccess: async () => {
      queries.clear();
      await navigate({ to: "/login" });
    },
  });
  const isOn = server.data?.access === "on";
  const name = isOn ? caller.data?.name : undefined;
  const choose = (key: unknown) => {
    const chosen = THEMES.find((it) => it === key);
    if (chosen !== undefined) {
      storeTheme(chosen);
      setTheme(chosen);
    } else if (key === "logout") {
      leave.mutate();
    } else if (key === "login") {
      void navigate({ to: "/login", search: { return: here } });
    }
  };
  return (
    <MenuTrigger>
      <Button
        look="quiet"
        icon={<CircleUser size={16} aria-hidden="true" />}
        aria-label={name === undefined ? words.top.person : words.top.personOf(name)}
      >
        {name === undefined ? undefined : (
          <span className={styles.name}>
            <Label value={name} />
          </span>
        )}
      </Button>
      <Panel placement="bottom end">
        {name === undefined ? null : (
          <p className={styles.who}>
            <Label value={name} />
            <span>{caller.data?.role}</span>
          </p>
        )}
        <Menu className={panelStyles.menu ?? ""} aria-label={words.top.person} onAction={choose}>
          <MenuSection
            selectionMode="single"
            selectedKeys={[theme]}
            onSelectionChange={(keys) => choose([...keys][0])}
          >
            <Header className={styles.header ?? ""}>{words.top.theme}</Header>
            {THEMES.map((it) => (
              <MenuItem key={it} id={it} className={panelStyles.item ?? ""}>
                {ICONS[it]}
                {words.top.themes[it]}
              </MenuItem>
            ))}
          </MenuSection>
          {isOn ? <Separator className={styles.line ?? ""} /> : null}
          {isOn && name !== undefined ? (
            <MenuItem id="logout" className={panelStyles.item ?? ""}>
              <LogOut size={14} aria-hidden="true" />
              {words.top.logOut}
            </MenuItem>
          ) : null}
          {isOn && name === undefined ? (
            <MenuItem id="login" className={panelStyles.item ?? ""}>
              <LogIn size={14} aria-hidden="true" />
              {words.top.logIn}
            </MenuItem>
          ) : null}
        </Menu>
        {server.data === undefined ? null : (
          <p className={styles.note}>
            {server.data.access === "off" ? `${words.top.accessOff}. ` : null}
            {words.top.version(server.data.version)}
          </p>
        )}
      </Panel>
    </MenuTrigger>
  );
}
