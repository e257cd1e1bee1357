//! The deb: installed, upgraded and purged by dpkg, and used in between.

use std::{collections::BTreeSet, fs, process::Command};

use anyhow::{Context, Result, bail};

use super::{
    Check, Row,
    first_run::{self, Place},
    root::{self, Root, User},
};
use crate::{
    machine::Machine,
    release::{
        Release,
        artefacts::{X86_64, size},
    },
    spawn,
};

pub(crate) const CHECK: Check = Check {
    name: "deb",
    what: "dpkg installs, upgrades and purges the deb for x86_64; purging leaves nothing",
    missing: |machine| {
        let no_dpkg =
            || machine.in_path("dpkg-deb").is_none().then(|| "there is no `dpkg-deb`".to_owned());
        root::missing(machine).or_else(no_dpkg)
    },
    run,
};

const CONFIGURATION: &str = "/etc/qualitytrace/quality-trace-config.yaml";

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let name = release.deb(&X86_64);
    let deb = release.file(&name);
    let root = Root::fresh(machine, CHECK.name)?;
    root.put(&deb, "/tmp/new.deb")?;
    older(&root, release)?;
    // systemd makes this folder for the first dynamic user of a machine.
    root.run(User::Root, "mkdir -m 700 -p /var/lib/private")?;
    list(&root, "/tmp/before")?;

    // An upgrade keeps what the user wrote into the configuration.
    root.run(User::Root, "dpkg -i /tmp/old.deb")?;
    root.run(User::Root, &format!("echo '# mine' >> {CONFIGURATION}"))?;
    root.run(User::Root, "dpkg --force-confdef -i /tmp/new.deb < /dev/null")?;
    root.run(User::Root, &format!("grep -q '# mine' {CONFIGURATION}"))?;
    let version = &release.version;
    root.run(
        User::Root,
        &format!("[ \"$(dpkg-query -W -f '${{Version}}' qualitytrace)\" = {version} ]"),
    )?;
    purge(&root)?;

    let installed_in = root.run(User::Root, "dpkg -i /tmp/new.deb")?;
    root.run(
        User::Root,
        "dpkg --verify qualitytrace > /tmp/verify; [ ! -s /tmp/verify ]; rm /tmp/verify",
    )?;
    root.run(
        User::Root,
        &format!("dpkg-query -W -f '${{Conffiles}}' qualitytrace | grep -q {CONFIGURATION}"),
    )?;
    let place = Place { user: User::Tester, before: "", manual: "/usr", completions: "/usr" };
    let green_in = first_run::make(&root, place)?;
    // What a server leaves: its state, which systemd links to, and credentials.
    root.run(
        User::Root,
        "mkdir -p /var/lib/private/qualitytrace/wal; ln -s private/qualitytrace /var/lib/qualitytrace
        echo secret > /etc/qualitytrace/credentials/postgres-password",
    )?;
    purge(&root)?;
    Ok(vec![Row {
        bytes: Some(size(release, &name)?),
        artefact: name,
        installed_in: Some(installed_in),
        green_in: Some(green_in),
    }])
}

/// Purges the package, and compares the system with the one before it.
fn purge(root: &Root<'_>) -> Result<()> {
    root.run(User::Root, "dpkg -P qualitytrace")?;
    list(root, "/tmp/after")?;
    let [before, after] =
        ["/tmp/before", "/tmp/after"].map(|list| fs::read_to_string(root.path(list)));
    let (before, after) = (before?, after?);
    let before: BTreeSet<_> = before.lines().collect();
    let left: Vec<_> = after.lines().filter(|line| !before.contains(line)).collect();
    if !left.is_empty() {
        bail!("purging left {}", left.join(", "));
    }
    Ok(())
}

/// Lists all files but those of the check itself.
fn list(root: &Root<'_>, to: &str) -> Result<()> {
    let script = format!(
        "find / -xdev \\( -path /proc -o -path /tmp -o -path /var/cache/man -o -path /home/tester -o -path '/var/lib/dpkg/*-old' \
         -o -path /var/log \\) -prune -o -print | LC_ALL=C sort > {to}"
    );
    root.run(User::Root, &script).map(drop)
}

/// Makes a package that differs from the released one by its version, which is older.
fn older(root: &Root<'_>, release: &Release) -> Result<()> {
    let folder = root.path("/tmp/older");
    let deb = release.file(&release.deb(&X86_64));
    spawn::output(Command::new("dpkg-deb").arg("--raw-extract").arg(deb).arg(&folder))?;
    let control = folder.join("DEBIAN/control");
    let text = fs::read_to_string(&control)?;
    let now = format!("Version: {}\n", release.version);
    if !text.contains(&now) {
        bail!("the package is not of version {}:\n{text}", release.version);
    }
    fs::write(&control, text.replace(&now, "Version: 0.0.1\n"))?;
    let mut build = Command::new("dpkg-deb");
    build.args(["-Znone", "--build"]).arg(&folder).arg(root.path("/tmp/old.deb"));
    spawn::output(&mut build).context("the older package")?;
    fs::remove_dir_all(&folder).context("the files of the older package")
}
