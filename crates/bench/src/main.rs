//! `cargo xtask bench NAME`: prints a table, and JSON as its last line.

use std::process::ExitCode;

use anyhow::{Result, bail};
use bench::{
    chaos, columns, compat, decode, dogfood, ingest, kill, lang, layout, leasing, page, plays,
    replicas, run as running, server, settle, shared, stores, table, telemetry, thread, upgrade,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(text) => {
            say(&text);
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<String> {
    let (name, rest) = arguments.split_first().map_or(("", arguments), |(name, rest)| (name, rest));
    // Subprocesses, of which a benchmark compares several or kills some, choose a runtime themselves; `cargo xtask compat` and
    // `prove` need none.
    match (name, rest) {
        ("telemetry:emit", [order]) => return telemetry::emit(order),
        ("telemetry:fault", [order]) => return telemetry::faults::child(order),
        ("settle:process", [order]) => return settle::real::child(order),
        ("telemetry:cost", [order]) => return telemetry::cost::measure(order),
        ("columns:make", [spans]) => return columns::make(spans),
        ("ingest:receive", [kind]) => return ingest::receive(kind),
        ("lang:judge", [size]) => return lang::judge(size),
        ("lang:limit", [case, rest @ ..]) => {
            return lang::limit(case, rest.first().map(String::as_str));
        }
        ("lang:judging" | "lang:compiling", [times]) => return lang::times(name, times),
        ("run:system", [kind, rest @ ..]) => return serve(kind, rest),
        ("chaos", rest) => return prove_chaos(rest),
        ("compat", modes) => return compat::run(modes),
        ("prove", [what, rest @ ..]) if what == "lang" => {
            return Ok(table::render("prove lang", &lang::prove::measure(rest)?));
        }
        ("prove", [what, rest @ ..]) if what == "referee" => return lang::referee::prove(rest),
        ("prove", [what, rest @ ..]) if what == "ingest" => return prove_ingest(rest),
        ("prove", [what, rest @ ..]) if what == "kill" => return prove_kill(rest),
        ("prove", [what, rest @ ..]) if what == "bus" => return prove_bus(rest),
        ("prove", [what, rest @ ..]) if what == "upgrade" => return prove_upgrade(rest),
        ("prove", [what, rest @ ..]) if what == "release-upgrade" => {
            return prove_release_upgrade(rest);
        }
        ("prove", [what, rest @ ..]) if what == "plays" => {
            return Ok(table::render("prove plays", &plays::measure(rest)?));
        }
        ("prove", [what]) if what == "dogfood" => return prove_dogfood(),
        ("prove", [what, rest @ ..]) if what == "settle" => return settle::prove(rest),
        _ => {}
    }
    if let Some(kind) = name.strip_prefix("layout:") {
        return Ok(layout::fill(kind)?.to_string());
    }
    if let (Some(kind), [spans]) = (name.strip_prefix("decode:"), rest) {
        return decode::decode(kind, spans);
    }
    measure(name, rest)
}

#[tokio::main]
async fn serve(kind: &str, rest: &[String]) -> Result<String> {
    running::serve(kind, rest).await
}

#[tokio::main]
async fn prove_ingest(rest: &[String]) -> Result<String> {
    let rows = ingest::prove::measure(&std::env::current_exe()?, rest).await?;
    Ok(table::render("prove ingest", &rows))
}

#[tokio::main]
async fn prove_kill(rest: &[String]) -> Result<String> {
    Ok(table::render("prove kill", &kill::measure(rest).await?))
}

#[tokio::main]
async fn prove_bus(rest: &[String]) -> Result<String> {
    Ok(table::render("prove bus", &shared::measure(rest).await?))
}

#[tokio::main]
async fn prove_chaos(rest: &[String]) -> Result<String> {
    chaos::measure(rest).await
}

#[tokio::main]
async fn prove_upgrade(rest: &[String]) -> Result<String> {
    Ok(table::render("prove upgrade", &upgrade::measure(rest).await?))
}

#[tokio::main]
async fn prove_release_upgrade(rest: &[String]) -> Result<String> {
    let rows = upgrade::release::measure(rest).await?;
    Ok(table::render("prove release-upgrade", &rows))
}

#[tokio::main]
async fn prove_dogfood() -> Result<String> {
    Ok(table::render("prove dogfood", &dogfood::prove().await?))
}

#[tokio::main]
async fn measure(name: &str, rest: &[String]) -> Result<String> {
    let rows = match name {
        "columns" => columns::measure().await?,
        "decode" => decode::measure().await?,
        "dogfood" => dogfood::run(rest).await?,
        "ingest" => ingest::measure(rest).await?,
        "lang" => lang::measure().await?,
        "layout" => layout::measure().await?,
        "leasing" => leasing::measure(rest).await?,
        "page" => page::measure(rest).await?,
        "replicas" => replicas::measure(rest).await?,
        "run" => running::measure(rest).await?,
        "server" => server::measure(rest).await?,
        "stores" => stores::measure(rest).await?,
        "telemetry" => telemetry::measure(&std::env::current_exe()?, rest).await?,
        "thread" => thread::measure().await?,
        _ => {
            bail!(
                "there is no bench `{name}`; there are: columns, decode, ingest, lang, layout, leasing, page, replicas, run, server, stores, telemetry, thread"
            )
        }
    };
    Ok(table::render(name, &rows))
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn say(text: &str) {
    println!("{text}");
}
