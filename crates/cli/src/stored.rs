//! `check --store` and `store test`: what a trace store can judge, a trace that it has, and whether it can be queried.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use drivers::store::{StoreDialer, StoreProfile, profiles};
use lang::{Plan, TraceStore};
use model::{ErrorCode, StoreQueries, TraceId, World};

use crate::{
    args::{self, StoreTest},
    beside::Beside,
    discovery::{self, CheckedDocuments},
    exit::Exit,
    learn,
    reports::Reports,
    run::{self, Line, Open, ProgressLevel, Session},
    stores,
    terminal::Terminal,
    trust::{self, Consent},
    variables,
};

/// Judges a trace that the stores of the tests have. Nothing is fired.
pub(crate) async fn check(
    args: &args::Check,
    id: TraceId,
    (environment, consent): (Vec<(String, String)>, &Consent),
    (world, terminal): (World, &Terminal),
) -> Result<Exit, Exit> {
    let mut reports = Reports::new(&args.reports, terminal)?;
    if args.seed.is_some() {
        terminal.error(ErrorCode::Usage,
            "`--seed` is for a trace of a file: a trace that a store has is judged like a new run, by a seed of its own",
        );
        return Err(Exit::Refused);
    }
    let checked = discovery::checked(&args.tests, terminal)?;
    let mut plans = checked.with_gates(&args.tests.filter, terminal)?;
    let vars = variables::read(&args.variables, environment.clone(), terminal)?;
    for plan in &plans {
        let named = (&checked.read.beside, &*args.stores);
        for store in stores::meant(plan, named).unwrap_or_default() {
            trust::check_store(store, &vars, (consent, terminal))?;
        }
    }
    for plan in &mut plans {
        let configs = stores::configs(plan, (&checked.read.beside, &args.stores), &vars);
        let configs = configs.and_then(|configs| match configs.is_empty() {
            false => Ok(configs),
            true => Err(format!(
                "the test `{}` queries no trace store, so that `--trace-id` names no trace: name a store by `--store`, or a file \
                 by `--trace`",
                plan.name
            )),
        });
        let configs = configs.map_err(|mistake| refuse(&mistake, terminal))?;
        let plan = Arc::make_mut(plan);
        plan.query(configs);
        plan.judge_trace(id);
    }
    let session = open(environment, world, terminal).await?;
    let checked = session.check_stores(plans.iter().map(|plan| &**plan)).await;
    checked.map_err(|error| terminal.refuse(&error))?;
    reports.expect(plans.len());
    let mut exits = Vec::new();
    for plan in &plans {
        let line = Line::begin(&plan.name, terminal, ProgressLevel::Tests);
        let finished = session.run(plan, &vars, &line, None).await;
        drop(line);
        match finished {
            Ok((finished, _)) => {
                exits.push(finished.outcome.verdict.into());
                reports.add(finished.outcome, finished.trace.as_deref());
            }
            Err(error) => exits.push(terminal.refuse(&error)),
        }
    }
    reports.finish()?;
    Ok(Exit::over(exits))
}

async fn open(
    environment: Vec<(String, String)>,
    world: World,
    terminal: &Terminal,
) -> Result<Session, Exit> {
    let learned = learn::known(terminal);
    // No span is expected here, and a session has a receiver.
    let receiver = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
    let open = Open::listen(receiver, learned, environment, world).await;
    Ok(open.map_err(|error| terminal.refuse(&error))?.session())
}

/// Warns about statements that the stores of the tests cannot judge, and about timeouts that end before a store shows a span.
pub(crate) fn warn(
    CheckedDocuments { read, tests }: &CheckedDocuments,
    named: &[String],
    terminal: &Terminal,
) -> Result<(), Exit> {
    for plan in tests.iter().map(|test| &*test.plan) {
        match stores::meant(plan, (&read.beside, named)) {
            Ok(stores) => stores.iter().for_each(|(_, store)| warn_about(plan, store, terminal)),
            // A store that the command names has to be there; that of a test may be in another file.
            Err(mistake) if !named.is_empty() => return Err(refuse(&mistake, terminal)),
            Err(mistake) => terminal.line(&format!("warning: {mistake}")),
        }
    }
    Ok(())
}

fn warn_about(plan: &Plan, store: &TraceStore, terminal: &Terminal) {
    let Some(profile) = profile(store) else { return };
    let name = store.key();
    for beyond in plan.beyond(profile.lacks) {
        let (place, words) = (&beyond.place, beyond.detail.words());
        terminal.line(&format!(
            "warning: {}:{}:{}: `{}` needs {words}, which the trace store `{name}` does not keep: it is inconclusive there",
            place.file, place.line, place.column, beyond.statement
        ));
    }
    let lag = store.lag.unwrap_or(profile.lag);
    let timeout = plan.settle(lag).timeout;
    if timeout < lag {
        terminal.line(&format!(
            "warning: the test `{}` waits {timeout:?} for its trace, and the trace store `{name}` may show a span {lag:?} after it has \
             it: raise `settle.timeout`",
            plan.name
        ));
    }
}

/// Returns what the settlement of a file has that holds spans of these stores.
pub(crate) fn sources(
    named: &[String],
    beside: &Beside,
    terminal: &Terminal,
) -> Result<Vec<StoreQueries>, Exit> {
    let source = |name: &String| {
        let (_, store) =
            stores::by_name(beside, name).map_err(|mistake| refuse(&mistake, terminal))?;
        let lacks = profile(store).map_or_else(Vec::new, |profile| profile.lacks.to_vec());
        Ok(StoreQueries { store: store.key().to_owned(), lag_ns: 0, lacks })
    };
    named.iter().map(source).collect()
}

fn profile(store: &TraceStore) -> Option<&'static StoreProfile> {
    let driver = store.driver()?;
    profiles().find_map(|(kind, profile)| (kind == driver).then_some(profile))
}

/// Tries out a store, step by step.
pub(crate) async fn test(
    args: &StoreTest,
    environment: Vec<(String, String)>,
    consent: &Consent,
    (world, terminal): (World, &Terminal),
) -> Result<Exit, Exit> {
    let beside = discovery::beside(&run::paths(&args.paths), terminal)?;
    let found = stores::by_name(&beside, &args.name);
    let (file, store) = found.map_err(|mistake| refuse(&mistake, terminal))?;
    if !store.is_queried() {
        terminal.result(&format!(
            "`{}` is not queried: its spans come by OTLP, to the address that `run` prints",
            store.key()
        ));
        return Ok(Exit::Passed);
    }
    let vars = variables::read(&args.variables, environment.clone(), terminal)?;
    trust::check_store((file, store), &vars, (consent, terminal))?;
    let config =
        stores::config(file, store, &vars).map_err(|mistake| refuse(&mistake, terminal))?;
    let unknown = TraceId::from_random(world.random());
    let steps = StoreDialer::new(&environment, None).probe(&config, unknown, world.now()).await;
    let mut exit = Exit::Passed;
    for step in &steps {
        let (mark, text) = match &step.result {
            Ok(found) => ("ok", found),
            Err(reason) => ("failed", reason),
        };
        if step.result.is_err() {
            exit = Exit::Refused;
        }
        terminal.result(&format!("{:<14} {mark:<7} {text}", step.name));
    }
    Ok(exit)
}

fn refuse(mistake: &str, terminal: &Terminal) -> Exit {
    terminal.error(ErrorCode::StoreInvalid, mistake);
    Exit::Refused
}
