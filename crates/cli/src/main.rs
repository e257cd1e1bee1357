//! `qualitytrace`: the only binary.
//!
//! Here external input enters: arguments, environment, clock, randomness. All other code gets it as parameters.
//! Results go to stdout, progress and errors to stderr. Deliberately absent: SQL, and any knowledge of how a verdict
//! is decided.

mod args;
mod beside;
mod check;
mod configuration;
mod contexts;
mod demo;
mod demo_hook;
mod discovery;
mod doctor;
mod documents;
mod exit;
mod explain;
mod files;
mod format;
mod init;
mod learn;
mod lint;
mod listing;
mod log;
mod login;
mod migrate;
mod mutate;
mod new;
mod notify;
mod observe;
mod project;
mod recording;
#[cfg(test)]
mod reference;
mod remote;
mod reports;
mod run;
mod serve;
mod shapes;
mod sockets;
mod stored;
mod stores;
mod terminal;
mod token;
mod trust;
mod variables;
mod version;
mod yaml;

use std::{
    env,
    ffi::OsStr,
    fs,
    io::IsTerminal,
    path::PathBuf,
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::{ArgMatches, CommandFactory, FromArgMatches, error::ErrorKind};
use model::{ErrorCode, Timestamp, World};
use server::config::Environment;
use source::Colour;
use tokio::runtime::{self, Runtime};

use args::{
    Args, Command, OfServer, ProjectCommand, ProjectFileArgs, SchemaOf, SessionCommand,
    ShapeCommand, StoreCommand,
};
use exit::Exit;
use serve::Outside;
use terminal::{Interactivity, Terminal};
use trust::Consent;

/// It returns the memory of large requests sooner than the system's allocator: `docs/adr/0034-allocator.md`.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The name of the program.
const NAME: &str = "qualitytrace";

fn main() -> ExitCode {
    let terminal = Terminal::new(colour(), width(), watched());
    let typed_words: Vec<_> = env::args_os().collect();
    let mut program = args::command(is_empty);
    if typed_words.iter().any(|word| word == "-h") {
        program = args::shortened(program);
    }
    let here = (typed_words, &*folder());
    let command = project::prepare(program, here, &environment().collect(), &terminal);
    let matches = match command.and_then(|command| typed(command, &terminal)) {
        Ok(matches) => matches,
        Err(exit) => return exit.into(),
    };
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Some(reason) = args::without_effect(&matches) {
        terminal.error(ErrorCode::Usage, reason);
        return Exit::Refused.into();
    }
    // A command that ends early returns its exit as an error.
    let (Ok(exit) | Err(exit)) = execute(args.command, &args.project_file, &terminal);
    exit.into()
}

/// Reads what was typed. Help and the version end the program.
fn typed(command: clap::Command, terminal: &Terminal) -> Result<ArgMatches, Exit> {
    command.try_get_matches().map_err(|error| {
        if !error.use_stderr()
            || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        {
            error.exit();
        }
        terminal.usage(&error);
        Exit::Refused
    })
}

fn execute(
    command: Command,
    project_file: &ProjectFileArgs,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let world = World::new(now, random);
    let consent = || Consent::new(project_file.trust, &environment().collect());
    let work = || runtime("work");
    match command {
        Command::Run(args) => on(work(), terminal, |work| {
            work.block_on(run_tests(&args, (world, consent()), terminal))
        }),
        Command::Check(args) => check(&args, world, &consent(), terminal),
        Command::Store(StoreCommand::Test(args)) => on(work(), terminal, |work| {
            work.block_on(stored::test(
                &args,
                environment().collect(),
                &consent(),
                (world, terminal),
            ))
        }),
        Command::Learn => learn::learn(terminal),
        Command::Lint(args) => lint::lint(&args, &world, terminal),
        Command::Shape(command) => on(work(), terminal, |work| {
            work.block_on(shape(&command, &environment().collect(), terminal))
        }),
        Command::Mutate(args) => mutate::mutate(&args, environment().collect(), &world, terminal),
        Command::Fmt(args) => format::fmt(&args, terminal),
        Command::Explain(args) => explain::explain(&args, terminal),
        Command::Schema(args) => schema(&args, terminal),
        Command::Completion(args) => completion(&args, terminal),
        Command::Project(ProjectCommand::Show(args)) => {
            let profile = project_file.profile.as_deref();
            let here = (&args::command(is_empty), &*folder(), profile);
            project::show(&args, here, &environment().collect(), terminal)
        }
        Command::Man(args) => man(&args, terminal),
        Command::Version(args) => Ok(version::version(&args, terminal)),
        Command::OfServer(command) => on(work(), terminal, |work| {
            work.block_on(of_server(&command, &environment().collect(), world, terminal))
        }),
        Command::Serve(args) => on(work(), terminal, |work| serve(&args, world, work, terminal)),
        Command::Migrate(args) => on(work(), terminal, |work| {
            work.block_on(migrate::migrate(&args, &environment().collect(), terminal))
        }),
        Command::Init(args) => init::init(&args, terminal),
        Command::New(args) => on(work(), terminal, |work| {
            work.block_on(new::new(&args, environment().collect(), world, terminal))
        }),
        Command::Doctor(args) => on(work(), terminal, |work| {
            let (environment, folder) = (environment().collect(), &*folder());
            let surroundings = doctor::Surroundings { environment, folder, world, terminal };
            work.block_on(doctor::doctor(&args, surroundings, terminal))
        }),
        Command::Demo(args) => on(work(), terminal, |work| {
            work.block_on(demo::demo(&args, environment().collect(), world, terminal))
        }),
        Command::DemoService(_) => {
            on(work(), terminal, |work| work.block_on(demo::service(world, terminal)))
        }
        Command::Config(args) => observe::config(&args, &environment().collect(), terminal),
        Command::Telemetry(args) => on(work(), terminal, |work| {
            work.block_on(observe::telemetry(&args, &environment().collect(), terminal))
        }),
    }
}

/// Runs tests, here or on a server.
async fn run_tests(
    args: &args::RunArgs,
    (world, consent): (World, Consent),
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    if args.is_remote() {
        remote::run(args, &environment().collect(), terminal).await
    } else {
        run::run(args, environment().collect(), (world, consent), terminal).await
    }
}

/// Runs a server. Signals and reloads are handled on threads that telemetry never blocks: they are the way to stop it.
fn serve(
    args: &args::Serve,
    world: World,
    work: &Runtime,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let environment = environment().collect();
    let outside = Outside { environment, world, work: work.handle().clone() };
    telemetry::suppress_this_thread();
    on(control_runtime(), terminal, |calm| calm.block_on(serve::serve(args, outside, terminal)))
}

/// Prints the script that completes commands in a shell.
fn completion(args: &args::Completion, terminal: &Terminal) -> Result<Exit, Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), NAME, &mut script);
    terminal.report(&String::from_utf8_lossy(&script));
    Ok(Exit::Passed)
}

