//! The output of the command under test: the last lines are kept, and shown when something fails.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use regex::Regex;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::watch,
};

use crate::terminal::Terminal;

/// The upper bound for kept lines.
const LINES_MAX: usize = 1000;
/// The upper bound for kept bytes.
const BYTES_MAX: usize = 256 << 10;
/// The upper bound for a line, in bytes; the rest of a longer one becomes the next line.
const LINE_BYTES_MAX: usize = 8 << 10;

/// The output of one process and all its children.
#[derive(Debug)]
pub(crate) struct ProcessOutput {
    kept: Mutex<OutputLines>,
    /// The terminal that shows the output live.
    live: Option<Terminal>,
    /// A pattern for colour sequences only; other control sequences are escaped when the output is shown.
    colours: Regex,
    /// The pattern of the line that marks the command as ready.
    awaited: Option<Regex>,
    is_matched: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct OutputLines {
    lines: VecDeque<String>,
    bytes: usize,
}

impl ProcessOutput {
    pub(crate) fn new(live: Option<Terminal>, awaited: Option<Regex>) -> Self {
        let colours = Regex::new(r"\x1b\[[0-9;]*m").expect("a pattern that is right");
        Self {
            kept: Mutex::default(),
            live,
            colours,
            awaited,
            is_matched: watch::Sender::new(false),
        }
    }

    /// Returns the last lines, at most `count`.
    pub(crate) fn last(&self, count: usize) -> Vec<String> {
        let kept = self.kept();
        kept.lines.iter().skip(kept.lines.len().saturating_sub(count)).cloned().collect()
    }

    /// Waits for the line that marks the command as ready; forever without a pattern.
    pub(crate) async fn matched(&self) {
        let mut is_matched = self.is_matched.subscribe();
        if is_matched.wait_for(|it| *it).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Reads and keeps the output until the stream is closed.
    pub(crate) async fn keep(&self, mut stream: impl AsyncRead + Unpin) {
        let mut line = Vec::new();
        let mut chunk = vec![0; 8 << 10];
        loop {
            let read = match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => break,
                Ok(read) => read,
            };
            for byte in &chunk[..read] {
                if *byte == b'\n' || line.len() == LINE_BYTES_MAX {
                    self.add(&line);
                    line.clear();
                }
                if *byte != b'\n' {
                    line.push(*byte);
                }
            }
        }
        if !line.is_empty() {
            self.add(&line);
        }
    }

    fn add(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = self.colours.replace_all(line.trim_end_matches('\r'), "").into_owned();
        if let Some(terminal) = &self.live {
            terminal.line(&format!("| {line}"));
        }
        if self.awaited.as_ref().is_some_and(|awaited| awaited.is_match(&line)) {
            self.is_matched.send_replace(true);
        }
        let mut kept = self.kept();
        kept.bytes += line.len();
        kept.lines.push_back(line);
        while kept.lines.len() > LINES_MAX || kept.bytes > BYTES_MAX {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= oldest.len();
        }
    }

    fn kept(&self) -> MutexGuard<'_, OutputLines> {
        // The lines stay consistent if another thread panics.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::{BYTES_MAX, LINES_MAX, ProcessOutput};

    #[tokio::test]
    async fn the_last_lines_are_kept_and_no_more() {
        let output =
            ProcessOutput::new(None, Some(Regex::new("^ready on [0-9]+$").expect("a pattern")));
        let written: String = (0..LINES_MAX + 5).map(|line| format!("line {line}\n")).collect();
        output.keep(written.as_bytes()).await;
        assert_eq!(output.last(2), ["line 1003", "line 1004"]);
        assert_eq!(output.last(usize::MAX).len(), LINES_MAX);
        assert!(!*output.is_matched.borrow());
        output.keep(&b"\x1b[1;32mready on \x1b[0m80\r\nno line end"[..]).await;
        output.matched().await;
        assert_eq!(output.last(2), ["ready on 80", "no line end"]);
        output.keep("x".repeat(BYTES_MAX * 2).as_bytes()).await;
        let kept: usize = output.last(usize::MAX).iter().map(String::len).sum();
        assert!(kept <= BYTES_MAX && kept > BYTES_MAX / 2, "{kept}");
    }
}
