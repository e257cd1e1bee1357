//! Permanently rejected requests, stored in a folder so that a person can inspect them and send them again.
//!
//! A dead letter is two files: `….otlp`, the request as it would be posted to an OTLP endpoint over HTTP, and `….txt`,
//! the reason. The size of the folder is limited; the oldest letters are deleted to make room. Deliberately absent:
//! sending them again.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use super::part::{Letter, LetterKind};

/// The maximum number of bytes of stored letters.
pub(crate) const LETTERS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The disk space of a small file on most disks; without it a million small letters would count as little.
const FILE_BYTES_MIN: u64 = 4096;

/// The folder of one exporter.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    folder: PathBuf,
    bytes_max: u64,
    /// The bytes of each letter by its name without extension, oldest first; `None` before the folder was listed.
    known: Option<BTreeMap<String, u64>>,
    sequence: u64,
}

impl DeadLetters {
    pub(crate) fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Self { folder, bytes_max, known: None, sequence: 0 }
    }

    /// Stores a letter. Returns how many old letters were deleted to make room, also if storing failed.
    pub(crate) fn keep(
        &mut self,
        request: &[u8],
        letter: &Letter,
        now: SystemTime,
    ) -> (u64, io::Result<()>) {
        let text = format!("{}\n", letter.message);
        let cost = cost(request.len() as u64) + cost(text.len() as u64);
        let mut removed = 0;
        let kept = self.enter().and_then(|()| {
            // Before writing: if the disk is full, deleting old letters makes room.
            self.make_room(cost, &mut removed)?;
            let name = self.write(request, &text, letter, now)?;
            self.known.get_or_insert_default().insert(name, cost);
            Ok(())
        });
        (removed, kept)
    }

    /// Creates the folder, and lists its letters.
    fn enter(&mut self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        if self.known.is_none() {
            let known = look(&self.folder)?;
            self.sequence =
                known.keys().filter_map(|name| sequence(name)).max().unwrap_or_default();
            self.known = Some(known);
        }
        Ok(())
    }

    /// Deletes the oldest letters, until one of this size fits or none is left.
    fn make_room(&mut self, cost: u64, removed: &mut u64) -> io::Result<()> {
        let known = self.known.get_or_insert_default();
        while known.values().sum::<u64>() + cost > self.bytes_max {
            let Some(oldest) = known.first_entry() else { break };
            remove(&self.folder, oldest.key())?;
            oldest.remove();
            *removed += 1;
        }
        Ok(())
    }

    /// Writes both files, or none, and returns their name.
    fn write(
        &mut self,
        request: &[u8],
        text: &str,
        letter: &Letter,
        now: SystemTime,
    ) -> io::Result<String> {
        let (mut file, name) = loop {
            let name = self.name(letter, now);
            // Another process may use the same folder; `create_new` decides which process gets the name.
            match fs::File::create_new(self.folder.join(format!("{name}.otlp"))) {
                Ok(file) => break (file, name),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        };
        let written = io::Write::write_all(&mut file, request)
            .and_then(|()| fs::write(self.folder.join(format!("{name}.txt")), text));
        if let Err(error) = written {
            // A file that remains anyway is found at the next start.
            remove(&self.folder, &name).unwrap_or_default();
            return Err(error);
        }
        Ok(name)
    }

    fn name(&mut self, letter: &Letter, now: SystemTime) -> String {
        let millis = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        self.sequence += 1;
        let marks = match letter.kind {
            LetterKind::Partial { rejected, of } => format!("-{rejected}-of-{of}"),
            LetterKind::Refused | LetterKind::TooLarge => String::new(),
        };
        format!("{millis:013}-{:06}-{}{marks}", self.sequence, letter.signal.as_str())
    }
}

/// Deletes the files of a letter.
fn remove(folder: &Path, name: &str) -> io::Result<()> {
    for ending in ["otlp", "txt"] {
        match fs::remove_file(folder.join(format!("{name}.{ending}"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn look(folder: &Path) -> io::Result<BTreeMap<String, u64>> {
    let mut known = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        if let Some(name) = name.strip_suffix(".otlp").or(name.strip_suffix(".txt")) {
            *known.entry(name.to_owned()).or_default() += cost(entry.metadata()?.len());
        }
    }
    Ok(known)
}

/// Parses the sequence number, which is the second part of a name.
fn sequence(name: &str) -> Option<u64> {
    name.split('-').nth(1)?.parse().ok()
}

fn cost(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(FILE_BYTES_MIN) * FILE_BYTES_MIN
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::{DeadLetters, Letter, LetterKind};
    use crate::plan::Signal;

    fn letter(kind: LetterKind) -> Letter {
        let message = "`http://there` answered 400".to_owned();
        Letter { signal: Signal::Spans, records: 0..1, kind, message }
    }

    fn names(folder: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn letters_are_named_bounded_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("dead-letters");
        let now = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let mut letters = DeadLetters::new(folder.clone(), 16 * 1024);
        let keep = |letters: &mut DeadLetters, request: &[u8], kind| {
            let (removed, kept) = letters.keep(request, &letter(kind), now);
            kept.map(|()| removed).unwrap()
        };
        assert_eq!(keep(&mut letters, b"one", LetterKind::Refused), 0);
        let partial = LetterKind::Partial { rejected: 3, of: 10 };
        assert_eq!(keep(&mut letters, b"two", partial), 0);
        let first = "1700000000123-000001-spans.otlp";
        let second = "1700000000123-000002-spans-3-of-10.otlp";
        assert_eq!(
            names(&folder),
            [
                first,
                "1700000000123-000001-spans.txt",
                second,
                "1700000000123-000002-spans-3-of-10.txt"
            ]
        );
        assert_eq!(std::fs::read(folder.join(first)).unwrap(), b"one");
        // Another process, or the next start: names do not collide, and the old letters count.
        let mut again = DeadLetters::new(folder.clone(), 16 * 1024);
        assert_eq!(keep(&mut again, &[7; 5000], LetterKind::TooLarge), 2);
        assert_eq!(
            names(&folder),
            ["1700000000123-000003-spans.otlp", "1700000000123-000003-spans.txt"]
        );
    }

    #[test]
    fn a_letter_that_cannot_be_written_leaves_nothing_behind_and_finds_room_made() {
        let folder = tempfile::tempdir().unwrap();
        // Room for one letter.
        let mut letters = DeadLetters::new(folder.path().to_owned(), 8 * 1024);
        let refused = letter(LetterKind::Refused);
        letters.keep(b"one", &refused, UNIX_EPOCH).1.unwrap();
        let obstacle = "0000000000000-000002-spans.txt";
        std::fs::create_dir(folder.path().join(obstacle)).unwrap();
        let (removed, kept) = letters.keep(b"two", &refused, UNIX_EPOCH);
        assert_eq!((removed, kept.is_err()), (1, true));
        assert_eq!(names(folder.path()), [obstacle]);
        letters.keep(b"three", &refused, UNIX_EPOCH).1.unwrap();
        let third = "0000000000000-000003-spans";
        assert_eq!(
            names(folder.path()),
            [obstacle.to_owned(), format!("{third}.otlp"), format!("{third}.txt")]
        );
    }
}
