//! The command line arguments.

mod connection;
mod format;
mod help;
mod project;
mod ready;
mod report;
mod run;
mod runs;
#[cfg(test)]
mod schemas;
mod server;
#[cfg(test)]
mod server_commands;
mod shared;
mod start;
mod store;
mod token;
mod traces;
pub(crate) mod typed;

use std::{ffi::OsStr, net::SocketAddr, path::PathBuf};

use ::server::config::ServerRoles;
use clap::{ArgAction, CommandFactory, Parser, Subcommand, ValueEnum, builder::BoolishValueParser};
use clap_complete::Shell;
use model::TraceId;

use crate::{demo, version};

pub(crate) use connection::Connection;
pub(crate) use format::{FormatArgs, OutputFormat, TextFormat};
pub(crate) use help::shortened;
pub(crate) use project::{ProjectCommand, ProjectFileArgs, ProjectShow};
pub(crate) use ready::Ready;
pub(crate) use report::Target;
pub(crate) use run::{Protocol, RunArgs, Shard, StartFlags, address};
pub(crate) use runs::{
    RunRejudge, RunReport, RunStop, RunTrace, RunView, RunWatch, RunsCommand, RunsList,
};
pub(crate) use server::{
    ApiArgs, Apply, Audit, Delete, Export, Get, History, List, OpenArgs, Status, TrendArgs,
    VersionedId,
};
pub(crate) use shared::{Configuration, Filter, ReportArgs, Tests, TraceFileArgs, Variables};
pub(crate) use start::{
    ContextCommand, DoctorArgs, InitArgs, LoginArgs, LogoutArgs, NewArgs, TargetUrl, WhoamiArgs,
};
pub(crate) use store::{StoreCommand, StoreTest};
pub(crate) use token::{
    SessionCommand, SessionEnd, SessionList, TokenCommand, TokenCreate, TokenList, TokenRevoke,
};
pub(crate) use traces::{Accept, Diff, Mutate, Record, TraceArgs};
pub(crate) use typed::without_effect;

/// Each operation of the API with its command, or behind `-` why it has none.
#[cfg(test)]
pub(crate) const OPERATIONS: &str = include_str!("args/operations.txt");

/// Trace-based testing for distributed systems.
///
/// Exit codes: 0 passed, 1 failed, 2 usage, configuration or document error, 3 inconclusive.
#[derive(Debug, Parser)]
#[command(name = "qualitytrace", version, long_version = version::LONG)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) project_file: ProjectFileArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be typed, where these variables are empty: for a flag that is as good as none, since pipelines make an empty
/// one of an input that is not set. A switch may be `1`, `yes` or `on` too.
pub(crate) fn command(is_empty: fn(&OsStr) -> bool) -> clap::Command {
    lenient(help::grouped(Args::command()), is_empty)
}

fn lenient(command: clap::Command, is_empty: fn(&OsStr) -> bool) -> clap::Command {
    let command = command.mut_args(|arg| {
        let arg = if arg.get_env().is_some_and(is_empty) { arg.env(None::<&str>) } else { arg };
        match arg.get_action() {
            ArgAction::SetTrue => arg.value_parser(BoolishValueParser::new()),
            _ => arg,
        }
    });
    command.mut_subcommands(|it| lenient(it, is_empty))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    Check(Check),
    /// Write what was learned of the system into `qualitytrace-learned.yaml`, to be committed
    ///
    /// How late the spans of each service come, and which peers send none: with it, a clean machine need not wait to find
    /// out.
    ///
    /// Example: qualitytrace learn
    Learn,
    Lint(Lint),
    #[command(subcommand)]
    Shape(ShapeCommand),
    Mutate(Box<Mutate>),
    Fmt(Fmt),
    Explain(Explain),
    #[command(subcommand)]
    Store(StoreCommand),
    Schema(Schema),
    Completion(Completion),
    Man(Man),
    Version(Version),
    #[command(flatten)]
    OfServer(OfServer),
    Serve(Serve),
    /// Migrate the tables of the database of a configuration to this version, and end
    ///
    /// For servers with `server.migrate: false`: run it before the first server of a new version starts. Servers of the version before
    /// go on meanwhile.
    ///
    /// Example: qualitytrace migrate --config quality-trace-config.yaml
    Migrate(Configuration),
    Init(InitArgs),
    New(NewArgs),
    Doctor(DoctorArgs),
    Demo(demo::DemoArgs),
    #[command(name = demo::SERVICE, hide = true)]
    DemoService(demo::Service),
    #[command(subcommand)]
    Project(ProjectCommand),
    #[command(subcommand)]
    Config(Config),
    #[command(subcommand)]
    Telemetry(Telemetry),
}

/// The shapes of traces: readable trees without ids and times, to be committed and compared with later traces
#[derive(Debug, Subcommand)]
pub(crate) enum ShapeCommand {
    Record(Box<Record>),
    Diff(Box<Diff>),
    Accept(Box<Accept>),
}

