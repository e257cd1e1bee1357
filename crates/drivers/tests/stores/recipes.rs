//! The configurations of a Collector that sends to a store and here, for stores that are not queried.

use std::{env, fs, path::Path, process::Command};

/// Exporters that are not in the core distribution of the Collector, which the tests have.
const CONTRIB: [&str; 4] = ["awsxray", "azuremonitor", "datadog", "googlecloud"];

#[test]
fn every_recipe_is_one_that_the_collector_accepts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/collector");
    let collector = env::var("QUALITYTRACE_TEST_COLLECTOR_BIN").expect("the services are up");
    let (mut accepted, mut unknown) = (0, 0);
    for entry in fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("a file").path();
        let text = fs::read_to_string(&path).expect("a recipe");
        let pipeline = text.lines().find(|line| line.contains("traces: {receivers: [otlp]"));
        assert!(pipeline.is_some_and(|it| it.contains(", otlp/qualitytrace]")), "{text}");
        let mut validate = Command::new(&collector);
        validate.arg("validate").arg("--config").arg(&path);
        for name in text.split("${env:").skip(1).filter_map(|it| it.split(['}', ':']).next()) {
            let value = if name.ends_with("_URL") { "https://store.test/receiver" } else { "eu1" };
            if name != "QUALITYTRACE_OTLP" {
                validate.env(name, value);
            }
        }
        let output = validate.output().expect("the Collector starts");
        let message = String::from_utf8_lossy(&output.stderr);
        let lacks = |name: &&&str| message.contains(&format!("unknown type: \"{name}\""));
        match (output.status.success(), CONTRIB.iter().find(lacks)) {
            (true, _) => accepted += 1,
            (false, Some(_)) => {
                assert!(text.contains("in the contrib distribution of the Collector"), "{text}");
                unknown += 1;
            }
            (false, None) => unreachable!("{}: {message}", path.display()),
        }
    }
    assert_eq!((accepted, unknown), (9, CONTRIB.len()));
}
