//! Commands: their inputs, and each way in which they end.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use drivers::trigger::{AllowedCommands, Commands, TriggerConfig, Triggers};
use model::{Answer, Body, Command, ExecRequest, NoAnswer, NoAnswerKind, Request};

use crate::{
    firing::{LIMITS, fire, triggers},
    server::until,
};

const PATH: (&str, &str) = ("PATH", "/usr/bin:/bin");

fn line(line: &str) -> ExecRequest {
    with(Command::Line(line.to_owned()))
}

fn words(words: &[&str]) -> ExecRequest {
    let [program, arguments @ ..] = words else { panic!("no program") };
    with(Command::Words {
        program: (*program).to_owned(),
        arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
    })
}

fn with(command: Command) -> ExecRequest {
    let timeout = Duration::from_secs(30);
    ExecRequest { command, env: Vec::new(), workdir: None, timeout, propagation: Vec::new() }
}

async fn run(request: ExecRequest) -> Answer {
    fire(
        &triggers(&[PATH, ("GIVEN", "by us"), ("TRACEPARENT", "another")]),
        &Request::Exec(request),
    )
    .await
}

async fn wrote(request: ExecRequest) -> String {
    match run(request).await {
        Answer::Exit(exit) => String::from_utf8_lossy(exit.stdout.as_bytes()).into_owned(),
        answer => panic!("{answer:?}"),
    }
}

/// A command gets the configured environment, the variables of its document, and the trace context; nothing of this process,
/// and no input.
#[tokio::test]
async fn a_command_gets_what_it_is_given() {
    let request = ExecRequest {
        env: vec![
            ("ASKED".to_owned(), "by the document".to_owned()),
            ("TRACESTATE".to_owned(), "theirs=1".to_owned()),
        ],
        ..words(&["env"])
    };
    let mut lines: Vec<_> = wrote(request).await.lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "ASKED=by the document",
            "BAGGAGE=qualitytrace=true",
            "GIVEN=by us",
            "PATH=/usr/bin:/bin",
            "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "TRACESTATE=qualitytrace=true",
        ]
    );
    let own = vec![("BAGGAGE".to_owned(), "user=7".to_owned())];
    assert_eq!(wrote(ExecRequest { env: own, ..line("printf %s $BAGGAGE; cat") }).await, "user=7");
}

/// Arguments reach the program unchanged; the shell evaluates a command line.
#[tokio::test]
async fn no_shell_sees_words() {
    let told = wrote(words(&["printf", "%s|%s", "$GIVEN; `id` * \"", "two words"])).await;
    assert_eq!(told, "$GIVEN; `id` * \"|two words");
    assert_eq!(wrote(line("printf '%s' \"$GIVEN\" | tr a-z A-Z")).await, "BY US");
}

/// A command runs in its folder, and finds a program that is named relative to it.
#[tokio::test]
async fn a_command_runs_in_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("here");
    fs::write(&program, "#!/bin/sh\npwd\n").expect("written");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
    let workdir = Some(folder.path().display().to_string());
    let told = wrote(ExecRequest { workdir, ..words(&["./here"]) }).await;
    let folder = folder.path().canonicalize().expect("a folder");
    assert_eq!(told.trim_end(), folder.display().to_string());
}

/// Every exit code is an answer, with the complete standard output, whatever bytes it has, and the end of standard error.
#[tokio::test]
async fn every_code_is_an_answer() {
    for code in [0, 1, 2, 77, 255] {
        let Answer::Exit(exit) = run(line(&format!("printf said; exit {code}"))).await else {
            panic!("{code}")
        };
        assert_eq!((exit.code, exit.stdout), (code, Body::Text("said".into())));
        assert!(exit.duration_ns > 0);
    }
    let Answer::Exit(exit) = run(line("printf '\\377'; seq 1000 >&2; printf end >&2")).await else {
        panic!("no exit")
    };
    assert_eq!(exit.stdout, Body::Bytes(vec![0xff].into()));
    assert_eq!(exit.stderr.len(), LIMITS.stderr_bytes_max);
    assert!(exit.stderr.ends_with("999\n1000\nend"), "{}", exit.stderr);
}

/// A process that a command leaves in its group ends with the command, and does not delay its answer.
#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let workdir = Some(folder.path().display().to_string());
    let script = "sleep 1000 & echo $! > left; echo done";
    assert_eq!(wrote(ExecRequest { workdir, ..line(script) }).await, "done\n");
    let left = fs::read_to_string(folder.path().join("left")).expect("a number");
    let left = rustix::process::Pid::from_raw(left.trim().parse().expect("a number"));
    let left = left.expect("not 0");
    until("it is gone", || {
        let status = fs::read_to_string(format!("/proc/{}/stat", left.as_raw_nonzero()));
        // A process without a waiting parent is a zombie until its new parent reaps it.
        status.map_or(true, |stat| stat.contains(") Z "))
    })
    .await;
}