/// Commands for a server.
#[derive(Debug, Subcommand)]
pub(crate) enum OfServer {
    Apply(Apply),
    Get(Get),
    List(List),
    Delete(Delete),
    Export(Export),
    History(History),
    #[command(subcommand)]
    Runs(RunsCommand),
    Trend(TrendArgs),
    Audit(Audit),
    Login(LoginArgs),
    Logout(LogoutArgs),
    Whoami(WhoamiArgs),
    #[command(subcommand)]
    Context(ContextCommand),
    #[command(subcommand)]
    Token(TokenCommand),
    #[command(subcommand)]
    Session(SessionCommand),
    Status(Status),
    Open(OpenArgs),
    Api(ApiArgs),
}

/// Judge a recorded trace by the tests of files and folders, offline, or a trace that a trace store has
///
/// Without `--trace` and `--trace-id` the documents are read and nothing is judged: are they right?
///
/// Example: qualitytrace check tests/ --trace trace.pb
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) tests: Tests,
    /// 64 hexadecimal digits: functions such as `uuid()` give what they gave under this seed
    #[arg(long, value_name = "HEX", value_parser = shared::seed, env = "QUALITYTRACE_SEED")]
    pub(crate) seed: Option<[u8; 32]>,
    /// The trace: OTLP in protobuf or JSON, a file of the Collector, JSON of Jaeger or Tempo; `-` is stdin
    #[arg(long, value_name = "FILE", env = "QUALITYTRACE_TRACE")]
    pub(crate) trace: Option<PathBuf>,
    /// Which trace of a file that holds several; without `--trace`, a trace that the stores of the tests have
    #[arg(long, value_name = "ID", env = "QUALITYTRACE_TRACE_ID")]
    pub(crate) trace_id: Option<TraceId>,
    /// The trace store that has the trace, or that the file comes from; its document is among the files. Without a trace,
    /// statements that it cannot judge are shown [default: what a test names, else the default store]
    #[arg(long = "store", value_name = "NAME", env = "QUALITYTRACE_STORE", value_delimiter = ',')]
    pub(crate) stores: Vec<String>,
    /// The file holds a part of the trace: what it does not show is not known to be absent
    #[arg(long, requires = "trace", env = "QUALITYTRACE_PARTIAL")]
    pub(crate) partial: bool,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    #[command(flatten)]
    pub(crate) variables: Variables,
}

/// Hold a recorded trace against the analyzer's rules
///
/// Example: qualitytrace lint --trace trace.pb --gate score
#[derive(Debug, clap::Args)]
pub(crate) struct Lint {
    #[command(flatten)]
    pub(crate) recording: TraceFileArgs,
    /// A file with a document of type `Analyzer`: which rules count, and how much
    #[arg(long, value_name = "FILE", env = "QUALITYTRACE_RULES")]
    pub(crate) rules: Option<PathBuf>,
    /// What has to hold for exit code 0
    #[arg(long, value_enum, default_value_t = Gate::Rules, env = "QUALITYTRACE_GATE")]
    pub(crate) gate: Gate,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
}

/// Write selectors, assertions and claims in their one form, and touch nothing else
///
/// Example: qualitytrace fmt tests/ --check
#[derive(Debug, clap::Args)]
pub(crate) struct Fmt {
    /// Files, and folders with files that end in .yaml or .yml
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Change nothing; exit code 1 if something would be
    #[arg(long, env = "QUALITYTRACE_CHECK")]
    pub(crate) check: bool,
}

/// Show how a selector narrows a trace, step by step, and what decides each assertion and claim
///
/// Example: qualitytrace explain 'span[kind="client"]' --trace trace.pb
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// A selector such as 'span[kind="client"] > span[status="error"]', or a file of tests
    pub(crate) what: String,
    #[command(flatten)]
    pub(crate) recording: TraceFileArgs,
}

/// Print a JSON Schema, for editors
///
/// Example: qualitytrace schema tests > qualitytrace.schema.json
#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    /// Of which documents
    #[arg(value_enum, default_value_t = SchemaOf::Tests)]
    pub(crate) of: SchemaOf,
}

/// Print the completion script of a shell
///
/// Example: qualitytrace completion bash > /etc/bash_completion.d/qualitytrace
#[derive(Debug, clap::Args)]
pub(crate) struct Completion {
    /// Which shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Print the manual page of the program, or write those of all commands into a folder
///
/// Example: qualitytrace man --output /usr/local/share/man/man1
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The folder [default: stdout gets the page of the program]
    #[arg(long, short, value_name = "FOLDER", env = "QUALITYTRACE_MAN_OUTPUT")]
    pub(crate) output: Option<PathBuf>,
}