/// Writes manual pages in roff.
fn man(args: &args::Man, terminal: &Terminal) -> Result<Exit, Exit> {
    // Pages of all targets and commits of a version are the same.
    let program = Args::command().long_version(version::SHORT);
    let mut page = Vec::new();
    let written = match &args.output {
        None => clap_mangen::Man::new(program).render(&mut page),
        Some(folder) => {
            fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(program, folder))
        }
    };
    written.map_err(|error| {
        terminal.error(
            ErrorCode::FileUnwritable,
            format_args!("the manual pages cannot be written: {error}"),
        );
        Exit::Refused
    })?;
    terminal.bytes(&page);
    Ok(Exit::Passed)
}

/// Prints the JSON schema of documents.
fn schema(args: &args::Schema, terminal: &Terminal) -> Result<Exit, Exit> {
    terminal.report(&match args.of {
        SchemaOf::Tests => lang::schema(),
        SchemaOf::Config => format!("{:#}\n", server::config::schema()),
        SchemaOf::Project => format!("{:#}\n", project::schema()),
    });
    Ok(Exit::Passed)
}

/// Judges a trace of a file, or one that a trace store has.
fn check(
    args: &args::Check,
    world: World,
    consent: &Consent,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let environment = environment().collect();
    match (&args.trace, args.trace_id) {
        (None, Some(id)) => on(runtime("work"), terminal, |work| {
            work.block_on(stored::check(args, id, (environment, consent), (world, terminal)))
        }),
        _ => check::check(args, environment, &world, terminal),
    }
}

/// Runs a command on the shape of a trace.
async fn shape(
    command: &ShapeCommand,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    match command {
        ShapeCommand::Record(args) => shapes::record(args, environment, terminal).await,
        ShapeCommand::Diff(args) => shapes::diff(args, environment, terminal).await,
        ShapeCommand::Accept(args) => shapes::accept(args, environment, terminal).await,
    }
}

