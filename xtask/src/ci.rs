//! `cargo xtask ci`: all checks before a merge, in the order in which a failure costs least.
//!
//! The tests come last, and among them the documentation tests first, so that a run ends with the summary of the test programs.
//! Deliberately absent: anything that only a certain CI service could do.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    bench, cache, generate,
    machine::Machine,
    packages, programs,
    services::{self, Variables},
    spawn, tools, web,
};

struct Step {
    name: &'static str,
    what: &'static str,
    services: &'static [&'static str],
    run: fn(&Machine, &Variables) -> Result<()>,
}

/// A target that the language must also compile for.
const WASM: &str = "wasm32-unknown-unknown";

/// Concurrency of verdict traps: they wait more than they compute.
const TRAPS_AT_ONCE: &str = "6";

const STEPS: &[Step] = &[
    Step { name: "format", what: "every file as rustfmt writes it", services: &[], run: format },
    // First of all that compiles: the program packs what this builds.
    Step {
        name: "web",
        what: "the web page: lint, types, tests, licences, sizes",
        services: &[],
        run: |machine, _| web::run(machine, &[]),
    },
    Step { name: "clippy", what: "no warning of compiler or clippy", services: &[], run: clippy },
    Step { name: "docs", what: "documentation without warnings", services: &[], run: docs },
    Step {
        name: "tidy",
        what: "the house rules that a compiler cannot see",
        services: &[],
        run: tidy,
    },
    Step {
        name: "generated",
        what: "generated files are as git has them",
        services: &["postgres"],
        run: |machine, _| generate::check(machine),
    },
    Step { name: "deny", what: "licences, banned crates and sources", services: &[], run: deny },
    Step {
        name: "wasm",
        what: "`lang` compiles where there is no system",
        services: &[],
        run: wasm,
    },
    Step {
        name: "outside",
        what: "`lib/telemetry` compiles in a crate that is not of this workspace",
        services: &[],
        run: outside,
    },
    Step {
        name: "new-trigger",
        what: "a new trigger touches at most four files",
        services: &[],
        run: |machine, _| bench::new_trigger(machine, &["--short"]),
    },
    Step {
        name: "compat",
        what: "the predecessor's measured verdicts, and its documents where they lie beside the checkout",
        services: &[],
        run: compat,
    },
    Step {
        name: "doctests",
        what: "the examples in the documentation",
        services: &[],
        run: doctests,
    },
    Step {
        name: "dogfood",
        what: "Qualitytrace tests Qualitytrace, and finds every fault that is planted",
        services: bench::DOGFOOD_NEEDS,
        run: dogfood,
    },
    Step {
        name: "traps",
        what: "no wrong verdict on the systems of `tests/traps`",
        services: &["postgres"],
        run: traps,
    },
    Step {
        name: "tenants",
        what: "no project hurts another on the servers of `tests/tenants`",
        services: &["postgres", "nats"],
        run: tenants,
    },
    Step {
        name: "tests",
        what: "all other tests",
        services: &[
            "postgres",
            "collector",
            "keycloak",
            "sdks",
            "contract",
            "prometheus",
            "nats",
            "jaeger",
            "tempo",
            "opensearch",
            "elasticsearch",
            "clickhouse",
            "zipkin",
        ],
        run: tests,
    },
];

pub(crate) fn help() -> String {
    let lines = STEPS.iter().map(|step| format!("  {:<12} {}\n", step.name, step.what));
    format!("Steps of ci, in this order:\n{}", lines.collect::<String>())
}

pub(crate) fn run(machine: &Machine, names: &[&str]) -> Result<()> {
    let steps = chosen(names)?;
    // Two checkouts that share a target folder would run each other's programs.
    let waiting = "ci: another run builds in the same target folder; waiting for that";
    let _lock = cache::lock(&machine.target().join("ci.lock"), waiting)?;
    let note = machine.target().join("ci.checkout");
    if !is_noted(&note, &machine.root) {
        // Cargo decides freshness by file times alone, and another checkout's programs may be newer than our files.
        println!("ci: this target folder may hold programs of another checkout; they are removed");
        for target in [&[][..], &["--target", WASM]] {
            spawn::run(machine.cargo().args(["clean", "--quiet", "--workspace"]).args(target))?;
        }
        fs::write(&note, machine.root.as_os_str().as_encoded_bytes())
            .with_context(|| format!("cannot write `{}`", note.display()))?;
    }
    let mut needed: Vec<_> = steps.iter().flat_map(|step| step.services).copied().collect();
    needed.sort_unstable();
    needed.dedup();
    let whole = Stopwatch::start(machine);
    services::with(machine, &needed, |variables| {
        steps.iter().try_for_each(|step| one(machine, step, variables))
    })?;
    eprintln!("==> ci passed, {}", whole.read(machine));
    Ok(())
}

