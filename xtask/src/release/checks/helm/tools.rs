//! Helm, kubeconform, the evaluator of Pod Security and the API of Kubernetes, each at one version, in the cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    cache,
    machine::{Machine, fingerprint},
    services::golang::Go,
    spawn,
};

/// A program that is built from its Go module.
struct GoTool {
    name: &'static str,
    version: &'static str,
    package: &'static str,
    minutes: &'static str,
}

const HELM: GoTool = GoTool {
    name: "helm",
    version: "3.22.0",
    package: "helm.sh/helm/v3/cmd/helm",
    minutes: "some 8 minutes",
};

const KUBECONFORM: GoTool = GoTool {
    name: "kubeconform",
    version: "0.8.0",
    package: "github.com/yannh/kubeconform/cmd/kubeconform",
    minutes: "half a minute",
};

/// The oldest and the newest Kubernetes that the chart is checked for. Chart.yaml requires the oldest minor version.
pub(super) const KUBERNETES: [&str; 2] = ["1.30.14", "1.36.3"];

/// Makes schemas of the API of Kubernetes.
const SCHEMAS: &str = include_str!("schemas.py");

/// The source of the evaluator of Pod Security, with the versions of its modules: those of the newest Kubernetes.
const PODSECURITY: [(&str, &str); 3] = [
    ("main.go", include_str!("podsecurity/main.go")),
    ("go.mod", include_str!("podsecurity/go.mod")),
    ("go.sum", include_str!("podsecurity/go.sum")),
];

/// The programs that the chart is checked with.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) helm: PathBuf,
    pub(super) kubeconform: PathBuf,
    pub(super) podsecurity: PathBuf,
    /// The folders with schemas, in the order of [`KUBERNETES`].
    pub(super) schemas: Vec<PathBuf>,
}

impl Tools {
    pub(super) fn install(machine: &Machine) -> Result<Self> {
        Ok(Self {
            helm: HELM.install(machine)?,
            kubeconform: KUBECONFORM.install(machine)?,
            podsecurity: podsecurity(machine)?,
            schemas: KUBERNETES.iter().map(|it| schemas(machine, it)).collect::<Result<_>>()?,
        })
    }
}

impl GoTool {
    fn install(&self, machine: &Machine) -> Result<PathBuf> {
        let Self { name, version, package, minutes } = self;
        let key = format!("{name}-{version}");
        let bin = cache::install(&machine.cache, &key, &[name], |part| {
            let go = Go::find(machine, &key, part)?;
            eprintln!(
                "{key}: building it from the Go module registry; {minutes}, once per machine"
            );
            let mut install = Command::new("go");
            install.args(["install", "-trimpath", &format!("{package}@v{version}")]);
            go.run(install.env("GOBIN", part.join("bin")))
        })?;
        Ok(bin.join(name))
    }
}

fn podsecurity(machine: &Machine) -> Result<PathBuf> {
    const PROGRAM: &str = "podsecurity";
    let print = fingerprint(PODSECURITY.map(|(_, text)| text).concat().as_bytes());
    let key = format!("{PROGRAM}-{:08x}", print >> 32);
    let bin = cache::install(&machine.cache, &key, &[PROGRAM], |part| {
        for (name, text) in PODSECURITY {
            fs::write(part.join(name), text)?;
        }
        let go = Go::find(machine, &key, part)?;
        eprintln!(
            "{key}: building Kubernetes' evaluator of pods; some 2 minutes, once per machine"
        );
        let mut build = Command::new("go");
        build.args(["build", "-trimpath", "-mod=readonly", "-o"]);
        go.run(build.arg(part.join("bin").join(PROGRAM)).arg("."))
    })?;
    Ok(bin.join(PROGRAM))
}

/// Returns a folder with a schema for each kind of a version of Kubernetes.
fn schemas(machine: &Machine, version: &str) -> Result<PathBuf> {
    const DONE: &str = "kinds";
    let key = format!("kubernetes-schemas-{version}-{:08x}", fingerprint(SCHEMAS.as_bytes()) >> 32);
    let bin = cache::install(&machine.cache, &key, &[DONE], |part| {
        let swagger = swagger(machine, version, part)?;
        let folder = part.join("bin");
        fs::create_dir(&folder)?;
        let script = part.join("schemas.py");
        fs::write(&script, SCHEMAS)?;
        let kinds = spawn::output(Command::new("python3").arg(&script).arg(&swagger).arg(&folder))?;
        // Without these the checks of all documents would be skipped or fail one by one.
        for kind in
            ["deployment-apps-v1", "job-batch-v1", "service-v1", "networkpolicy-networking-v1"]
        {
            if !folder.join(format!("{kind}.json")).is_file() {
                bail!("Kubernetes {version}: its API has no `{kind}`");
            }
        }
        fs::write(folder.join(DONE), kinds)?;
        fs::remove_file(&swagger).context("the API cannot be removed")
    })?;
    Ok(bin)
}

/// Downloads the sources of Kubernetes, and leaves the document of its API.
fn swagger(machine: &Machine, version: &str, part: &Path) -> Result<PathBuf> {
    let go = Go::find(machine, &format!("kubernetes-{version}"), part)?;
    eprintln!(
        "kubernetes {version}: downloading its API from the Go module registry; a minute, once per machine"
    );
    let modules = part.join("modules");
    let module = format!("k8s.io/kubernetes@v{version}");
    let mut download = Command::new("go");
    download.args(["mod", "download", "-modcacherw", &module]);
    go.run(download.env("GOMODCACHE", &modules))?;
    let swagger = part.join("swagger.json");
    fs::copy(modules.join(&module).join("api/openapi-spec/swagger.json"), &swagger)
        .with_context(|| format!("{module} has no document of its API"))?;
    cache::remove(&modules)?;
    Ok(swagger)
}