/// Runs a command that sends requests to a server, or works for one.
async fn of_server(
    command: &OfServer,
    environment: &Environment,
    world: World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    match command {
        OfServer::Apply(args) => remote::apply(args, environment, terminal).await,
        OfServer::Get(args) => remote::get(args, environment, terminal).await,
        OfServer::List(args) => remote::list(args, environment, terminal).await,
        OfServer::Delete(args) => remote::delete(args, environment, terminal).await,
        OfServer::Export(args) => remote::export(args, environment, terminal).await,
        OfServer::Trend(args) => remote::trend(args, environment, terminal).await,
        OfServer::History(args) => remote::history(args, environment, terminal).await,
        OfServer::Runs(command) => remote::runs(command, environment, world, terminal).await,
        OfServer::Audit(args) => remote::audit(args, environment, terminal).await,
        OfServer::Logout(args) => login::logout(args, environment, terminal),
        OfServer::Whoami(args) => login::whoami(args, environment, terminal).await,
        OfServer::Context(command) => login::context(command, environment, terminal),
        OfServer::Login(args) => login::login(args, environment, terminal).await,
        OfServer::Session(SessionCommand::List(args)) => {
            remote::sessions(args, environment, terminal).await
        }
        OfServer::Session(SessionCommand::End(args)) => {
            remote::end_sessions(args, environment, terminal).await
        }
        OfServer::Status(args) => remote::status(args, environment, terminal).await,
        OfServer::Open(args) => remote::open(args, environment, terminal),
        OfServer::Api(args) => remote::api(args, environment, terminal).await,
        OfServer::Token(args) => token::token(args, environment, world, terminal).await,
    }
}

/// Runs a task on a runtime. The shutdown does not wait for threads that block.
fn on(
    mut builder: runtime::Builder,
    terminal: &Terminal,
    task: impl FnOnce(&Runtime) -> Result<Exit, Exit>,
) -> Result<Exit, Exit> {
    let runtime = builder.build().map_err(|error| {
        terminal.error(ErrorCode::Internal, format_args!("no threads to run on: {error}"));
        Exit::Inconclusive
    })?;
    let exit = task(&runtime);
    runtime.shutdown_background();
    exit
}

/// Returns the wall clock time. It ends in 2554, as in OTLP.
#[expect(clippy::disallowed_methods, reason = "this is where the clock enters")]
fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}

/// Returns random bytes of the operating system.
fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    // Without randomness there are no keys and no ids: all further results would be untrustworthy.
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    bytes
}

fn runtime(name: &str) -> runtime::Builder {
    let mut builder = runtime::Builder::new_multi_thread();
    builder.enable_all().thread_name(name);
    builder
}

/// Returns the builder of the control runtime. Its threads record no telemetry, so that a full telemetry buffer never blocks
/// them. It has two threads, so that a large export does not block a probe.
fn control_runtime() -> runtime::Builder {
    let mut builder = runtime("calm");
    builder.worker_threads(2).on_thread_start(telemetry::suppress_this_thread);
    builder
}

/// Returns the environment variables: for `${env:NAME}` in a local run, and as overrides of a configuration.
#[expect(clippy::disallowed_methods, reason = "this is where the environment enters")]
fn environment() -> impl Iterator<Item = (String, String)> {
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

fn colour() -> Colour {
    // The logs of a CI pipeline are read as text, even if it emulates a terminal.
    let asked_not_to = is_set("NO_COLOR") || is_set("CI");
    if std::io::stdout().is_terminal() && !asked_not_to { Colour::Always } else { Colour::Never }
}

/// Returns the working folder; an empty path where it is gone.
fn folder() -> PathBuf {
    env::current_dir().unwrap_or_default()
}

/// Returns the columns of stdout: those that `COLUMNS` states, or of the terminal.
#[expect(clippy::disallowed_methods, reason = "this is where the environment enters")]
fn width() -> Option<usize> {
    let stated = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let columns = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col);
    stated.or_else(|| columns().map(usize::from)).filter(|width| *width > 0)
}

/// Returns whether a person watches the progress on a terminal.
fn watched() -> Interactivity {
    if std::io::stderr().is_terminal() && !is_set("CI") {
        Interactivity::Yes
    } else {
        Interactivity::No
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where the environment enters")]
fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

#[expect(clippy::disallowed_methods, reason = "this is where the environment enters")]
fn is_empty(name: &OsStr) -> bool {
    env::var_os(name).is_some_and(|value| value.is_empty())
}
