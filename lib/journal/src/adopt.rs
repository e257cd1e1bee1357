//! Adopts segments that other journals left on disk: those in the journal's own folder, and those in the folders of
//! dead journals.

use std::{fs, time::Instant};

use crate::{
    folder::{Folder, OpenError, Owner},
    recover::{LeftSegment, RecoveredFolder},
    segment::on_disk_bytes,
    settled_ranges::Mark,
    shared::{SharedJournal, lock, tell},
    state::State,
};

impl SharedJournal {
    /// Moves the segments of dead journals behind the existing records as long as they fit. Returns how many items they
    /// have. Segments that cannot be moved stay where they are; a later call can adopt them.
    pub(crate) fn adopt(&self) -> Result<u64, OpenError> {
        let Some(folder) = &self.folder else { return Ok(0) };
        let mut items = 0;
        for path in folder.others()? {
            if let Some(orphan) = folder.orphan(path) {
                items += self.take_over(folder, &orphan);
            }
        }
        self.after_settling();
        Ok(items)
    }

    fn take_over(&self, folder: &Folder, orphan: &Folder) -> u64 {
        let Ok(mut recovered) = RecoveredFolder::of(orphan) else { return 0 };
        // Damaged files stay in the orphan's folder and do not count against our disk limit.
        recovered.left_alone = 0;
        let now = (self.now)();
        let mut state = lock(&self.state);
        // The rename runs under the lock, although it is slow: no other thread may use these ids, and the folder must
        // stay ours.
        if state.closed || !matches!(folder.owner(), Ok(Owner::Us)) {
            return 0;
        }
        let items = state.place(recovered, now, |id, left| {
            fs::rename(orphan.segment(left.segment.id), folder.segment(id)).is_ok()
        });
        let end = state.end;
        let reached = state.ready.is_reached(end);
        tell(state, reached);
        items
    }
}

impl State {
    /// Places the segments that were left in our own folder, before any other record is appended.
    pub(crate) fn place_own(&mut self, recovered: RecoveredFolder, now: Instant) {
        self.ages.note(0, now);
        self.place_all(recovered, |_, left| Some(left.segment.id));
    }

    /// Places the recovered segments behind the existing ones, as long as each one fits and `take` accepts it under its
    /// new id. Returns how many items they have.
    fn place(
        &mut self,
        recovered: RecoveredFolder,
        now: Instant,
        take: impl Fn(u64, &LeftSegment) -> bool,
    ) -> u64 {
        self.ages.note(self.end.at, now);
        self.place_all(recovered, |state, left| {
            let bytes = on_disk_bytes(left.segment.length(left.segment.end.at));
            let fits = state.limits.disk_max.is_some_and(|max| state.others + bytes <= max);
            let id = state.next_id;
            (fits && take(id, left)).then(|| {
                state.next_id += 1;
                id
            })
        })
    }

    fn place_all(
        &mut self,
        recovered: RecoveredFolder,
        mut place: impl FnMut(&mut Self, &LeftSegment) -> Option<u64>,
    ) -> u64 {
        self.tally.cut_bytes += recovered.cut_bytes;
        self.left_alone += recovered.left_alone;
        self.others += recovered.left_alone;
        if recovered.left.is_empty() {
            return 0;
        }
        let before = self.end;
        let is_written = self.written.at == self.end.at;
        self.rotate();
        self.pop_last();
        for mut left in recovered.left {
            let Some(id) = place(self, &left) else { break };
            let by = self.end;
            let segment = &mut left.segment;
            segment.id = id;
            segment.first = shifted(segment.first, by);
            segment.end = shifted(segment.end, by);
            segment.filled = shifted(segment.filled, by);
            self.end = segment.end;
            self.others += on_disk_bytes(segment.length(segment.end.at));
            self.push_segment(left.segment);
            for (from, to) in left.settled {
                self.settled.settle(shifted(from, by), shifted(to, by));
            }
        }
        self.push_last();
        self.open_from = self.end;
        if is_written {
            self.written = self.end;
        }
        let items = self.end.items - before.items;
        self.tally.recovered += items;
        self.release();
        items
    }
}

fn shifted(mark: Mark, by: Mark) -> Mark {
    Mark { at: mark.at + by.at, items: mark.items + by.items }
}
