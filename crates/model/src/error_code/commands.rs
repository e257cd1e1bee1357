//! Pages of errors of commands.
#![expect(non_upper_case_globals, reason = "each page has the name of its code")]

use super::{ErrorPage, page};

pub(super) const Usage: ErrorPage = page(
    "The command was typed in a form that it does not have.",
    "A flag is unknown, misses its value, has no effect here, or excludes another one.",
    "`qualitytrace COMMAND --help` has the flags of a command, with an example.",
);
pub(super) const FileUnreadable: ErrorPage = page(
    "A file or folder cannot be read.",
    "It does not exist, is no text, is too large, or its permissions do not allow it. Paths in a document are relative to the document.",
    "Correct the path that the message shows, or the permissions of the file.",
);
pub(super) const FileUnwritable: ErrorPage = page(
    "A file cannot be written.",
    "Its folder does not exist or is not writable, or the disk is full.",
    "Create the folder, choose another file, or free space on the disk.",
);
pub(super) const FileExists: ErrorPage = page(
    "The file exists already, and stays as it is.",
    "The command writes a new file and never replaces one.",
    "Move or delete the file first, or choose another name.",
);
pub(super) const NoTests: ErrorPage = page(
    "There are no tests to run.",
    "No path was given, and there is no folder `qualitytrace` here.",
    "Name files or folders, or let `qualitytrace init` write a first test.",
);
pub(super) const NoTestSelected: ErrorPage = page(
    "No test was selected.",
    "The filters `--test`, `--tag`, `--shard` or `--last-failed` match no test of the files.",
    "Correct the filter; the message names what there is.",
);
pub(super) const DocumentMissing: ErrorPage = page(
    "A file has no document of the type that is needed.",
    "`--vars` needs a `VariableSet`, `--rules` an `Analyzer`, a test its settle profile, and the files have others only.",
    "Name a file with such a document, or correct its `type`.",
);
pub(super) const DocumentsCollide: ErrorPage = page(
    "Two documents are meant for the same thing.",
    "Two settle profiles, analyzers or stores are the default of one command, or a gate would hold for no run.",
    "Leave one out, or run their folders one by one.",
);
pub(super) const VariableMissing: ErrorPage = page(
    "A variable has no value.",
    "The test has `${var:NAME}` or `${env:NAME}`, and neither a file, nor `--set`, nor the environment has it.",
    "Give it by `--set NAME=VALUE`, by a file of `--vars`, or in the environment.",
);
pub(super) const TriggerInvalid: ErrorPage = page(
    "The request of a test cannot be built.",
    "With its variables filled in, its URL, a header or an expression is invalid, or this version cannot fire it.",
    "Correct the value that the message shows at its line.",
);
pub(super) const TraceInvalid: ErrorPage = page(
    "A trace cannot be read.",
    "The file has no OTLP in JSON or Protobuf, has several traces or none, or a store does not have the trace.",
    "Give a file that `run --traces DIR` or `runs trace RUN -o FILE` wrote, and choose a trace with `--trace-id`.",
);
pub(super) const StoreInvalid: ErrorPage = page(
    "A trace store cannot be queried.",
    "Its document is wrong, it does not run, or it refuses the credentials.",
    "Try its document with `qualitytrace store test NAME FILE`, and correct what that reports.",
);
pub(super) const OtlpPortInUse: ErrorPage = page(
    "The address on which OTLP is to be received is taken.",
    "An OpenTelemetry Collector, Jaeger or another `qualitytrace` listens there.",
    "Stop it, choose another address with `--otlp 127.0.0.1:PORT`, or start the system behind `--`, which gets a free port.",
);
pub(super) const CommandNotStarted: ErrorPage = page(
    "The command behind `--` cannot be started.",
    "The program does not exist, or is not executable.",
    "Start it by hand in this folder, and correct its name or path.",
);
pub(super) const CommandPortInUse: ErrorPage = page(
    "Something listens where the command will listen, before it is started.",
    "An earlier instance of the system still runs, so that something else would be tested.",
    "Stop what listens there, or describe with `--ready` when the command is ready.",
);
pub(super) const CommandNotReady: ErrorPage = page(
    "The command was not ready in time.",
    "It starts slowly, listens elsewhere than the first test expects, or failed; the message has its last output.",
    "Describe with `--ready` what shows that it is ready, or allow more time with `--ready-timeout`.",
);
pub(super) const CommandEnded: ErrorPage = page(
    "The command behind `--` ended before the tests did.",
    "It failed, or is a program that starts another one in the background and ends.",
    "Look at its last output in the message; start the program that stays in the foreground.",
);
pub(super) const NothingLearned: ErrorPage = page(
    "Nothing is learned yet.",
    "No test has been run three times here against a system that runs already.",
    "Run the tests three times or more, then `qualitytrace learn` again.",
);
pub(super) const TraceIncomplete: ErrorPage = page(
    "No test was written, since the trace is not complete.",
    "Spans were still missing when the time was over, or no span came at all.",
    "Follow the diagnosis that is printed, and repeat the command.",
);
pub(super) const CurlUnsupported: ErrorPage = page(
    "The curl command cannot be written as a test.",
    "It has an option that a trigger of type `http` does not have, more than one URL, or none.",
    "Leave the option out, or use a trigger of type `exec` that runs curl itself.",
);
pub(super) const BaselineNotPassed: ErrorPage = page(
    "No test passes on its own trace, so that its mutants would show nothing.",
    "The trace is of another system, or the tests are red.",
    "Run `qualitytrace check PATH --trace FILE`, and mend the tests first.",
);
pub(super) const MutantsSurvived: ErrorPage = page(
    "Mutants survived: the tests do not notice a changed trace.",
    "No assertion or claim looks at what was changed, or the score is below `--min-score`.",
    "Write a test that notices, or name the survivor with a reason in the file of `--survivors`.",
);
pub(super) const AcceptInCi: ErrorPage = page(
    "A shape is not accepted in CI.",
    "A person has to review the difference.",
    "Accept it on your own machine, read the difference, and commit the file.",
);
pub(super) const ReportsCollide: ErrorPage = page(
    "Two reports would be written to the same place.",
    "Two `--report` have the same file, or both go to stdout.",
    "Give each a file of its own, such as `--report junit=out.xml`.",
);
pub(super) const BinaryOutput: ErrorPage = page(
    "A result that is no text would be printed on a terminal.",
    "A trace is printed as Protobuf.",
    "Give it a file, `-o trace.pb`, or pipe it into another program.",
);
pub(super) const ProjectFileInvalid: ErrorPage = page(
    "`qualitytrace.toml` is invalid.",
    "A key is unknown, a value has another form, or a path leads out of the folder of the file.",
    "Correct the line that is shown; `qualitytrace project show` prints what the file then gives.",
);
pub(super) const ProfileUnknown: ErrorPage = page(
    "There is no such profile.",
    "`--profile` or `QUALITYTRACE_PROFILE` names a profile that `qualitytrace.toml` does not have, or there is no such file.",
    "Correct the name, or add `[profile.NAME.run]` to the file.",
);
pub(super) const TrustRequired: ErrorPage = page(
    "The project file or a document would execute, read or send something, and is not trusted.",
    "It came with the repository; a command, a file elsewhere, or an address that values are sent to is new or was changed.",
    "Read the lines that are listed. Then confirm on a terminal, or give `--trust` or `QUALITYTRACE_TRUST=1`.",
);
pub(super) const PruneUnsafe: ErrorPage = page(
    "`--prune` would delete documents that came from elsewhere.",
    "The paths hold no files, or name the working folder itself.",
    "Name the folder whose documents the server is to have, such as `apply --prune qualitytrace`.",
);
pub(super) const ContextUnknown: ErrorPage = page(
    "There is no such context.",
    "`--context` names one that `qualitytrace login` has not stored on this machine.",
    "List them with `qualitytrace context list`, or store it with `qualitytrace login --context NAME`.",
);
pub(super) const ContextMissing: ErrorPage = page(
    "There is no current context.",
    "The command needs one, and none was stored or selected; or there is no folder for contexts.",
    "Store one with `qualitytrace login`, or select one with `qualitytrace context use NAME`.",
);
pub(super) const TokenMissing: ErrorPage = page(
    "No token was given.",
    "`login` stores a token, and neither `--token`, nor `QUALITYTRACE_TOKEN`, nor stdin has one.",
    "Give it by one of these; an administrator creates it with `qualitytrace token create`.",
);
pub(super) const PlainToken: ErrorPage = page(
    "The token was not sent, since others could read it on its way.",
    "The server's address is `http://` on another machine, so that nothing encrypts the connection.",
    "Use `https://`. Where the network between is trusted, as within a cluster, give `--plain-http`.",
);
pub(super) const ServerUnreachable: ErrorPage = page(
    "The server cannot be reached.",
    "It does not run, the address is another one, or a proxy, firewall or certificate is in the way.",
    "Check the address with `--server` and `qualitytrace status`; for an own authority give `--ca FILE`.",
);
pub(super) const AuthorityInvalid: ErrorPage = page(
    "The authorities of `--ca` cannot be used.",
    "The file cannot be read, or has no certificate in PEM form.",
    "Give the certificate of the authority that signed the server's, in PEM form.",
);
pub(super) const ResponseUnknown: ErrorPage = page(
    "The server's response is not what this version understands.",
    "Another program answers at the address, the server has another version, or the response is too large.",
    "Compare versions with `qualitytrace version` and `qualitytrace status`, and check the address.",
);