/// Whether the note in a target folder names this checkout as the last one that ran here.
fn is_noted(note: &Path, checkout: &Path) -> bool {
    fs::read(note).is_ok_and(|noted| noted == checkout.as_os_str().as_encoded_bytes())
}

fn one(machine: &Machine, step: &Step, variables: &Variables) -> Result<()> {
    eprintln!("==> {}: {}", step.name, step.what);
    let stopwatch = Stopwatch::start(machine);
    let result = (step.run)(machine, variables);
    let end = if result.is_ok() { "passed" } else { "failed" };
    eprintln!("==> {} {end}, {}", step.name, stopwatch.read(machine));
    if let Err(error) = result {
        eprintln!("{error:#}");
        bail!("ci stopped at the step `{0}`; repeat it alone with `cargo xtask ci {0}`", step.name);
    }
    Ok(())
}

/// Measures the time of a step, and the CPU time of its programs.
struct Stopwatch {
    began: Instant,
    cpu: Option<Duration>,
}

impl Stopwatch {
    fn start(machine: &Machine) -> Self {
        Self { began: (machine.clock.now)(), cpu: spawn::children_cpu() }
    }

    fn read(&self, machine: &Machine) -> String {
        let took = spawn::minutes((machine.clock.now)() - self.began);
        match self.cpu.zip(spawn::children_cpu()) {
            Some((before, now)) => format!("{took} min, {} CPU min", spawn::minutes(now - before)),
            None => format!("{took} min"),
        }
    }
}

/// Returns the named steps, or all of them; with `--without` in front all but the named.
fn chosen(names: &[&str]) -> Result<Vec<&'static Step>> {
    let (is_without, names) = match names {
        ["--without", names @ ..] if !names.is_empty() => (true, names),
        names => (false, names),
    };
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!("`{unknown}` is not a step of ci; the steps are {}", known.join(", "));
    }
    let is_chosen = |step: &&Step| names.is_empty() || names.contains(&step.name) != is_without;
    Ok(STEPS.iter().filter(is_chosen).collect())
}

/// Returns the cargo command of every step: queries are checked against the files of `generate`, whatever `DATABASE_URL` names.
fn cargo(machine: &Machine) -> Command {
    let mut cargo = machine.cargo();
    cargo.env("SQLX_OFFLINE", "true").env_remove("DATABASE_URL");
    cargo
}

fn format(machine: &Machine, _: &Variables) -> Result<()> {
    spawn::run(cargo(machine).args(["fmt", "--all", "--check"]))
        .context("mend it with `cargo fmt --all`")
}

fn compat(machine: &Machine, _: &Variables) -> Result<()> {
    let mut arguments = vec!["--verdicts", "crates/bench/data/verdicts"];
    let documents = "../shared/corpora/tracetest";
    if machine.root.join(documents).is_dir() {
        arguments.extend(["--corpus", documents]);
    }
    bench::compat(machine, &arguments)
}

