//! OpenSearch and Elasticsearch, trace stores: nodes from Maven Central with a small main of our own, because no package registry
//! offers a distribution.
//!
//! A node has no security and no scripts. The download runs only for a user who names the service; all other commands use it if
//! the cache has it. Where the cache has Jaeger too, tests start it with the node as its storage.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};

use super::{Launch, Service, jaeger, maven, ports};
use crate::{
    cache,
    machine::{Machine, fingerprint},
    spawn,
};

/// A product that is one node.
pub(super) struct SearchNode {
    /// Its name, of the service and of its Java package.
    name: &'static str,
    version: &'static str,
    /// The version of Log4j that its own dependencies want.
    log4j_version: &'static str,
    /// The variables of its URL, and of a Jaeger for it.
    variables: [&'static str; 2],
}

pub(super) const OPENSEARCH: SearchNode = SearchNode {
    name: "opensearch",
    version: "2.19.6",
    log4j_version: "2.25.4",
    variables: ["QUALITYTRACE_TEST_OPENSEARCH", "QUALITYTRACE_TEST_OPENSEARCH_JAEGER"],
};

/// The last version whose HTTP server is on Maven Central.
pub(super) const ELASTICSEARCH: SearchNode = SearchNode {
    name: "elasticsearch",
    version: "7.17.28",
    log4j_version: "2.17.1",
    variables: ["QUALITYTRACE_TEST_ELASTICSEARCH", "QUALITYTRACE_TEST_ELASTICSEARCH_JAEGER"],
};

const SOURCE: &str = include_str!("SearchNode.java");

const PROGRAM: &str = "SearchNode.class";

impl Service for SearchNode {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self, machine: &Machine) -> Result<()> {
        self.program(machine).map(drop)
    }

    fn is_used_unnamed(&self, machine: &Machine) -> bool {
        machine.cache.join(self.key()).join("bin").join(PROGRAM).is_file()
    }

    fn data(&self, machine: &Machine) -> PathBuf {
        machine.state().join(self.name)
    }

    fn launch(&self, machine: &Machine, data: &Path) -> Result<Launch> {
        let bin = self.program(machine)?;
        let home = bin.parent().context("a program stands in a folder")?;
        let [http, transport] = ports::free()?;
        let mut command = Command::new("java");
        command
            .args(["-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-cp"])
            .arg(format!("{}/lib/*:{}", home.display(), bin.display()))
            .arg("SearchNode")
            .arg(data)
            .args([http.port().to_string(), transport.port().to_string()])
            .current_dir(data);
        let [url, jaeger_variable] = self.variables;
        let mut variables = vec![(url, format!("http://{http}"))];
        if let Some(jaeger) = jaeger::installed(machine) {
            variables.push((jaeger_variable, jaeger.display().to_string()));
        }
        let ready = "/_cluster/health?wait_for_status=yellow&timeout=500ms";
        Ok(Launch {
            command,
            ready: Box::new(move || ports::answers_at(http, ready)),
            address: http.to_string(),
            connect: format!("http://{http}"),
            variables,
        })
    }

    fn ready_within(&self) -> Duration {
        // A Java program, on a busy machine.
        Duration::from_secs(120)
    }
}

impl SearchNode {
    /// Returns the name of its folder in the cache.
    pub(super) fn key(&self) -> String {
        format!("{}-{}-{:08x}", self.name, self.version, fingerprint(SOURCE.as_bytes()) >> 32)
    }

    /// Returns the folder of its program, and installs it if this machine does not have it.
    fn program(&self, machine: &Machine) -> Result<PathBuf> {
        let key = self.key();
        cache::install(&machine.cache, &key, &[PROGRAM], |part| self.build(machine, &key, part))
    }

    fn build(&self, machine: &Machine, key: &str, part: &Path) -> Result<()> {
        eprintln!("{key}: getting {} from Maven Central, 50 MB, once per machine", self.name);
        fs::write(part.join("pom.xml"), self.project())?;
        let goal =
            ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=lib"];
        let repository = maven::run(machine, key, part, &goal)?;
        cache::remove(&repository)?;
        fs::write(part.join("SearchNode.java"), SOURCE.replace("PRODUCT", self.name))?;
        let mut compile = Command::new("javac");
        compile.args(["-cp", "lib/*", "-d", "bin", "SearchNode.java"]);
        spawn::run(compile.current_dir(part))
    }

    /// Returns the project file with its dependencies.
    fn project(&self) -> String {
        let Self { name, version, log4j_version, .. } = self;
        let dependencies = [
            (format!("org.{name}"), *name, *version),
            (format!("org.{name}.plugin"), "transport-netty4-client", *version),
            ("org.apache.logging.log4j".to_owned(), "log4j-core", *log4j_version),
        ];
        let dependencies = dependencies.map(|(group, artifact, version)| {
            format!(
                "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
                 <version>{version}</version></dependency>"
            )
        });
        format!(
            "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
             <groupId>parts</groupId><artifactId>{name}</artifactId><version>1</version>\
             <packaging>pom</packaging><dependencies>{}</dependencies></project>\n",
            dependencies.concat()
        )
    }
}
