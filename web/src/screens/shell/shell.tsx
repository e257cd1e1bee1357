import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { ChartGantt, FlaskConical, History, Keyboard, Layers } from "lucide-react";
import { useState } from "react";
import { Button } from "../../kit/button.tsx";
import { Sheet } from "../../kit/overlay.tsx";
import { useShortcut } from "../../kit/use-shortcut.ts";
import { words } from "../../words.ts";
import { PersonMenu } from "./person.tsx";
import { ProjectMenu } from "./project.tsx";
import styles from "./shell.module.css";

/** The frame of all screens: the rail, the bar at the top, and the keyboard shortcuts. */
export function Shell() {
  const [isHelp, setHelp] = useState(false);
  const navigate = useNavigate();
  const isLogin = useLocation({ select: (location) => location.pathname.endsWith("/login") });
  useShortcut("tests", () => void navigate({ to: "/" }));
  useShortcut("suites", () => void navigate({ to: "/suites" }));
  useShortcut("runs", () => void navigate({ to: "/runs" }));
  useShortcut("traces", () => void navigate({ to: "/trace" }));
  useShortcut("help", () => setHelp(true));
  useShortcut("search", () => document.querySelector<HTMLElement>("[data-search] input")?.focus());
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#content">
        {words.nav.skip}
      </a>
      <header className={styles.top}>
        <Link to="/" className={styles.brand} aria-label={words.product}>
          <Logo />
          <span>{words.product}</span>
        </Link>
        {isLogin ? <span className={styles.space} /> : <ProjectMenu />}
        <div className={styles.tools}>
          <Button
            look="quiet"
            icon={<Keyboard size={16} aria-hidden="true" />}
            hint={words.keys.title}
            onPress={() => setHelp(true)}
          />
          <PersonMenu />
        </div>
      </header>
      {isLogin ? null : <Rail />}
      <main id="content" tabIndex={-1} className={isLogin ? styles.wide : styles.main}>
        <Outlet />
      </main>
      <Sheet title={words.keys.title} isOpen={isHelp} onOpenChange={setHelp}>
        <h3>{words.keys.everywhere}</h3>
        <Keys list={words.keys.list} />
        <h3>{words.keys.inTrace}</h3>
        <Keys list={words.keys.trace} />
      </Sheet>
    </div>
  );
}

function Keys({ list }: { readonly list: ReadonlyArray<readonly [string, string]> }) {
  return (
    <dl className={styles.keys}>
      {list.map(([keys, meaning]) => (
        <div key={keys}>
          <dt>
            {keys.split(" ").map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  );
}

function Rail() {
  const path = useLocation({ select: (location) => location.pathname });
  const parts = path.split("/");
  const isTests =
    !parts.includes("runs") && !parts.includes("suites") && !parts.includes("r") && !parts.includes("trace");
  return (
    <nav className={styles.rail} aria-label={words.nav.label}>
      <div className={styles.items}>
        <Link
          to="/"
          className={styles.item}
          data-current={isTests}
          aria-current={isTests ? "page" : undefined}
        >
          <FlaskConical size={16} aria-hidden="true" />
          {words.nav.tests}
        </Link>
        <Link to="/suites" className={styles.item}>
          <Layers size={16} aria-hidden="true" />
          {words.nav.suites}
        </Link>
        <Link to="/runs" className={styles.item} data-current={parts.includes("r") ? true : undefined}>
          <History size={16} aria-hidden="true" />
          {words.nav.runs}
        </Link>
        <Link to="/trace" className={styles.item}>
          <ChartGantt size={16} aria-hidden="true" />
          {words.nav.traces}
        </Link>
      </div>
    </nav>
  );
}

function Logo() {
  return (
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" className={styles.logo} />
      <path d="M7 10h14M10 16h15M13 22h8" className={styles.logoLines} />
    </svg>
  );
}
