//! What the chart renders: golden files, the API of Kubernetes, and the Pod Security Standard `restricted`.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{
    chart::Chart,
    tools::{KUBERNETES, Tools},
};
use crate::{machine::Machine, spawn};

/// The one kind that is not of Kubernetes itself, and has no schema in its API.
const WITHOUT_SCHEMA: &str = "ServiceMonitor";

/// How many value files the chart is shown with at least.
const CASES_MIN: usize = 6;

/// Mistakes that a check has to find in what the chart renders: a text, what it becomes, and words of the message.
const PLANTED: [(&str, &str, &str); 4] = [
    (
        "containerPort: 4317",
        "containerPrt: 4317",
        "additional properties 'containerPrt' not allowed",
    ),
    ("failureThreshold: 60", "failureThreshold: sixty", "got string, want integer"),
    (
        "restartPolicy: Never",
        "restartPolicies: Never",
        "additional properties 'restartPolicies' not allowed",
    ),
    ("serviceName: qualitytrace-pods", "service: qualitytrace-pods", "'service' not allowed"),
];

/// The same for Pod Security.
const UNSAFE: [(&str, &str, &str); 4] = [
    ("drop: [ALL]", "drop: [NET_RAW]", "unrestricted capabilities"),
    ("runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot"),
    (
        "allowPrivilegeEscalation: false",
        "allowPrivilegeEscalation: true",
        "allowPrivilegeEscalation",
    ),
    ("type: RuntimeDefault", "type: Unconfined", "seccompProfile"),
];

/// What a value file renders.
#[derive(Debug)]
pub(super) struct RenderedCase {
    pub(super) case: String,
    pub(super) text: String,
}

pub(super) fn check(machine: &Machine, chart: &Chart<'_>) -> Result<Vec<RenderedCase>> {
    let cases = chart.cases()?;
    if cases.len() < CASES_MIN {
        bail!("deploy/helm/cases has {} value files: expected at least {CASES_MIN}", cases.len());
    }
    let (mut renderings, mut changed) = (Vec::new(), Vec::new());
    let (mut resources, mut pods) = (0, 0);
    for case in cases {
        chart.lint(&chart.case(&case))?;
        let text = chart.render(&chart.case(&case), &[])?;
        if text != chart.render_for(KUBERNETES[0], &chart.case(&case), &[])? {
            bail!("{case}: the chart renders differently for Kubernetes {}", KUBERNETES[0]);
        }
        let golden = chart.sources.join("golden").join(format!("{case}.yaml"));
        changed.extend(compare(&golden, &text)?);
        let file = chart.folder.join(format!("{case}.yaml"));
        fs::write(&file, &text)?;
        resources += fits_kubernetes(chart.tools, &file)?;
        pods += is_restricted(chart.tools, &file)?;
        renderings.push(RenderedCase { case, text });
    }
    let (files, more_resources, more_pods) = plain(machine, chart, &mut changed)?;
    if !changed.is_empty() {
        bail!(
            "the chart renders something else than {}: read the differences to the files beside them that end with \
             `.proposed`, and accept them by `cargo xtask accept`",
            changed.join(", ")
        );
    }
    planted(chart, &renderings)?;
    println!(
        "  {} value files, linted and as their golden files; {files} plain manifests; {} resources fit Kubernetes {}; {} \
         pods are restricted; {} planted mistakes found; of kind {WITHOUT_SCHEMA}, which has no schema, nothing is checked",
        renderings.len(),
        resources + more_resources,
        KUBERNETES.join(" and "),
        pods + more_pods,
        PLANTED.len() + UNSAFE.len(),
    );
    Ok(renderings)
}

