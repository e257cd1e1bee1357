//! Faults of services on the official SDKs of four languages, and of a Collector between them and the receiver.
//!
//! The services are in `tests/sdks`; `cargo xtask services up sdks` installs them.

use anyhow::Result;
use bench::parts::{free_port, setting};
use tempfile::TempDir;

use super::{begins, doctor, is_sound};

/// The variables that name the services.
const SDKS: [&str; 4] = [
    "QUALITYTRACE_TEST_SDK_PYTHON",
    "QUALITYTRACE_TEST_SDK_NODE",
    "QUALITYTRACE_TEST_SDK_GO",
    "QUALITYTRACE_TEST_SDK_JAVA",
];

/// A fault of a service: the variable that names the service, what stands before its command, variables of `doctor`, the beginning
/// of the first line, and words in it.
type Planted = (
    &'static str,
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static [&'static str],
);

const FAULTS: &[Planted] = &[
    (
        SDKS[0],
        &[],
        &[("HTTP_PROXY", "http://127.0.0.1:9")],
        "✘ proxy",
        &["`HTTP_PROXY`", "`NO_PROXY`"],
    ),
    (
        SDKS[0],
        &["env", "OTEL_SDK_DISABLED=true"],
        &[],
        "✘ environment",
        &["`OTEL_SDK_DISABLED=true`: it sends no spans"],
    ),
    (
        SDKS[1],
        // Its own clock is behind, and that of nothing else.
        &["faketime", "-f", "-90s"],
        &[],
        "! clocks of services",
        &["the clock of `echo` is at least", "behind ours"],
    ),
    (
        SDKS[1],
        &[],
        &[("OTEL_PROPAGATORS", "b3")],
        "✘ propagation",
        &["`echo` began a trace of its own"],
    ),
    (SDKS[2], &["env", "OTEL_TRACES_SAMPLER=always_off"], &[], "✘ sampling", &["always_off"]),
    (SDKS[3], &["env", "OTEL_JAVAAGENT_ENABLED=false"], &[], "✘ export", &["nobody connected"]),
];

async fn look(
    variable: &str,
    (before, timeout): (&[&str], &str),
    variables: &[(&str, &str)],
) -> Result<(Option<i32>, String)> {
    let folder = TempDir::new()?;
    let port = free_port()?.to_string();
    let (url, program) = (format!("http://127.0.0.1:{port}/plain"), setting(variable)?);
    let arguments = [&[url.as_str(), "--timeout", timeout, "--"], before, &[&program]].concat();
    let own = [("PORT", port.as_str()), ("OTEL_SERVICE_NAME", "echo")];
    doctor(folder.path(), &arguments, &[&own, variables].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn services_of_four_languages_have_no_warning() -> Result<()> {
    for variable in SDKS {
        let (code, printed) = look(variable, (&[], "10s"), &[]).await?;
        is_sound(code, &printed);
        assert!(printed.contains("complete, with 1 span of `echo`"), "{variable}: {printed}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_services_come_first() -> Result<()> {
    for (variable, before, variables, sign, words) in FAULTS {
        let (code, printed) = look(variable, (before, "3s"), variables).await?;
        begins(&printed, sign, words);
        assert_eq!(code, Some(i32::from(sign.starts_with('✘'))), "{variable}: {printed}");
    }
    Ok(())
}
