//! Messages to systemd about the state of the server, by its protocol: `Type=notify`, and `WatchdogSec=`.
//!
//! The unit is started once the server listens, also while it waits for its database: it would be killed otherwise, and what it waits
//! for is in its status. Deliberately absent: other service managers.

use std::{io, os::unix::net::UnixDatagram, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use server::config::Environment;

use crate::terminal::Terminal;

/// The connection to the service manager; sends nothing without one.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    socket: Option<UnixDatagram>,
    /// How often the watchdog expects to hear of this process.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Connects to the one that started this process. One that cannot be reached would stop the server later, and without a reason.
    pub(crate) fn new(environment: &Environment, terminal: &Terminal) -> Self {
        let connected = environment.get("NOTIFY_SOCKET").map(|path| (path, connect(path)));
        if let Some((path, Err(error))) = &connected {
            terminal.line(&format!(
                "warning: the service manager gets no messages: `NOTIFY_SOCKET` is `{path}`: {error}"
            ));
        }
        let socket = connected.and_then(|(_, socket)| socket.ok());
        let is_ours = environment
            .get("WATCHDOG_PID")
            .is_none_or(|process| process.parse() == Ok(std::process::id()));
        let watchdog = environment.get("WATCHDOG_USEC").filter(|_| is_ours);
        let watchdog = watchdog.and_then(|micros| micros.parse().ok()).map(Duration::from_micros);
        let watchdog = watchdog.filter(|interval| !interval.is_zero());
        Self { socket, watchdog }
    }

    /// Reports that the server listens, and what it waits for.
    pub(crate) fn started(&self, waits: Option<&str>) {
        self.send(&format!("READY=1\nSTATUS={}", status(waits)));
    }

    /// Reports whether the server is ready.
    pub(crate) fn status(&self, waits: Option<&str>) {
        self.send(&format!("STATUS={}", status(waits)));
    }

    /// Reports that the configuration is being read again.
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// Reports that the configuration was read again.
    pub(crate) fn reloaded(&self) {
        self.send("READY=1");
    }

    /// Reports that the server shuts down.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=stopping: runs in flight may end, queued telemetry is sent");
    }

    /// Reports that this process is alive, twice in each interval of the watchdog. It ends only where there is no watchdog.
    pub(crate) async fn keep_alive(self: std::sync::Arc<Self>) {
        let (Some(_), Some(interval)) = (&self.socket, self.watchdog) else { return };
        loop {
            self.send("WATCHDOG=1");
            tokio::time::sleep(interval / 2).await;
        }
    }

    fn send(&self, message: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(message.as_bytes())
        {
            tracing::debug!(%error, "the service manager does not receive a message");
        }
    }
}

fn status(waits: Option<&str>) -> String {
    // A status is one line.
    waits.map_or("ready".to_owned(), |why| format!("not ready: {}", why.replace('\n', " ")))
}

/// Connects to a path, or to an abstract name, which begins with `@`.
fn connect(path: &str) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    match path.strip_prefix('@') {
        #[cfg(target_os = "linux")]
        Some(name) => {
            let name = <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)?;
            socket.connect_addr(&name)?;
        }
        _ => socket.connect(path)?,
    }
    // A manager that does not read must not stop the server.
    socket.set_nonblocking(true)?;
    Ok(socket)
}
