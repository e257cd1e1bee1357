//! The stored state of a running service: one small file of `key value` lines, which includes its passwords.

use std::{
    fs::{self, File, Permissions},
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use anyhow::{Context, Result};

use super::process::Process;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) process: Process,
    pub(super) address: String,
    pub(super) connect: String,
    pub(super) variables: Vec<(String, String)>,
}

const OWNER_ONLY: u32 = 0o600;

impl Record {
    /// Reads the record of a file; none if there is no file, or another version of this program wrote it.
    pub(super) fn read(file: &Path) -> Option<Self> {
        let text = fs::read_to_string(file).ok()?;
        let (mut pid, mut start, mut address, mut connect) = (None, None, None, None);
        let mut variables = Vec::new();
        for line in text.lines() {
            match line.split_once(' ')? {
                ("pid", value) => pid = value.parse().ok(),
                ("start", value) => start = value.parse().ok(),
                ("address", value) => address = Some(value.to_owned()),
                ("connect", value) => connect = Some(value.to_owned()),
                ("variable", value) => {
                    let (name, value) = value.split_once('=')?;
                    variables.push((name.to_owned(), value.to_owned()));
                }
                _ => return None,
            }
        }
        let process = Process { pid: pid?, start: start? };
        Some(Self { process, address: address?, connect: connect?, variables })
    }

    /// Writes the record atomically, readable by the owner only.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let Self { process, address, connect, variables } = self;
        let mut text = format!("pid {}\nstart {}\n", process.pid, process.start);
        text += &format!("address {address}\nconnect {connect}\n");
        for (name, value) in variables {
            text += &format!("variable {name}={value}\n");
        }
        let part = file.with_extension("part");
        File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(OWNER_ONLY)
            .open(&part)
            .and_then(|mut new| {
                // An existing file has kept its mode.
                new.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
                new.write_all(text.as_bytes())
            })
            .and_then(|()| fs::rename(&part, file))
            .with_context(|| format!("`{}` cannot be written", file.display()))
    }

    pub(super) fn forget(file: &Path) -> Result<()> {
        if file.exists() {
            fs::remove_file(file)
                .with_context(|| format!("`{}` cannot be removed", file.display()))?;
        }
        Ok(())
    }
}