/// Checks the plain manifests, and returns the number of their files, resources and pods.
fn plain(
    machine: &Machine,
    chart: &Chart<'_>,
    changed: &mut Vec<String>,
) -> Result<(usize, usize, usize)> {
    let folder = machine.root.join("deploy/kubernetes");
    let text = chart.render(&folder.join("values.yaml"), &[])?;
    changed.extend(compare(&folder.join("qualitytrace.yaml"), &without_helm(&text))?);
    let (mut files, mut resources, mut pods) = (0, 0, 0);
    for entry in fs::read_dir(&folder).with_context(|| format!("`{}`", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        if name.ends_with(".yaml") && name != "values.yaml" {
            files += 1;
            resources += fits_kubernetes(chart.tools, &path)?;
            pods += is_restricted(chart.tools, &path)?;
        }
    }
    Ok((files, resources, pods))
}

/// Removes the labels by which Helm finds what it has installed: `kubectl` installs these.
fn without_helm(text: &str) -> String {
    let of_helm = |line: &str| {
        let line = line.trim_start();
        line.starts_with("helm.sh/chart:") || line == "app.kubernetes.io/managed-by: Helm"
    };
    let head = "# Made by `helm template` from the chart and values.yaml. `cargo xtask release verify helm` compares.\n";
    let lines = text.lines().filter(|line| !of_helm(line));
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    format!("{head}{lines}")
}

/// Compares a text with its golden file; writes a proposal and returns the file's name if they differ.
fn compare(golden: &Path, text: &str) -> Result<Option<String>> {
    let proposed = golden.with_extension("yaml.proposed");
    if fs::read_to_string(golden).is_ok_and(|expected| expected == text) {
        if proposed.exists() {
            fs::remove_file(&proposed)?;
        }
        return Ok(None);
    }
    fs::write(&proposed, text).with_context(|| format!("`{}`", proposed.display()))?;
    Ok(Some(golden.display().to_string()))
}

/// Checks a file against both versions, and returns the number of its resources with a schema.
fn fits_kubernetes(tools: &Tools, file: &Path) -> Result<usize> {
    let mut counts = Vec::new();
    for (version, folder) in KUBERNETES.iter().zip(&tools.schemas) {
        let mut kubeconform = Command::new(&tools.kubeconform);
        kubeconform.args(["-strict", "-summary", "-skip", WITHOUT_SCHEMA, "-schema-location"]);
        let pattern =
            format!("{}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json", folder.display());
        let output = kubeconform.arg(pattern).arg(file).output().context("`kubeconform`")?;
        let shown = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            bail!("Kubernetes {version}: {}", shown.trim());
        }
        let valid = shown.split("Valid: ").nth(1).and_then(|rest| rest.split(',').next());
        let valid: usize =
            valid.unwrap_or_default().parse().context("the summary of kubeconform")?;
        if valid == 0 {
            bail!("Kubernetes {version}: `{}` has no resource", file.display());
        }
        counts.push(valid);
    }
    if counts.windows(2).any(|pair| pair[0] != pair[1]) {
        bail!("`{}`: {counts:?} resources with a schema", file.display());
    }
    Ok(counts.first().copied().unwrap_or_default())
}

/// Checks the pods of a file, and returns their number.
fn is_restricted(tools: &Tools, file: &Path) -> Result<usize> {
    let mut podsecurity = Command::new(&tools.podsecurity);
    let count = spawn::output(podsecurity.stdin(File::open(file)?))
        .with_context(|| format!("`{}`: a pod is not restricted", file.display()))?;
    count.parse().context("the number of pods")
}

/// Plants mistakes into a rendering: each check has to find its own.
fn planted(chart: &Chart<'_>, renderings: &[RenderedCase]) -> Result<()> {
    let minimal = renderings.iter().find(|it| it.case == "minimal");
    let minimal = &minimal.context("deploy/helm/cases has no minimal.yaml")?.text;
    for mistake in &PLANTED {
        find(chart, minimal, mistake, fits_kubernetes)?;
    }
    for mistake in &UNSAFE {
        find(chart, minimal, mistake, is_restricted)?;
    }
    Ok(())
}

/// Plants one mistake, which a check has to find.
fn find(
    chart: &Chart<'_>,
    rendering: &str,
    (text, mistake, words): &(&str, &str, &str),
    check: fn(&Tools, &Path) -> Result<usize>,
) -> Result<()> {
    if !rendering.contains(text) {
        bail!("the chart renders no `{text}` to plant a mistake in");
    }
    let file = chart.folder.join("planted.yaml");
    fs::write(&file, rendering.replace(text, mistake))?;
    match check(chart.tools, &file) {
        Ok(_) => bail!("`{mistake}` was planted and not found"),
        Err(error) if format!("{error:#}").contains(words) => Ok(()),
        Err(error) => Err(error.context(format!("`{mistake}` was planted: expected `{words}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::{compare, without_helm};

    #[test]
    fn a_difference_is_proposed_and_the_proposal_goes_with_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let golden = folder.path().join("a.yaml");
        let proposed = folder.path().join("a.yaml.proposed");
        assert!(compare(&golden, "new").expect("compared").is_some());
        assert_eq!(std::fs::read_to_string(&proposed).expect("proposed"), "new");
        std::fs::rename(&proposed, &golden).expect("accepted");
        assert!(compare(&golden, "newer").expect("compared").is_some());
        assert!(compare(&golden, "new").expect("compared").is_none());
        assert!(!proposed.exists());
    }

    #[test]
    fn plain_manifests_have_no_labels_of_helm() {
        let text = "labels:\n  app.kubernetes.io/managed-by: Helm\n  helm.sh/chart: a-1\n  a: b\n";
        assert!(without_helm(text).ends_with("labels:\n  a: b\n"), "{}", without_helm(text));
    }
}
