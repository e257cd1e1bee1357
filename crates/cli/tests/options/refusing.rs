//! A server that rejects every client: it responds to every request with 401.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use anyhow::Result;

/// Listens until the process ends.
pub(crate) struct Refusing {
    pub(crate) address: SocketAddr,
}

impl Refusing {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that disconnects early has been rejected as well.
                drop(refuse(&stream));
            }
        });
        Ok(Self { address })
    }
}

fn refuse(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut request = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    // Reads the request to its end: an earlier response would overtake the request.
    while request.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        line.clear();
    }
    std::io::copy(&mut request.take(length), &mut std::io::sink())?;
    stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}