/// Print the version of this program, and what it was built for
///
/// Example: qualitytrace version --format json
#[derive(Debug, clap::Args)]
pub(crate) struct Version {
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// Run the server
///
/// Example: qualitytrace serve --config quality-trace-config.yaml
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) configuration: Configuration,
    /// Which parts of a server to run, such as `api,ingest` [default: all, or `server.roles`]
    #[arg(long, value_name = "ROLES", env = "QUALITYTRACE_ROLES")]
    pub(crate) roles: Option<ServerRoles>,
    /// Where the API listens; loopback only [default: 127.0.0.1 and `server.httpPort`]
    #[arg(long, value_name = "ADDRESS", env = "QUALITYTRACE_HTTP")]
    pub(crate) http: Option<SocketAddr>,
    /// Where OTLP is received by gRPC; loopback only [default: 127.0.0.1:4317]
    #[arg(long, value_name = "ADDRESS", env = "QUALITYTRACE_OTLP_GRPC")]
    pub(crate) otlp_grpc: Option<SocketAddr>,
    /// Where OTLP is received by HTTP; loopback only [default: 127.0.0.1:4318]
    #[arg(long, value_name = "ADDRESS", env = "QUALITYTRACE_OTLP_HTTP")]
    pub(crate) otlp_http: Option<SocketAddr>,
}

/// The server's configuration
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Read a configuration and the files that it names, and start nothing
    ///
    /// Example: qualitytrace config check --config quality-trace-config.yaml
    Check(Configuration),
}

/// Where the server's own telemetry goes
#[derive(Debug, Subcommand)]
pub(crate) enum Telemetry {
    /// Print what a configuration will do, secrets hidden, without doing it
    ///
    /// Example: qualitytrace telemetry plan --config quality-trace-config.yaml
    Plan(Configuration),
    /// Send one span, log and metric to each destination, and report the result
    ///
    /// Example: qualitytrace telemetry probe --config quality-trace-config.yaml
    Probe(Configuration),
    /// Print how the exporters of a running server are doing: exit code 1 if one fails
    ///
    /// Example: qualitytrace telemetry status --server http://127.0.0.1:11633
    Status(Exporters),
}

/// Which server's exporters are meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Exporters {
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// What a trace has to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gate {
    /// No rule of level `error` is broken
    Rules,
    /// The score is at least `minimumScore`
    Score,
    /// Nothing: findings are only reported
    None,
}

/// Of which documents a schema is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// Tests, suites, variable sets and the other documents of `type:` and `spec:`
    Tests,
    /// The server's configuration
    Config,
    /// The project file `qualitytrace.toml`
    Project,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{Command, CommandFactory};
    use serde_json::Value;

    use super::{Args, OPERATIONS};

    #[test]
    fn every_operation_has_a_command_or_a_reason() {
        let document: Value =
            serde_json::from_str(include_str!("../../../docs/api/openapi.json")).expect("JSON");
        let paths = document["paths"].as_object().expect("paths");
        let methods = paths.values().filter_map(Value::as_object).flatten();
        let mut operations: Vec<_> =
            methods.filter_map(|(_, it)| it["operationId"].as_str()).collect();
        operations.sort_unstable();
        let table: BTreeMap<_, _> =
            OPERATIONS.lines().filter_map(|line| line.split_once(": ")).collect();
        assert_eq!(table.keys().copied().collect::<Vec<_>>(), operations);
        let root = Args::command();
        for (operation, command) in table {
            if let Some(reason) = command.strip_prefix("- ") {
                assert!(reason.len() > 20, "{operation}: {reason}");
                continue;
            }
            let found = command.split(' ').try_fold(&root, Command::find_subcommand);
            assert!(found.is_some(), "{operation}: there is no command `{command}`");
        }
    }

    /// A variable is for every command with its flag, so that it has to mean the same for each.
    #[test]
    fn a_variable_has_the_same_values_for_every_command() {
        let mut known: BTreeMap<String, (String, String)> = BTreeMap::new();
        let mut commands = vec![Args::command()];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            for arg in command.get_arguments() {
                let Some(name) = arg.get_env() else { continue };
                let values: Vec<_> = arg.get_possible_values();
                let values: Vec<_> = values.iter().map(|value| value.get_name()).collect();
                let names = arg.get_value_names().unwrap_or_default();
                let kind = arg.get_value_parser().type_id();
                let form = format!("{names:?} {values:?} {:?} {kind:?}", arg.get_value_delimiter());
                let name = name.to_string_lossy().into_owned();
                let owner = command.get_name().to_owned();
                let (other, first) =
                    known.entry(name.clone()).or_insert((owner.clone(), form.clone()));
                assert_eq!(&form, first, "{name} of `{owner}` and of `{other}`");
            }
        }
        assert!(known.len() > 70, "{}", known.len());
    }

    #[test]
    fn every_flag_has_a_variable_that_the_server_knows() {
        let mut variables = Vec::new();
        let mut commands = vec![Args::command()];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let flags = command.get_arguments().filter(|it| it.get_long().is_some());
            let bare = flags.filter(|flag| flag.get_env().is_none()).map(|flag| flag.get_id());
            assert_eq!(
                bare.collect::<Vec<_>>(),
                Vec::<&clap::Id>::new(),
                "flags without a variable"
            );
            let named = command.get_arguments().filter_map(|argument| argument.get_env());
            variables.extend(named.filter_map(|name| name.to_str()).map(str::to_owned));
        }
        variables.sort_unstable();
        variables.dedup();
        assert_eq!(variables, server::config::FLAGS);
    }
}