/// Each fault has its kind, and its message does not repeat a possible secret.
#[tokio::test]
async fn each_fault_has_its_kind() {
    let nowhere = ExecRequest { workdir: Some("/nowhere".to_owned()), ..words(&["env"]) };
    let cases = [
        (
            words(&["no-such-program", "s3cr3t"]),
            NoAnswerKind::Invalid,
            "`no-such-program` cannot be run: ",
        ),
        (words(&[""]), NoAnswerKind::Invalid, "`` cannot be run: "),
        (words(&["en\0v"]), NoAnswerKind::Invalid, "cannot be run: "),
        (nowhere, NoAnswerKind::Invalid, "`env` cannot be run in `/nowhere`: "),
        (line("kill -9 $$ # s3cr3t"), NoAnswerKind::Killed, "`sh` was ended by signal 9"),
        (line("yes s3cr3t"), NoAnswerKind::TooLarge, "`sh` wrote more than 1000 bytes"),
    ];
    for (request, kind, words) in cases {
        let Answer::NoAnswer(NoAnswer { kind: found, message }) = run(request).await else {
            panic!("{words}")
        };
        assert_eq!(found, kind, "{message}");
        assert!(message.contains(words), "{message}");
        assert!(!message.contains("s3cr3t"), "{message}");
    }
}

/// A program that is not listed does not run, and the message states who could change that.
#[tokio::test]
async fn a_server_runs_what_is_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("env");
    fs::write(&made, "#!/bin/sh\necho not this one").expect("written");
    fs::set_permissions(&made, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("made");
    let path = folder.path().display().to_string();
    let started = format!("{path}/started");
    let strangers = |programs: &[&str]| {
        let programs = programs.iter().map(PathBuf::from).collect();
        let commands =
            Commands::Listed(AllowedCommands { programs, variables: vec!["STAGE".to_owned()] });
        let (limits, environment) = (LIMITS, Vec::new());
        Triggers::new(TriggerConfig { limits, environment, commands, networks: None })
    };
    let there = made.display().to_string();
    for (programs, request) in [
        (&[][..], words(&["touch", &started])),
        (&[], line(&format!("touch {started}"))),
        (&["/usr/bin/env"], line(&format!("touch {started}"))),
        (&["/usr/bin/env"], words(&["/bin/../usr/bin/env", "touch", &started])),
        (&["/usr/bin/env"], words(&[&there])),
        (&["touch", "bin/touch"], words(&["touch", &started])),
    ] {
        let fired = fire(&strangers(programs), &Request::Exec(request)).await;
        let Answer::NoAnswer(answer) = fired else { panic!("{fired:?}") };
        assert_eq!(answer.kind, NoAnswerKind::Invalid, "{}", answer.message);
        assert!(answer.message.contains("`server.triggers.exec.allow`"), "{}", answer.message);
    }
    assert!(!Path::new(&started).exists());
    // A test cannot select what a name resolves to, nor what a program loads.
    for variable in ["PATH", "LD_PRELOAD", "BAGGAGE", "stage"] {
        let env = vec![("STAGE".to_owned(), "x".to_owned()), (variable.to_owned(), path.clone())];
        let request = ExecRequest { env, ..words(&["touch", &started]) };
        let triggers = strangers(&["/usr/bin/touch", "/bin/touch"]);
        let fired = fire(&triggers, &Request::Exec(request)).await;
        let Answer::NoAnswer(answer) = fired else { panic!("{variable}") };
        assert_eq!(answer.kind, NoAnswerKind::Invalid, "{}", answer.message);
        assert!(answer.message.contains(&format!("variable `{variable}`")), "{}", answer.message);
    }
    assert!(!Path::new(&started).exists());
    // By its name or its path, and never another program of that name; with the variables of the test and no others.
    for program in ["env", "/usr/bin/env"] {
        let request = ExecRequest {
            workdir: Some(path.clone()),
            env: vec![("STAGE".to_owned(), path.clone())],
            ..words(&[program])
        };
        let fired = fire(&strangers(&["/usr/bin/env"]), &Request::Exec(request)).await;
        let Answer::Exit(exit) = fired else { panic!("{fired:?}") };
        let said = String::from_utf8_lossy(exit.stdout.as_bytes()).into_owned();
        assert!(
            said.contains(&format!("STAGE={path}\n")) && said.contains("TRACEPARENT="),
            "{said}"
        );
        assert_eq!(said.lines().count(), 4, "{said}");
    }
    let request = ExecRequest { workdir: Some(path), ..line("pwd") };
    let fired = fire(&strangers(&["/bin/sh"]), &Request::Exec(request)).await;
    let Answer::Exit(exit) = fired else { panic!("{fired:?}") };
    assert_eq!(exit.stdout.as_bytes(), b"/\n");
}
