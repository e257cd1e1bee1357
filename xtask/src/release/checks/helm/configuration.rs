//! The configuration that the chart renders: the program reads it, with every file that it names.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{chart::Chart, manifests::RenderedCase};
use crate::{cache, spawn};

/// Where pods have the configuration and the files that it names.
const MOUNTED: &str = "/etc/qualitytrace/";

/// The name of the configuration, of a server and of a migration.
const NAME: &str = "quality-trace-config.yaml";

/// A token of the right form.
pub(super) const TOKEN: &str = "qtt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Mistakes that the program has to refuse: a text of the configuration, what it becomes, and words of the message.
const PLANTED: [(&str, &str, &str); 3] = [
    ("httpPort: 11633", "httpPrt: 11633", "unknown key `httpPrt`"),
    ("mode: \"on\"", "mode: \"off\"", "server.auth"),
    ("secrets/bootstrap-token", "secrets/no-such-file", "no-such-file"),
];

/// The configurations of a rendering: of the server, and of the migration if it has one.
#[derive(Debug)]
pub(super) struct Configurations {
    pub(super) server: PathBuf,
    pub(super) migration: Option<PathBuf>,
    /// What they are rewritten from.
    pub(super) text: String,
}

pub(super) fn check(chart: &Chart<'_>, program: &Path, renderings: &[RenderedCase]) -> Result<()> {
    let mut read = 0;
    for RenderedCase { case, text } in renderings {
        let made = write(&chart.folder.join("configuration").join(case), text)?;
        for file in std::iter::once(&made.server).chain(&made.migration) {
            let shown = is_read(program, file).with_context(|| format!("{case}: the program"))?;
            if !shown.ends_with("is right") {
                bail!("{case}: the program reads `{}` with: {shown}", file.display());
            }
            read += 1;
        }
        if case == "minimal" {
            planted(program, &made)?;
        }
    }
    println!(
        "  the program reads {read} rendered configurations, and refuses {} planted mistakes",
        PLANTED.len()
    );
    Ok(())
}

/// Returns what the program prints of a configuration that it accepts without a warning.
fn is_read(program: &Path, file: &Path) -> Result<String> {
    let mut check = Command::new(program);
    check.args(["config", "check", "--config"]).arg(file).env_clear();
    let output = check.output().context("the program cannot be started")?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || complaints.contains("warning") {
        bail!("`config check` of `{}`: {}", file.display(), complaints.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn planted(program: &Path, made: &Configurations) -> Result<()> {
    for (text, mistake, words) in PLANTED {
        if !made.text.contains(text) {
            bail!("the chart renders no `{text}` to plant a mistake in");
        }
        fs::write(&made.server, made.text.replace(text, mistake))?;
        match is_read(program, &made.server) {
            Ok(_) => bail!("the program reads `{mistake}`, which was planted"),
            Err(error) if format!("{error:#}").contains(words) => {}
            Err(error) => {
                return Err(error.context(format!("`{mistake}` was planted: expected `{words}`")));
            }
        }
    }
    Ok(())
}

/// Writes the configurations of a rendering into a folder, with the files that its volumes have.
pub(super) fn write(folder: &Path, rendering: &str) -> Result<Configurations> {
    cache::remove(folder)?;
    fs::create_dir_all(folder.join("provisioning"))?;
    for path in projected(rendering) {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().context("a file stands in a folder")?)?;
        content(path, &file)?;
    }
    let here = format!("{}/", folder.display());
    let mut texts = entries(rendering).into_iter().map(|text| {
        text.replace(MOUNTED, &here)
            .replace("dataDirectory: /data", &format!("dataDirectory: {here}data"))
            .replace("provisioning: /provisioning", &format!("provisioning: {here}provisioning"))
    });
    let text = texts.next().context("the chart renders no configuration")?;
    let server = folder.join(NAME);
    fs::write(&server, &text)?;
    let migration = texts.next().map(|text| {
        let file = folder.join("migration.yaml");
        fs::write(&file, text).map(|()| file)
    });
    Ok(Configurations { server, migration: migration.transpose()?, text })
}

/// Returns the entries of ConfigMaps with a configuration, without their indentation.
fn entries(rendering: &str) -> Vec<String> {
    let mut entries = Vec::new();
    let mut lines = rendering.lines();
    while lines.any(|line| line == format!("  {NAME}: |")) {
        let text = lines.clone().map_while(|line| line.strip_prefix("    "));
        entries.push(text.map(|line| format!("{line}\n")).collect());
    }
    entries
}

/// Returns the paths of all files that volumes project.
fn projected(rendering: &str) -> Vec<&str> {
    let paths = rendering.lines().filter_map(|line| line.trim_start().strip_prefix("path: "));
    let mut paths: Vec<_> = paths
        .filter(|path| ["secrets/", "tls/", "files/"].iter().any(|it| path.starts_with(it)))
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Writes a file of the kind that its name tells.
fn content(path: &str, file: &Path) -> Result<()> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let text = match name {
        "bootstrap-token" => TOKEN.to_owned(),
        "tls.crt" => return certificate(file, &file.with_extension("key")),
        // It came with its certificate.
        "tls.key" => return Ok(()),
        _ if name.ends_with(".pem") => return certificate(file, &file.with_extension("pem.key")),
        _ if name.starts_with("ids-key-") => {
            format!("{}{}", "0".repeat(31), name.trim_start_matches("ids-key-"))
        }
        _ if name.starts_with("secrets-key-") => format!("{name}:{}", "ab".repeat(32)),
        _ => "a-secret".to_owned(),
    };
    // Secrets that people write often end with a line break.
    fs::write(file, format!("{text}\n")).with_context(|| format!("`{}`", file.display()))
}

fn certificate(file: &Path, key: &Path) -> Result<()> {
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]);
    openssl.args(["-days", "1", "-subj", "/CN=quality.example.com", "-out"]).arg(file);
    spawn::output(openssl.arg("-keyout").arg(key)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::{entries, projected};

    #[test]
    fn entries_end_where_their_indentation_ends() {
        let text = "data:\n  quality-trace-config.yaml: |\n    a:\n      b: 1\n---\ndata:\n  quality-trace-config.yaml: |\n    c: 2\n";
        assert_eq!(entries(text), ["a:\n  b: 1\n", "c: 2\n"]);
    }

    #[test]
    fn files_of_volumes_are_found_once() {
        let text =
            "  path: /livez\n  path: tls/api/tls.crt\n  path: secrets/a\n  path: secrets/a\n";
        assert_eq!(projected(text), ["secrets/a", "tls/api/tls.crt"]);
    }
}
