//! Writes records and acknowledgements to files, and deletes files. All of it runs outside of the state lock. The lock
//! order is syncing, reader, writer, slots, state.

use std::{
    fs::{File, OpenOptions},
    io, mem,
    os::unix::fs::FileExt,
    sync::{Arc, MutexGuard},
    time::Duration,
};

use crate::{
    folder::{Folder, Owner},
    format::{self, Slot},
    group::Group,
    options::Durability,
    segment::OnDisk,
    shared::{SharedJournal, lock},
};

/// How long producers do not write after a write error.
pub(crate) const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// The data under the lock for writing records.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    file: Option<(u64, Arc<File>)>,
    buffer: Vec<u8>,
    /// Files with data that may not be synced to the device.
    pub(crate) unsynced: Vec<(u64, Arc<File>)>,
}

/// The data under the lock for writing acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    file: Option<(u64, Arc<File>)>,
    pub(crate) unsynced: Option<(u64, Arc<File>)>,
}

impl SharedJournal {
    /// Writes all records up to this position. Without a directory, writes nothing.
    pub(crate) fn write_up_to(&self, writer: &mut Writer, at: u64) -> io::Result<()> {
        while self.write_group(writer, at)? {}
        Ok(())
    }

    /// Writes one group if a record before this position is unwritten. Returns whether it wrote one.
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
        let result = writer.put(folder, &group, self.durability.get());
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

    /// Updates the acknowledgement in the file. A failure only causes repeated records after a crash; the next
    /// acknowledgement retries.
    pub(crate) fn write_slot(&self) {
        let mut slots = lock(&self.slots);
        let lagging = lock(&self.state).lagging_slot();
        if let Some((id, slot)) = lagging {
            self.put_slot(&mut slots, id, slot);
        }
    }

    pub(crate) fn put_slot(&self, slots: &mut Slots, id: u64, slot: Slot) {
        let Some(folder) = &self.folder else { return };
        let result = slots.put(folder, id, slot);
        let mut state = lock(&self.state);
        self.note_unsynced(&mut state);
        // The segment was settled meanwhile, so its slot does not matter.
        let Some(segment) = state.segment_mut(id) else { return };
        match result {
            Ok(()) => segment.slot = slot,
            Err(error) => state.tally.blame(&error),
        }
    }

    /// Deletes the files of settled segments, unless deleting failed just now. Returns whether all are deleted.
    pub(crate) fn delete_doomed(&self) -> bool {
        {
            let state = lock(&self.state);
            if state.doomed.is_empty() {
                return true;
            }
            if state.undeletable_until.is_some_and(|until| (self.now)() < until) {
                return false;
            }
        }
        self.delete_again()
    }

    /// Deletes the files of settled segments, even if deleting failed just now.
    pub(crate) fn delete_again(&self) -> bool {
        // Held to the end: `close` waits for this lock before it releases the folder to other journals.
        let slots = lock(&self.slots);
        lock(&self.state).is_over || self.delete(&slots)
    }

    /// Deletes the files. The slots lock excludes other threads, and excludes deleting after the folder was released.
    pub(crate) fn delete(&self, _slots: &MutexGuard<'_, Slots>) -> bool {
        let Some(folder) = &self.folder else { return true };
        let mut doomed = mem::take(&mut lock(&self.state).doomed);
        let mut gone = 0;
        let mut refusal = None;
        doomed.retain(|&(id, bytes)| match folder.remove(id) {
            Ok(()) => {
                gone += bytes;
                false
            }
            Err(error) => {
                refusal = Some(error);
                true
            }
        });
        let all = doomed.is_empty();
        let mut state = lock(&self.state);
        state.others -= gone;
        state.doomed.append(&mut doomed);
        state.undeletable_until = refusal.as_ref().map(|_| (self.now)() + REFUSED_PAUSE);
        if let Some(error) = refusal {
            state.tally.blame(&error);
        }
        drop(state);
        // If no file was deleted, waiting producers are not woken: they have tried to delete the files themselves.
        if gone > 0 {
            self.room.notify_all();
        }
        all
    }

    /// Writes deleted files again, as far as their records are in memory: `flush` guarantees that accepted records are
    /// on disk.
    pub(crate) fn restore_files(&self) {
        let Some(folder) = &self.folder else { return };
        let ready: Vec<u64> = {
            let state = lock(&self.state);
            let ready = state.segments.iter().filter(|segment| segment.on_disk == OnDisk::Ready);
            ready.map(|segment| segment.id).collect()
        };
        let is_taken = matches!(folder.owner(), Ok(Owner::Nobody | Owner::Another));
        let is_gone = |id: &u64| is_taken || matches!(folder.segment(*id).try_exists(), Ok(false));
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
        // Their open files no longer have a name.
        *slots = Slots::default();
        reader.close_file();
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
            folder.open(group.id, OpenOptions::new().write(true))?
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
            _ => Arc::new(folder.open(id, OpenOptions::new().write(true))?),
        };
        file.write_all_at(&slot.bytes(), slot.at())?;
        self.unsynced = Some((id, Arc::clone(&file)));
        self.file = Some((id, file));
        Ok(())
    }
}
