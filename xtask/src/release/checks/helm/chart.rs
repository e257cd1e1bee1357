//! A chart that Helm renders, with the value files that it is checked by.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::tools::{KUBERNETES, Tools};
use crate::spawn;

/// A packed chart.
#[derive(Debug)]
pub(super) struct Chart<'a> {
    pub(super) tools: &'a Tools,
    pub(super) file: PathBuf,
    /// `deploy/helm`: the chart's folder, its value files, and what comes out of them.
    pub(super) sources: PathBuf,
    /// A folder for what a check makes.
    pub(super) folder: PathBuf,
}

impl Chart<'_> {
    /// Returns the names of the value files.
    pub(super) fn cases(&self) -> Result<Vec<String>> {
        let folder = self.sources.join("cases");
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("`{}`", folder.display()))? {
            let path = entry?.path();
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            names.extend(stem.filter(|_| path.extension().is_some_and(|it| it == "yaml")));
        }
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn case(&self, name: &str) -> PathBuf {
        self.sources.join("cases").join(format!("{name}.yaml"))
    }

    /// Runs a command of Helm on the chart.
    pub(super) fn helm(&self, words: &[&str]) -> Result<String> {
        spawn::output(Command::new(&self.tools.helm).args(words).arg(&self.file))
    }

    /// Renders the chart with a value file, and with further keys by their JSON.
    pub(super) fn render(&self, values: &Path, keys: &[String]) -> Result<String> {
        self.render_for(KUBERNETES[1], values, keys)
    }

    /// Renders the chart for a version of Kubernetes.
    pub(super) fn render_for(
        &self,
        version: &str,
        values: &Path,
        keys: &[String],
    ) -> Result<String> {
        let mut helm = Command::new(&self.tools.helm);
        helm.args(["template", "qualitytrace"]).arg(&self.file);
        helm.args(["--namespace", "quality", "--kube-version", version])
            .arg("--values")
            .arg(values);
        for key in keys {
            helm.arg("--set-json").arg(key);
        }
        let output = helm.output().context("`helm` cannot be started")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout).context("Helm renders UTF-8")
    }

    pub(super) fn lint(&self, values: &Path) -> Result<()> {
        for version in KUBERNETES {
            let mut helm = Command::new(&self.tools.helm);
            helm.args(["lint", "--strict", "--kube-version", version, "--values"]).arg(values);
            spawn::output(helm.arg(&self.file))?;
        }
        Ok(())
    }
}
