//! README's first minute, as a user types it: an empty folder, and only the binary in `PATH`.

use std::{
    env, fs,
    io::Write,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use bench::parts::free_port;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// A folder for the commands, one for the binary, and free ports.
struct Machine {
    folder: TempDir,
    path: TempDir,
    shop: u16,
    otlp: u16,
}

/// The result of commands.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Machine {
    fn new() -> Result<Self> {
        let path = TempDir::new()?;
        symlink(BINARY, path.path().join("qualitytrace"))?;
        Ok(Self { folder: TempDir::new()?, path, shop: free_port()?, otlp: free_port()? })
    }

    /// Runs these commands in a shell. A user waits until the shop listens before the next command; the script does so too.
    fn shell(&self, commands: &str) -> Result<Said> {
        let mut script = String::new();
        for command in commands.lines() {
            script.push_str(command);
            script.push('\n');
            if command.contains(" &") {
                let waits = format!(
                    "until (: < /dev/tcp/127.0.0.1/{}) 2> /dev/null; do kill -0 %% || exit 9; done\n",
                    self.shop
                );
                script.push_str(&waits);
            }
        }
        // The exit code of the last command is the exit code of the script; its background jobs are killed.
        script.push_str("code=$?; kill $(jobs -p) 2> /dev/null; wait; exit $code\n");
        let shell = which("bash")?;
        let mut running = Command::new(shell)
            .env_clear()
            .env("PATH", self.path.path())
            .env("QUALITYTRACE_DEMO_HTTP", format!("127.0.0.1:{}", self.shop))
            .env("QUALITYTRACE_DEMO_OTLP", format!("http://127.0.0.1:{}", self.otlp))
            .env("QUALITYTRACE_OTLP", format!("127.0.0.1:{}", self.otlp))
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut input = running.stdin.take().context("a shell reads")?;
        input.write_all(script.as_bytes())?;
        drop(input);
        let ended = running.wait_with_output()?;
        Ok(Said {
            code: ended.status.code(),
            out: String::from_utf8(ended.stdout)?,
            err: String::from_utf8(ended.stderr)?,
        })
    }

    /// Masks everything in a text that differs between runs: ids, times, ports, and the width of columns.
    fn same(&self, text: &str) -> Vec<String> {
        let text = text.replace(&format!(":{}", self.shop), ":11634");
        text.lines().map(without_figures).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "where a program is, only the environment says")]
fn which(program: &str) -> Result<std::path::PathBuf> {
    let path = env::var_os("PATH").context("a path")?;
    let found = env::split_paths(&path).map(|folder| folder.join(program)).find(|it| it.is_file());
    found.with_context(|| format!("`{program}` is installed"))
}

/// Replaces ids by `ID`, numbers before a unit of time by `T`, and whitespace by one space.
fn without_figures(line: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        let bare = word.trim_matches(|c: char| "(),`\"".contains(c));
        let is_id = bare.len() >= 16 && bare.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let is_unit = ["ns", "µs", "ms", "s"].contains(&bare);
        let is_number = |it: &&str| it.trim_start_matches('(').parse::<f64>().is_ok();
        if is_unit && words.last().is_some_and(is_number) {
            words.pop();
            words.push("T");
        } else {
            words.push(if is_id { "ID" } else { word });
        }
    }
    words.join(" ")
}

/// Returns the blocks of README's first minute: language and text.
fn blocks() -> Result<Vec<(String, String)>> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme)?;
    let (_, section) = readme.split_once("\n## The first minute\n").context("the section")?;
    let section = section.split("\n## ").next().unwrap_or(section);
    let mut blocks = Vec::new();
    for (at, part) in section.split("```").enumerate() {
        if at % 2 == 1 {
            let (language, text) = part.split_once('\n').context("a block has lines")?;
            blocks.push((language.to_owned(), text.to_owned()));
        }
    }
    Ok(blocks)
}

/// Checks that the text contains all lines, in this order. `…` represents omitted lines.
fn shows(text: &[String], lines: &[String]) -> Result<()> {
    let mut rest = text.iter();
    for line in lines.iter().filter(|line| !line.is_empty() && *line != "…") {
        // README truncates long lines with `…`.
        let line = line.trim_end_matches('…').trim_end();
        ensure!(
            rest.any(|found| found.starts_with(line)),
            "`{line}` is not said, or not there, in:\n{}",
            text.join("\n")
        );
    }
    Ok(())
}

#[test]
fn the_commands_of_the_readme_say_what_the_readme_says() -> Result<()> {
    let machine = Machine::new()?;
    let blocks = blocks()?;
    let typed: Vec<_> = blocks
        .iter()
        .zip(blocks.iter().skip(1))
        .filter(|((language, _), (next, _))| language == "sh" && next == "text")
        .collect();
    // A green verdict, a red one, and the user's own test.
    ensure!(typed.len() == 3, "three blocks of commands with what they say, not {}", typed.len());
    for (at, ((_, commands), (_, said))) in typed.into_iter().enumerate() {
        // Each block has a shell of its own, and jobs end with their shell.
        let commands = commands.replace("kill $!; wait\n", "");
        let commands = commands.replace(":11634", &format!(":{}", machine.shop));
        let found = machine.shell(&commands)?;
        let expected = if at == 1 { Some(1) } else { Some(0) };
        assert_eq!(found.code, expected, "{commands}{found:?}");
        shows(&machine.same(&found.out), &machine.same(said))?;
    }
    Ok(())
}

#[test]
fn a_first_test_is_written_once() -> Result<()> {
    let machine = Machine::new()?;
    let first = machine.shell("qualitytrace init")?;
    assert_eq!(first.code, Some(0), "{first:?}");
    // The project file beside it has what a run needs, so that it needs no flag.
    let shown = machine.shell("qualitytrace project show -- run")?;
    let tests = shown.out.lines().find(|line| line.starts_with("tests "));
    assert!(tests.is_some_and(|it| it.ends_with("qualitytrace.toml:2")), "{shown:?}");
    fs::write(machine.folder.path().join("qualitytrace/checkout.yaml"), "mine")?;
    let second = machine.shell("qualitytrace init")?;
    assert_eq!(second.code, Some(2), "{second:?}");
    assert!(second.err.contains("stays as it is"), "{second:?}");
    assert_eq!(
        fs::read_to_string(machine.folder.path().join("qualitytrace/checkout.yaml"))?,
        "mine"
    );
    let without = Machine::new()?.shell("qualitytrace run")?;
    assert_eq!(without.code, Some(2), "{without:?}");
    assert!(without.err.contains("qualitytrace init"), "{without:?}");
    Ok(())
}

#[test]
fn each_fault_is_found_by_the_first_test_or_does_not_matter() -> Result<()> {
    let cases = [
        ("n-plus-one", 1, "✘ no statement is asked again and again"),
        ("lost-context", 3, "`payments` began a trace of its own"),
        ("retry-storm", 1, "✘ the money is taken once"),
        ("slow-database", 1, "✘ duration < 1s"),
        ("late-spans", 0, "✔ passed: an order is paid once and shipped"),
    ];
    for (fault, code, said) in cases {
        let machine = Machine::new()?;
        let found = machine.shell(&format!(
            "qualitytrace init > /dev/null\nqualitytrace demo --fault {fault} &\nqualitytrace run"
        ))?;
        assert_eq!(found.code, Some(code), "{fault}: {found:?}");
        assert!(found.out.contains(said), "{fault}: {found:?}");
    }
    Ok(())
}
