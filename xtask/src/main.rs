//! The development commands: `ci`, `generate`, `services`, `web`, `accept`, `advisories`, `tools`, `next-version`, `bench`,
//! `prove`, `dogfood`, `chaos`, `compat`, `release`.
//!
//! This program only spawns others: they implement the checks, generators and servers; it defines their order and the messages.
//! It has almost no dependencies, so that it builds on a bare machine within seconds. Deliberately absent: any knowledge of
//! Qualitytrace itself, and anything that a plain `cargo` command already does well.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what this program does is seen by what it prints"
)]

mod accept;
mod bench;
mod cache;
mod ci;
mod generate;
mod machine;
mod old_version;
mod packages;
mod programs;
mod release;
mod services;
mod spawn;
mod tools;
mod web;

use std::{env, process::ExitCode, thread, time::Instant};

use anyhow::{Result, bail};

use machine::{Clock, Machine};

const HELP: &str = "\
Usage: cargo xtask COMMAND [ARGUMENT…]

  ci [STEP…]                        everything that must hold before a merge, or just the named steps
  ci --without STEP…                all steps but the named ones
  generate [NAME…]                  write the generated files anew, or just the named ones
  services up|down|status [NAME…]   real servers for the tests, on free loopback ports, one set per checkout
  services env [NAME…]              how tests find them: eval \"$(cargo xtask services env)\"
  next-version                      build the next version, which tests of an upgrade need, beside this one
  web [build]                       check and build the web page, which the next build of the program packs
  accept                            move what golden tests proposed over the files; read the difference first
  advisories                        known weaknesses of what we depend on, from the network; every night and before a release
  tools [NAME…]                     build the cargo tools that the others use, and print where they are
  bench NAME                        measure, in release mode, with the services that it needs up: decode, lang,
                                    layout, server, stores (--short), telemetry (--short, --only GROUP, --faults), thread
  bench trace-view                  frames and first waterfall of the page's trace view in a real browser, up to a million spans
  bench replicas [--only GROUP]     servers over NATS beside bare engines and one server: fire, verdict, workers, one, door, units;
                                    --short does less, --page writes the figures of `units` into docs/scale.md
  prove lang [--short]              the long form of the language's proofs by chance, in release mode
  prove referee [--cases N]         the language beside a second reading of its reference; --seed N plays one case again
  prove kill [KILLS]                kills the server with runs in flight, 50 times: every run ends, none is fired twice; with --nats
                                    the runs of a killed server are decided
  prove upgrade [--seconds N]       every process of two of each role is replaced by one of the next version, under 50 runs a second
                                    (--runs-per-second N): nothing is lost, doubled or wrong; --nodes N of NATS
  prove upgrade --migration [RUNS]  what other connections notice of the migration of a million finished runs
  prove release-upgrade --from REF  the server of a commit or tag is killed, this one goes on with its database and reads every run,
                                    and the old one reads them again; builds that commit once, in ten minutes
  prove bus [RUNS] [--nodes N]      two servers over NATS: spans of each trace to both, half of 1,000 runs decided by absence
  prove plays [PLAYS]               the decisions of the bus over NATS and about leases on virtual clocks, a million times,
                                    and planted faults
  prove tenants [--seconds N]       one project abuses each shared resource for a minute, and another must not notice:
                                    verdicts, leaks, latency beside a bare sink; --short, --only NAME…, --list;
                                    --replicas N: servers over one NATS, whose files are searched too
  prove dogfood                     repeats that suite on a busy machine until 1,000 verdicts are in
  prove trigger                     a new trigger touches four files, and its tests pass and fail as they should
  dogfood [--keep DIR]              Qualitytrace tests Qualitytrace: `tests/dogfood/run.sh`, and what its traces must
                                    show; reports, traces and trend stay in DIR
  dogfood --faults [NAME]           plants faults into the server, one at a time, and names what finds each
  chaos [--seed N] [--short]        six servers behind a load balancer, three NATS nodes and Postgres, killed, suspended, restarted
                                    and cut off for ten minutes at 50 runs a second: nothing lost, nothing fired twice, no wrong
                                    verdict. --rate RUNS, --seconds N, --history FILE, --keep DIR (logs), --check FILE, --plant FAULT. The seed
                                    repeats the schedule of the faults, not how they interleave with the runs
  release plan|build|package|verify|publish   every artefact of a release, and checks that use each of them; flags are below
  compat --corpus DIR               compile the predecessor's documents in a folder as they are
  compat --verdicts DIR             compare with the predecessor's measured answers in a folder

What `ci`, `generate` and `bench` start they stop at their end; interrupted (Ctrl-C), they leave it running, and
`cargo xtask services down` stops it.

What is built or downloaded lives outside the checkout: in $QUALITYTRACE_CACHE, else $XDG_CACHE_HOME/qualitytrace,
else ~/.cache/qualitytrace. Deleting that folder costs only the minutes to fill it again; stop the services first.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match this_machine().and_then(|machine| dispatch(&machine, &arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(machine: &Machine, arguments: &[&str]) -> Result<()> {
    match arguments {
        [] | ["help" | "--help" | "-h", ..] | [_, "--help" | "-h", ..] => {
            print!(
                "{HELP}\n{}\n{}\n{}\n{}\n{}",
                ci::help(),
                generate::help(),
                services::help(),
                tools::help(),
                release::help()
            );
            Ok(())
        }
        ["ci", steps @ ..] => ci::run(machine, steps),
        ["generate", names @ ..] => generate::run(machine, names),
        ["services", "up", names @ ..] => services::up(machine, names),
        ["services", "down", names @ ..] => services::down(machine, names),
        ["services", "env", names @ ..] => services::env(machine, names),
        ["services", "status", names @ ..] => services::status(machine, names),
        ["web", words @ ..] => web::run(machine, words),
        ["accept"] => accept::run(machine),
        ["release", rest @ ..] => release::run(machine, rest),
        ["advisories"] => ci::advisories(machine),
        ["tools", names @ ..] => tools::run(machine, names),
        ["bench", "trace-view"] => web::bench(machine),
        ["bench", name, rest @ ..] => bench::run(machine, name, rest),
        ["prove", rest @ ..] => bench::prove(machine, rest),
        ["chaos", rest @ ..] => bench::run(machine, "chaos", rest),
        ["next-version"] => {
            programs::next_version(machine).and_then(|()| programs::build(machine)).map(drop)
        }
        ["compat", rest @ ..] => bench::compat(machine, rest),
        ["dogfood", rest @ ..] => services::with(machine, bench::DOGFOOD_NEEDS, |variables| {
            bench::dogfood(machine, rest, variables)
        }),
        _ => bail!(
            "`cargo xtask {}` is not a command; `cargo xtask --help` lists them",
            arguments.join(" ")
        ),
    }
}

/// Reads the environment and the clock; no other function does.
#[expect(
    clippy::disallowed_methods,
    reason = "this is main: from here on both are handed down as a `Machine`"
)]
fn this_machine() -> Result<Machine> {
    let clock = Clock { now: Instant::now, sleep: thread::sleep };
    Machine::new(env::vars_os().collect(), clock)
}
