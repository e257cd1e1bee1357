//! Tests of starting, locating and stopping, with a service that is only a `sleep`; and of authentication at the real ones.

use std::{
    fs::Permissions,
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
};

use super::*;
use crate::machine::tests::machine_with_cache;

struct Sleeper;

/// A service that ends before it is ready.
struct Stumbler;

fn launch(script: &str) -> Launch {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Launch {
        command,
        ready: Box::new(|| true),
        address: "127.0.0.1:1".to_owned(),
        connect: "nobody listens".to_owned(),
        variables: vec![("SLEEPER", "a b".to_owned())],
    }
}

impl Service for Sleeper {
    fn name(&self) -> &'static str {
        "sleeper"
    }

    fn install(&self, _: &Machine) -> Result<()> {
        Ok(())
    }

    fn data(&self, machine: &Machine) -> PathBuf {
        machine.state().join("sleeper")
    }

    fn launch(&self, _: &Machine, data: &Path) -> Result<Launch> {
        assert_eq!(fs::read_dir(data)?.count(), 0, "every start is from nothing");
        fs::write(data.join("kept"), "x")?;
        Ok(launch("exec sleep 60"))
    }
}

impl Service for Stumbler {
    fn name(&self) -> &'static str {
        "stumbler"
    }

    fn install(&self, _: &Machine) -> Result<()> {
        Ok(())
    }

    fn data(&self, machine: &Machine) -> PathBuf {
        machine.state().join("stumbler")
    }

    fn launch(&self, _: &Machine, _: &Path) -> Result<Launch> {
        Ok(Launch { ready: Box::new(|| false), ..launch("echo the port is taken >&2; exit 1") })
    }
}

#[test]
fn a_second_start_finds_the_first_and_a_stop_ends_it() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let machine = machine_with_cache(cache.path());
    let (first, new) = ensure(&machine, &Sleeper).expect("it starts");
    assert!(new && first.process.is_alive());
    let (second, new) = ensure(&machine, &Sleeper).expect("it runs");
    assert!(!new);
    assert_eq!(first, second);

    assert!(stop(&machine, &Sleeper).expect("it stops"));
    assert!(!first.process.is_alive());
    assert!(!Sleeper.data(&machine).exists());
    assert!(!stop(&machine, &Sleeper).expect("a second stop is fine"));
    let (third, new) = ensure(&machine, &Sleeper).expect("it starts again");
    assert!(new);
    third.process.stop(&machine.clock, "KILL", STOPPED_WITHIN).expect("it ends");
}

#[test]
fn a_store_is_skipped_until_it_is_installed_and_never_after() {
    for (name, key, program) in [
        ("jaeger", jaeger::key(), "jaeger"),
        ("tempo", tempo::key(), "tempo"),
        ("clickhouse", clickhouse::key(), "echo"),
        ("zipkin", zipkin::key(), "zipkin.jar"),
    ] {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let machine = machine_with_cache(cache.path());
        let variables = |machine: &Machine| {
            let mut found = None;
            let done = with(machine, &[name], |variables| {
                found = Some(variables.len());
                Ok(())
            });
            done.map(|()| found)
        };
        assert_eq!(variables(&machine).expect("the work is done without it"), Some(0), "{name}");

        // An installed service that does not start is an error, and not skipped.
        let bin = cache.path().join(key).join("bin");
        fs::create_dir_all(&bin).expect("made");
        let program = bin.join(program);
        fs::write(&program, "#!/bin/sh\necho no memory >&2; exit 1\n").expect("written");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("set");
        let words = variables(&machine).expect_err("it does not start").to_string();
        assert!(words.starts_with(&format!("{name} ended")), "{words}");
    }
}

#[test]
fn nodes_that_are_not_installed_are_skipped() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let machine = machine_with_cache(cache.path());
    let mut count = None;
    with(&machine, &["opensearch", "elasticsearch"], |variables| {
        count = Some(variables.len());
        Ok(())
    })
    .expect("the work is done without them");
    assert_eq!(count, Some(0));
    let keys = [search::OPENSEARCH, search::ELASTICSEARCH].map(|node| node.key());
    assert!(keys[0].starts_with("opensearch-2.") && keys[1].starts_with("elasticsearch-7."));
}

#[test]
fn a_process_that_only_has_the_number_is_neither_found_nor_stopped() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let machine = machine_with_cache(cache.path());
    let (record, _) = ensure(&machine, &Sleeper).expect("it starts");
    let alive = record.process;
    let stale = Process { start: alive.start - 1, ..alive };
    Record { process: stale, ..record }.write(&file(&machine, &Sleeper)).expect("written");

    assert!(running(&machine, &Sleeper).is_none());
    assert!(!stop(&machine, &Sleeper).expect("there is nothing to stop"));
    assert!(alive.is_alive());
    alive.stop(&machine.clock, "TERM", STOPPED_WITHIN).expect("it ends");
}

