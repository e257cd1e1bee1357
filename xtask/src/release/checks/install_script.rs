//! `install.sh`: from a loopback server with the layout of a release, and what it refuses.

use std::fs;

use anyhow::Result;

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
        generated::INSTALLER,
    },
};

pub(crate) const CHECK: Check = Check {
    name: "install-script",
    what: "install.sh installs from a loopback server; wrong and truncated files and unknown machines are refused",
    missing: root::missing,
    run,
};

/// Serves a folder with the layout of the release's page, and names it for the script.
const SERVE: &str = "
python3 -m http.server --bind 127.0.0.1 --directory /srv 8000 > /dev/null 2>&1 &
for _ in $(seq 100); do
  if curl --silent --output /dev/null http://127.0.0.1:8000/; then break; fi
  sleep 0.1
done
export QUALITYTRACE_DOWNLOAD=http://127.0.0.1:8000/download";

/// Runs the script where it must refuse; `$1` is the word of its message, and nothing may be installed.
const REFUSALS: &str = include_str!("refusals.sh");

fn run(machine: &Machine, release: &Release) -> Result<Vec<Row>> {
    let archive = format!("{}.tar.gz", release.archive(X86_64.triple));
    let root = Root::fresh(machine, CHECK.name)?;
    root.put(&release.file(INSTALLER), "/srv/download/install.sh")?;
    let good = fs::read(release.file(&archive))?;
    root.put(&release.file(&archive), &format!("/srv/download/{archive}"))?;
    let mut wrong = good.clone();
    if let Some(byte) = wrong.last_mut() {
        *byte ^= 1;
    }
    for (folder, content) in [("wrong", &wrong[..]), ("truncated", &good[..good.len() / 2])] {
        let folder = root.path("/srv").join(folder);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(&archive), content)?;
    }
    root.run(User::Tester, &format!("{SERVE}\n{REFUSALS}"))?;
    let script = "curl --silent --show-error --fail $QUALITYTRACE_DOWNLOAD/install.sh | sh";
    let installed_in = root.run(User::Tester, &format!("{SERVE}\n{script}"))?;
    let place = Place {
        user: User::Tester,
        before: "PATH=~/.local/bin:$PATH",
        manual: "/home/tester/.local",
        completions: "/home/tester/.local",
    };
    let green_in = first_run::make(&root, place)?;
    Ok(vec![Row {
        artefact: INSTALLER.to_owned(),
        bytes: Some(size(release, INSTALLER)?),
        installed_in: Some(installed_in),
        green_in: Some(green_in),
    }])
}
