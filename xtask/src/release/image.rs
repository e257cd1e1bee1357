//! The image: the binaries of the archives, each for its platform, in one index as an OCI layout in a tar.
//!
//! It is assembled by buildah, which needs no daemon. The layers have the time of the commit, so that the same binaries give the same
//! bytes. The certificates are those of Debian's package and not those of this machine, which may trust authorities of its own.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{
    Release,
    artefacts::{TARGETS, Target},
    supply::{self, DebianPart},
};
use crate::{cache, machine::Machine, packages, spawn};

/// The platforms of the index, as an image names them and as a target does.
pub(crate) const PLATFORMS: [(&str, &str); 2] = [("amd64", "x86_64"), ("arm64", "aarch64")];

/// The folder with the Containerfile and the users.
const SOURCES: &str = "deploy/image";

/// Debian's package with the authorities of Mozilla.
const CERTIFICATES: &str = "ca-certificates";

/// Returns why this machine cannot assemble the image; none if it can.
pub(crate) fn missing(machine: &Machine) -> Option<String> {
    let is_there = machine.in_path("buildah").is_some() || machine.is_root();
    (!is_there).then(|| "there is no `buildah`, and only root may install it".to_owned())
}

/// Returns the path of the image.
pub(crate) fn file(release: &Release) -> PathBuf {
    release.file(&format!("qualitytrace-{}-image.oci.tar", release.version))
}

/// Returns the archive of an architecture, if the release has one.
pub(crate) fn archive(release: &Release, architecture: &str) -> Option<PathBuf> {
    let begin = format!("qualitytrace-{}-{architecture}-", release.version);
    let files = fs::read_dir(&release.folder).ok()?.flatten();
    let mut names = files.filter_map(|file| file.file_name().into_string().ok());
    let name = names.find(|name| name.starts_with(&begin) && name.ends_with(".tar.gz"))?;
    Some(release.file(&name))
}

/// Writes the image of a release, from its archives; `epoch` is the time of every file, in seconds since 1970. An architecture without
/// an archive is not in the index, which it prints.
pub(crate) fn package(machine: &Machine, release: &Release, epoch: u64) -> Result<PathBuf> {
    if machine.in_path("buildah").is_none() {
        packages::install(machine, "buildah", "there is no `buildah` to assemble an image", None)?;
    }
    let folder = machine.state().join("image");
    cache::remove(&folder)?;
    fs::create_dir_all(&folder)
        .with_context(|| format!("`{}` cannot be made", folder.display()))?;
    let content = folder.join("content");
    let platforms = collect(machine, release, &content)?;
    let assembled = assemble(machine, release, &folder, (&platforms, epoch));
    cache::remove(&folder)?;
    let part = DebianPart {
        name: CERTIFICATES.to_owned(),
        version: certificates_version()?,
        licence: "MPL-2.0".to_owned(),
    };
    let is_in = |target: &&&Target| archive(release, target.rpm).is_some();
    let triples: Vec<_> = TARGETS.iter().filter(is_in).map(|target| target.triple).collect();
    supply::write_image(machine, release, &triples, &[part])?;
    assembled
}

/// Collects the files of the image in a folder, and returns its platforms.
fn collect(machine: &Machine, release: &Release, content: &Path) -> Result<Vec<&'static str>> {
    let etc = content.join("etc");
    for folder in ["etc/ssl/certs", "doc", "data"] {
        fs::create_dir_all(content.join(folder))?;
    }
    for name in ["passwd", "group"] {
        fs::copy(machine.root.join(SOURCES).join(name), etc.join(name))?;
    }
    fs::copy(certificates(machine)?, etc.join("ssl/certs/ca-certificates.crt"))?;
    let mut platforms = Vec::new();
    for (platform, architecture) in PLATFORMS {
        let Some(archive) = archive(release, architecture) else {
            eprintln!(
                "image: without {platform}, because the release has no archive for {architecture}"
            );
            continue;
        };
        let bin = content.join("bin").join(platform);
        fs::create_dir_all(&bin)?;
        let unpack = |to: &Path, names: &[&str]| {
            let mut tar = Command::new("tar");
            tar.args(["--no-same-owner", "--strip-components=1", "--wildcards", "-xzf"]);
            tar.arg(&archive).arg("-C").arg(to);
            spawn::output(tar.args(names)).map(drop)
        };
        unpack(&bin, &["*/qualitytrace"])?;
        unpack(&content.join("doc"), &["*/LICENSE", "*/THIRD-PARTY-LICENSES.md"])?;
        platforms.push(platform);
    }
    if platforms.is_empty() {
        bail!("`{}` has no archive to make an image of", release.folder.display());
    }
    plain(content)?;
    Ok(platforms)
}

