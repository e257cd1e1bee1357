//! A registry in the network of a container engine, and the image of a release in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};

use super::{Release, container_engine::ContainerEngine, image, image_tools::CRANE};
use crate::{cache, machine::Machine, spawn};

/// Its address. Nothing else is in the network of an engine.
const ADDRESS: &str = "127.0.0.1:5000";

const READY_WITHIN: Duration = Duration::from_secs(10);

/// A running registry with the image of a release. It ends when it is dropped.
pub(crate) struct Registry<'e> {
    engine: &'e ContainerEngine,
    crane: PathBuf,
    process: Child,
    /// The image by its tag.
    pub(crate) tag: String,
}

impl<'e> Registry<'e> {
    /// Starts a registry and pushes the index of all platforms.
    pub(crate) fn start(
        machine: &Machine,
        release: &Release,
        engine: &'e ContainerEngine,
        layout: &Path,
    ) -> Result<Self> {
        let crane = CRANE.program(machine)?;
        let mut serve = engine.within(&crane);
        serve.args(["registry", "serve", "--address", ADDRESS]);
        let process = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.context("`nsenter` cannot be started")?;
        let tag = format!("{ADDRESS}/qualitytrace:{}", release.version);
        let registry = Self { engine, crane, process, tag };
        registry.await_ready(machine)?;
        registry.crane(&["push", &layout.display().to_string(), &registry.tag])?;
        Ok(registry)
    }

    fn await_ready(&self, machine: &Machine) -> Result<()> {
        let began = (machine.clock.now)();
        while let Err(error) = self.crane(&["catalog", ADDRESS]) {
            if (machine.clock.now)() - began > READY_WITHIN {
                return Err(error.context("the registry on loopback does not respond"));
            }
            (machine.clock.sleep)(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Runs crane in the network of the registry, and returns its output.
    pub(crate) fn crane(&self, arguments: &[&str]) -> Result<String> {
        spawn::output(self.engine.within(&self.crane).args(arguments))
    }

    /// Pulls the image by the digest that the registry has for the tag, and returns its name.
    pub(crate) fn pull(&self) -> Result<String> {
        let digest = self.crane(&["digest", &self.tag])?;
        let name = self.tag.rsplit_once(':').map_or(self.tag.as_str(), |(name, _)| name);
        let image = format!("{name}@{digest}");
        spawn::output(self.engine.docker().args(["pull", "-q", &image]))?;
        Ok(image)
    }
}

impl Drop for Registry<'_> {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Unpacks the image of a release into a folder of this checkout.
pub(crate) fn unpack(machine: &Machine, release: &Release, name: &str) -> Result<PathBuf> {
    let (file, layout) = (image::file(release), machine.state().join(name));
    cache::remove(&layout)?;
    fs::create_dir_all(&layout)?;
    let mut tar = Command::new("tar");
    spawn::output(tar.arg("-xf").arg(&file).arg("-C").arg(&layout)).with_context(|| {
        format!("`{}` cannot be unpacked; `cargo xtask release package` makes it", file.display())
    })?;
    Ok(layout)
}