fn clippy(machine: &Machine, _: &Variables) -> Result<()> {
    spawn::run(cargo(machine).args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn docs(machine: &Machine, _: &Variables) -> Result<()> {
    let mut cargo = cargo(machine);
    // Examples enable the features of tests, and so reuse everything that clippy has compiled.
    cargo.args(["doc", "--workspace", "--no-deps", "--lib", "--bins", "--examples"]);
    spawn::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

fn tidy(machine: &Machine, _: &Variables) -> Result<()> {
    spawn::run(cargo(machine).args(["test", "--quiet", "-p", "xtask", "--test", "tidy"]))
}

fn deny(machine: &Machine, _: &Variables) -> Result<()> {
    cargo_deny(machine, &["licenses", "bans", "sources"])
}

/// `cargo xtask advisories`: checks the dependencies for known vulnerabilities. It needs the network, and is no step of CI: a new
/// advisory would break a build that changed nothing.
pub(crate) fn advisories(machine: &Machine) -> Result<()> {
    cargo_deny(machine, &["advisories"])
}

fn cargo_deny(machine: &Machine, checks: &[&str]) -> Result<()> {
    let mut deny = machine.command(tools::DENY.bin(machine)?.join("cargo-deny"));
    spawn::run(deny.args(["--workspace", "check", "--hide-inclusion-graph"]).args(checks))
}

fn wasm(machine: &Machine, _: &Variables) -> Result<()> {
    let installed = spawn::output(Command::new("rustup").args(["target", "list", "--installed"]));
    // Without rustup the user manages the toolchain, and cargo reports a missing target.
    if installed.is_ok_and(|installed| installed.lines().all(|target| target != WASM)) {
        spawn::run(Command::new("rustup").args(["target", "add", WASM]))?;
    }
    spawn::run(cargo(machine).args(["check", "-p", "lang", "--target", WASM]))
}

fn outside(machine: &Machine, _: &Variables) -> Result<()> {
    const MANIFEST: &str = "xtask/outside/Cargo.toml";
    let mut cargo = cargo(machine);
    cargo.args(["check", "--locked", "--manifest-path", MANIFEST, "--target-dir"]);
    spawn::run(cargo.arg(machine.target())).context(
        "where only its `Cargo.lock` is old: copy that of the workspace over it, and build there without `--locked`",
    )
}

fn doctests(machine: &Machine, variables: &Variables) -> Result<()> {
    spawn::run(
        cargo(machine).args(["test", "--workspace", "--doc"]).envs(variables.iter().cloned()),
    )
}

fn dogfood(machine: &Machine, variables: &Variables) -> Result<()> {
    bench::dogfood(machine, &[], variables)?;
    bench::dogfood(machine, &["--faults"], variables)
}

/// Each case starts its own Postgres, so that none sees the rows of another.
fn traps(machine: &Machine, variables: &Variables) -> Result<()> {
    played(machine, "tests/traps/run.py", &["--jobs", TRAPS_AT_ONCE], variables)
}

fn tenants(machine: &Machine, variables: &Variables) -> Result<()> {
    const PROOF: &str = "tests/tenants/prove.py";
    played(machine, "tests/tenants/run.py", &[], variables)?;
    played(machine, PROOF, &["--short"], variables)?;
    played(machine, PROOF, &["--short", "--replicas", "3"], variables)
}

/// Runs cases with the program as it is built for tests.
fn played(machine: &Machine, cases: &str, arguments: &[&str], variables: &Variables) -> Result<()> {
    let program = programs::build(machine)?.join(programs::PRODUCT);
    let mut python = machine.command("python3");
    python.arg(machine.root.join(cases)).args(arguments).envs(variables.iter().cloned());
    spawn::run(python.env("QUALITYTRACE", program))
}

fn tests(machine: &Machine, variables: &Variables) -> Result<()> {
    packages::browser(machine)?;
    // Tests run the next version as a program. It is built first: the programs of this version replace it.
    programs::next_version(machine)?;
    // Tests run examples as programs, and `--all-targets` alone builds examples as tests.
    programs::build(machine)?;
    let mut cargo = cargo(machine);
    cargo.args(["test", "--workspace", "--all-targets", "--no-fail-fast"]);
    spawn::run(cargo.envs(variables.iter().cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_cpu_time_of_ended_programs_is_counted() {
        let before = spawn::children_cpu().expect("this is Linux");
        let loops = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        spawn::run(Command::new("sh").args(["-c", loops])).expect("it counts");
        let after = spawn::children_cpu().expect("this is Linux");
        assert!(after > before, "{before:?} {after:?}");
    }

    #[test]
    fn named_steps_run_in_the_order_of_the_table() {
        let names: Vec<_> =
            chosen(&["wasm", "format"]).expect("both exist").iter().map(|step| step.name).collect();
        assert_eq!(names, ["format", "wasm"]);
        assert_eq!(chosen(&[]).expect("all").len(), STEPS.len());
    }

    #[test]
    fn all_steps_but_the_named_run_and_they_exist() {
        let names: Vec<_> = chosen(&["--without", "tests", "dogfood"])
            .expect("both exist")
            .iter()
            .map(|step| step.name)
            .collect();
        assert_eq!(names.len(), STEPS.len() - 2);
        assert!(!names.contains(&"tests") && !names.contains(&"dogfood"));
        assert!(chosen(&["--without", "fmt"]).is_err() && chosen(&["--without"]).is_err());
    }

    #[test]
    fn a_target_folder_belongs_to_the_checkout_that_its_note_names() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let note = folder.path().join("ci.checkout");
        assert!(!is_noted(&note, Path::new("/a")), "nobody is known to have been here");
        fs::write(&note, "/a").expect("written");
        assert!(is_noted(&note, Path::new("/a")) && !is_noted(&note, Path::new("/a/b")));
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_known_ones() {
        let words = chosen(&["fmt"]).err().expect("there is no such step").to_string();
        assert_eq!(
            words,
            "`fmt` is not a step of ci; the steps are format, web, clippy, docs, tidy, generated, deny, wasm, outside, new-trigger, compat, doctests, dogfood, traps, tenants, tests"
        );
    }
}