/// Gives the files modes that do not depend on the umask of this process.
fn plain(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_folder = entry.file_type()?.is_dir();
        let is_program = entry.file_name() == "qualitytrace";
        let mode = if is_folder || is_program { 0o755 } else { 0o644 };
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode))?;
        if is_folder {
            plain(&entry.path())?;
        }
    }
    Ok(())
}

/// Returns the version of Debian's package with the authorities.
fn certificates_version() -> Result<String> {
    let mut show = Command::new("apt-cache");
    let shown = spawn::output(show.args(["show", "--no-all-versions", CERTIFICATES]))?;
    let version = shown.lines().find_map(|line| line.strip_prefix("Version: "));
    version
        .map(str::to_owned)
        .context("`apt-cache show ca-certificates` prints no version: run `apt-get update` once")
}

/// Returns the authorities of Mozilla as Debian packages them, in one file.
fn certificates(machine: &Machine) -> Result<PathBuf> {
    const FILE: &str = "ca-certificates.crt";
    let key = format!("{CERTIFICATES}-{}", certificates_version()?);
    let bin = cache::install(&machine.cache, &key, &[FILE], |part| {
        let package = packages::download(machine, CERTIFICATES, part)?;
        let unpacked = part.join("unpacked");
        spawn::output(Command::new("dpkg").arg("-x").arg(&package).arg(&unpacked))?;
        let folder = unpacked.join("usr/share/ca-certificates/mozilla");
        let files = fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
        let mut files: Vec<_> = files.into_iter().map(|file| file.path()).collect();
        files.sort();
        let texts = files.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
        fs::create_dir(part.join("bin"))?;
        fs::write(part.join("bin").join(FILE), texts.concat())?;
        fs::remove_file(package)?;
        cache::remove(&unpacked)
    })?;
    Ok(bin.join(FILE))
}

/// Builds each platform, joins them in an index, and packs it.
fn assemble(
    machine: &Machine,
    release: &Release,
    folder: &Path,
    (platforms, epoch): (&[&str], u64),
) -> Result<PathBuf> {
    const INDEX: &str = "qualitytrace";
    let mut git = Command::new("git");
    let revision = spawn::output(git.args(["rev-parse", "HEAD"]).current_dir(&machine.root))?;
    let epoch = epoch.to_string();
    let buildah = |arguments: &[&str]| {
        let mut buildah = Command::new("buildah");
        buildah.arg("--root").arg(folder.join("storage"));
        buildah.arg("--runroot").arg(folder.join("run")).args(arguments);
        buildah.env("STORAGE_DRIVER", "vfs").env("BUILDAH_ISOLATION", "chroot");
        buildah.current_dir(folder);
        spawn::output(&mut buildah)
    };
    buildah(&["manifest", "create", INDEX])?;
    let containerfile = machine.root.join(SOURCES).join("Containerfile");
    let containerfile = containerfile.display().to_string();
    for platform in platforms {
        let platform = format!("linux/{platform}");
        let version = format!("VERSION={}", release.version);
        let revision = format!("REVISION={revision}");
        buildah(&[
            "bud",
            "--quiet",
            "--pull-never",
            "--platform",
            &platform,
            "--timestamp",
            &epoch,
            "--build-arg",
            &version,
            "--build-arg",
            &revision,
            "--manifest",
            INDEX,
            "--file",
            &containerfile,
            "content",
        ])?;
    }
    buildah(&["manifest", "push", "--all", INDEX, &format!("oci:layout:{}", release.version)])?;
    let file = file(release);
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"]);
    tar.args(["--mode=u=rwX,go=rX", &format!("--mtime=@{epoch}"), "-C"]);
    tar.arg(folder.join("layout")).arg("-cf").arg(&file).arg(".");
    spawn::output(&mut tar)?;
    Ok(file)
}
