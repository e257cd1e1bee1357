//! Free loopback ports, and checks whether a server responds there.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result};

const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Returns loopback addresses that are free now; all different, because all stay bound until the last is found.
pub(super) fn free<const N: usize>() -> Result<[SocketAddr; N]> {
    let mut held = Vec::with_capacity(N);
    let mut found = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); N];
    for address in &mut found {
        let listener = TcpListener::bind(*address).context("no free port on 127.0.0.1")?;
        *address = listener.local_addr()?;
        held.push(listener);
    }
    Ok(found)
}

/// Whether `GET /` there returns status 200.
pub(super) fn answers(address: SocketAddr) -> bool {
    answers_at(address, "/")
}

/// Whether `GET` of this path there returns status 200.
pub(super) fn answers_at(address: SocketAddr, path: &str) -> bool {
    let status = || {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").as_bytes())?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        std::io::Result::Ok(status)
    };
    status().is_ok_and(|line| line.starts_with(b"HTTP/1.") && line.ends_with(b" 200"))
}
