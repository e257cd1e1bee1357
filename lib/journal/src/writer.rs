//! Puts records into files, acknowledgements beside them, and takes files away. All of it happens outside of the state's
//! lock; the order of locks is reader, writer, slots, state.

use std::{
    fs::{File, OpenOptions},
    io, mem,
    os::unix::fs::FileExt,
    sync::{Arc, MutexGuard},
    time::Duration,
};

use crate::{
    folder::Folder,
    format::{self, Slot},
    group::Group,
    options::Durability,
    segment::OnDisk,
    shared::{Shared, lock},
    state::State,
};

/// How long producers leave a disk alone that has refused.
pub(crate) const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// What is under the lock of those who write records.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    file: Option<(u64, Arc<File>)>,
    buffer: Vec<u8>,
    /// Files with something that the device may not have yet.
    unsynced: Vec<(u64, Arc<File>)>,
}

/// What is under the lock of those who write acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    file: Option<(u64, Arc<File>)>,
    unsynced: Option<(u64, Arc<File>)>,
}

impl Shared {
    /// Writes everything up to this position. Without a directory nothing is ever written.
    pub(crate) fn write_up_to(&self, writer: &mut Writer, at: u64) -> io::Result<()> {
        while self.write_group(writer, at)? {}
        Ok(())
    }

    /// Writes one group if something before this position is unwritten, and says whether it did.
    pub(crate) fn write_group(&self, writer: &mut Writer, at: u64) -> io::Result<bool> {
        let Some(folder) = &self.folder else { return Ok(false) };
        let group = {
            let mut state = lock(&self.state);
            if state.written.at >= at {
                return Ok(false);
            }
            state.next_group(&mut writer.buffer)
        };
        let Some(group) = group else { return Ok(false) };
        let result = writer.put(folder, &group, self.durability);
        let (is_doomed, is_lagging) = {
            let mut state = lock(&self.state);
            state.finish_group(&group, result.is_ok());
            match &result {
                Ok(()) => self.note_unsynced(&mut state),
                Err(error) => {
                    state.refuse(error, (self.now)(), REFUSED_PAUSE);
                    self.unpark(&mut state);
                }
            }
            if state.tally.holding > 0 {
                self.room.notify_all();
            }
            (!state.doomed.is_empty(), state.lagging_slot().is_some())
        };
        writer.buffer = group.into_buffer();
        if is_doomed {
            self.delete_doomed();
        }
        if is_lagging {
            self.write_slot();
        }
        result.map(|()| true)
    }

    /// Brings the acknowledgement in the file up to date. A failure costs a repetition after a crash, no more; the next
    /// acknowledgement tries again.
    pub(crate) fn write_slot(&self) {
        let Some(folder) = &self.folder else { return };
        let mut slots = lock(&self.slots);
        let Some((id, slot)) = lock(&self.state).lagging_slot() else { return };
        let result = slots.put(folder, id, slot);
        let mut state = lock(&self.state);
        self.note_unsynced(&mut state);
        match result {
            Ok(()) => {
                if let Some(segment) = state.segment_mut(id) {
                    segment.slot = slot;
                }
            }
            Err(error) => state.tally.blame(&error),
        }
    }

    /// Deletes the files of settled segments, and says whether all are gone.
    pub(crate) fn delete_doomed(&self) -> bool {
        let Some(folder) = &self.folder else { return true };
        let mut doomed = {
            let mut state = lock(&self.state);
            if state.doomed.is_empty() {
                return true;
            }
            mem::take(&mut state.doomed)
        };
        let mut gone = 0;
        doomed.retain(|&(id, bytes)| match folder.remove(id) {
            Ok(()) => {
                gone += bytes;
                false
            }
            Err(_) => true,
        });
        let all = doomed.is_empty();
        let mut state = lock(&self.state);
        state.others -= gone;
        state.doomed.append(&mut doomed);
        drop(state);
        self.room.notify_all();
        all
    }

    /// Writes files again that somebody has deleted, as far as memory goes: whoever flushes wants to know that what was
    /// accepted is on disk.
    pub(crate) fn restore_files(&self) {
        let Some(folder) = &self.folder else { return };
        let ready: Vec<u64> = {
            let state = lock(&self.state);
            let ready = state.segments.iter().filter(|segment| segment.on_disk == OnDisk::Ready);
            ready.map(|segment| segment.id).collect()
        };
        let is_gone = |id: &u64| matches!(folder.segment(*id).try_exists(), Ok(false));
        if !ready.iter().any(is_gone) {
            return;
        }
        let mut reader = lock(&self.reader);
        let _no_write = lock(&self.writer);
        let mut slots = lock(&self.slots);
        let mut state = lock(&self.state);
        if state.is_over {
            return;
        }
        for id in ready.into_iter().filter(is_gone) {
            state.lose_file(id);
        }
        // What they have open has no name any more.
        *slots = Slots::default();
        reader.close_file();
    }

    /// Has the flusher sync what was just written, if that is its task.
    fn note_unsynced(&self, state: &mut MutexGuard<'_, State>) {
        if self.durability == Durability::Host {
            state.unsynced = true;
            self.unpark(state);
        }
    }

    /// Asks the device to have what was written.
    pub(crate) fn sync(&self) -> io::Result<()> {
        // First of all: what is written from now on is noted again.
        lock(&self.state).unsynced = false;
        let mut unsynced = mem::take(&mut lock(&self.writer).unsynced);
        unsynced.extend(lock(&self.slots).unsynced.take());
        let mut result = Ok(());
        for (_, file) in unsynced {
            if let Err(error) = file.sync_data() {
                lock(&self.state).tally.blame(&error);
                result = Err(error);
            }
        }
        result
    }
}

impl Writer {
    fn put(&mut self, folder: &Folder, group: &Group, durability: Durability) -> io::Result<()> {
        let file = self.open(folder, group, durability)?;
        group.writes(|bytes, at| file.write_all_at(bytes, at))?;
        let known = self.unsynced.last().is_some_and(|&(id, _)| id == group.id);
        if durability == Durability::Host && !known {
            self.unsynced.push((group.id, file));
        }
        Ok(())
    }

    fn open(
        &mut self,
        folder: &Folder,
        group: &Group,
        durability: Durability,
    ) -> io::Result<Arc<File>> {
        if let (OnDisk::Ready, Some((id, file))) = (group.on_disk, &self.file)
            && *id == group.id
        {
            return Ok(Arc::clone(file));
        }
        let file = if group.on_disk == OnDisk::Ready {
            OpenOptions::new().write(true).open(folder.segment(group.id))?
        } else {
            let file = folder.create(group.id)?;
            file.write_all_at(&format::beginning(&group.head), 0)?;
            if durability == Durability::Host {
                folder.sync()?;
            }
            file
        };
        let file = Arc::new(file);
        self.file = Some((group.id, Arc::clone(&file)));
        Ok(file)
    }
}

impl Slots {
    fn put(&mut self, folder: &Folder, id: u64, slot: Slot) -> io::Result<()> {
        let file = match self.file.take() {
            Some((open, file)) if open == id => file,
            _ => Arc::new(OpenOptions::new().write(true).open(folder.segment(id))?),
        };
        file.write_all_at(&slot.bytes(), slot.at())?;
        self.unsynced = Some((id, Arc::clone(&file)));
        self.file = Some((id, file));
        Ok(())
    }
}
