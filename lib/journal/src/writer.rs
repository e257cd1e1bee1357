//! Puts records into files, acknowledgements beside them, and takes files away. All of it happens outside of the state's
//! lock; the order of locks is syncing, reader, writer, slots, state.

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

/// How long producers leave a disk alone that has refused.
pub(crate) const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// What is under the lock of those who write records.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    file: Option<(u64, Arc<File>)>,
    buffer: Vec<u8>,
    /// Files with something that the device may not have yet.
    pub(crate) unsynced: Vec<(u64, Arc<File>)>,
}

/// What is under the lock of those who write acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    file: Option<(u64, Arc<File>)>,
    pub(crate) unsynced: Option<(u64, Arc<File>)>,
}

impl SharedJournal {
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

    /// Brings the acknowledgement in the file up to date. A failure costs a repetition after a crash, no more; the next
    /// acknowledgement tries again.
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
        // Of one that was settled meanwhile nobody needs to know.
        let Some(segment) = state.segment_mut(id) else { return };
        match result {
            Ok(()) => segment.slot = slot,
            Err(error) => state.tally.blame(&error),
        }
    }

    /// Deletes the files of settled segments, unless that was refused just now, and says whether all are gone.
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

    /// Deletes the files of settled segments, whatever was refused before.
    pub(crate) fn delete_again(&self) -> bool {
        // Held to the end: whoever closes the journal waits for it before the folder becomes somebody else's.
        let slots = lock(&self.slots);
        lock(&self.state).is_over || self.delete(&slots)
    }

    /// Deletes while nobody else does, and not after the folder was released.
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
        // Those who wait have tried it themselves.
        if gone > 0 {
            self.room.notify_all();
        }
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
        // What they have open has no name any more.
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