#[test]
fn a_process_that_does_not_listen_is_killed() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let machine = machine_with_cache(cache.path());
    // The loop survives the signal: the shell ignores it, and so does each `sleep` that it starts.
    let mut child = Command::new("sh");
    let mut child = child.args(["-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"]);
    child = child.stdout(std::process::Stdio::piped()).process_group(0);
    let mut child = child.spawn().expect("a shell");
    let mut said = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut said)
        .expect("it says so");
    let process = Process::of(child.id()).expect("it runs");
    process.stop(&machine.clock, "TERM", Duration::from_millis(200)).expect("it is killed");
    assert!(!process.is_alive());
    child.wait().expect("its end is seen");
}

#[test]
fn a_service_that_ends_before_it_is_ready_shows_its_log() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let machine = machine_with_cache(cache.path());
    let words = ensure(&machine, &Stumbler).expect_err("it never gets ready").to_string();
    assert!(words.starts_with("stumbler ended"), "{words}");
    assert!(words.ends_with("stumbler.log:\n  the port is taken"), "{words}");
    assert!(running(&machine, &Stumbler).is_none());
}

#[test]
fn checkouts_do_not_see_each_other() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let one = machine_with_cache(cache.path());
    let mut other = machine_with_cache(cache.path());
    other.root = cache.path().join("other");
    assert_ne!(one.state(), other.state());
    let (record, _) = ensure(&one, &Sleeper).expect("it starts");
    assert!(running(&other, &Sleeper).is_none());
    assert!(!stop(&other, &Sleeper).expect("the other has nothing to stop"));
    assert!(record.process.is_alive());
    assert!(stop(&one, &Sleeper).expect("it stops"));
}

#[test]
fn a_record_of_another_version_is_none() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("it");
    for text in [
        "",
        "pid 1\n",
        "pid 1\nstart 2\naddress a\nconnect c\nmore m\n",
        "pid x\nstart 2\naddress a\nconnect c\n",
    ] {
        fs::write(&file, text).expect("written");
        assert_eq!(Record::read(&file), None, "{text:?}");
    }
}

#[test]
fn a_record_is_for_its_owner_alone() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (file, part) = (dir.path().join("it.running"), dir.path().join("it.part"));
    fs::write(&part, "left by a run that was killed").expect("written");
    fs::set_permissions(&part, Permissions::from_mode(0o644)).expect("set");
    let process = Process { pid: 1, start: 2 };
    let (address, connect) = ("a".to_owned(), "b c".to_owned());
    let variables = vec![("URL".to_owned(), "x=y z".to_owned())];
    let record = Record { process, address, connect, variables };
    record.write(&file).expect("written");
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert_eq!(Record::read(&file), Some(record));
}

#[test]
fn postgres_lets_nobody_in_without_the_password() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let mut machine = machine_with_cache(cache.path());
    // Another checkout: the data of this one may be in use.
    machine.root = cache.path().to_path_buf();
    let (record, _) = ensure(&machine, &postgres::Postgres).expect("it starts");
    let asked = authentication(&record.address);
    let left = postgres::Postgres.data(&machine).join("password").exists();
    assert!(stop(&machine, &postgres::Postgres).expect("it stops"));

    // 10 is `AuthenticationSASL`, and 0 would be `AuthenticationOk`.
    assert_eq!(asked.expect("it answers"), *b"R\0\0\0\x17\0\0\0\x0a");
    assert!(!left, "the password stands in the record alone");
    let value = |name: &str| {
        let found = record.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).expect(name)
    };
    let password = value("QUALITYTRACE_TEST_POSTGRES_PASSWORD");
    assert!(password.len() == 32 && password.chars().all(|c| c.is_ascii_hexdigit()), "{password}");
    assert_eq!(
        value("QUALITYTRACE_TEST_POSTGRES"),
        format!("postgres://postgres:{password}@{}/postgres", record.address)
    );
    assert!(!record.connect.contains(&password), "`psql` with it would show it to every user");
}

/// Returns the first nine bytes of the response of Postgres to the superuser's startup message: type, length and the
/// authentication request.
fn authentication(address: &str) -> std::io::Result<[u8; 9]> {
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let hello = b"\0\x03\0\0user\0postgres\0\0";
    let length = u32::try_from(hello.len() + 4).expect("a short hello");
    stream.write_all(&[&length.to_be_bytes(), &hello[..]].concat())?;
    let mut answer = [0; 9];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_value_is_one_word_of_a_shell() {
    assert_eq!(
        quoted("postgres://postgres@127.0.0.1:1/postgres"),
        "postgres://postgres@127.0.0.1:1/postgres"
    );
    assert_eq!(quoted("it's here"), r"'it'\''s here'");
}
