//! Buffer space for messages while they are read: bounded in total, and for one sender if a gate identifies senders. However
//! much one sender sends, others find room.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{Sender, error::ExportError};

/// The buffer of all messages.
#[derive(Debug)]
pub(super) struct Buffer {
    all: AtomicUsize,
    bytes_max: usize,
    /// The bytes of each sender that has a message here; none if senders are not identified.
    senders: Option<Mutex<HashMap<Sender, Weak<AtomicUsize>>>>,
}

/// Buffer space for the bytes of one message, released on drop.
pub(super) struct Room<'a> {
    buffer: &'a Buffer,
    own: Option<Arc<AtomicUsize>>,
    bytes: usize,
}

impl Buffer {
    pub(super) fn new(bytes_max: usize, are_senders_known: bool) -> Self {
        let senders = are_senders_known.then(Mutex::default);
        Self { all: AtomicUsize::default(), bytes_max, senders }
    }

    /// Returns the maximum bytes of one sender: three quarters, since the largest JSON messages need most of the buffer.
    pub(super) fn share(&self) -> usize {
        match self.senders {
            Some(_) => self.bytes_max / 4 * 3,
            None => self.bytes_max,
        }
    }

    /// Returns the buffer space for a message, initially empty.
    pub(super) fn room(&self, sender: &Sender) -> Room<'_> {
        let own = self.senders.as_ref().map(|senders| {
            let mut senders = senders.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(own) = senders.get(sender).and_then(Weak::upgrade) {
                return own;
            }
            senders.retain(|_, own| own.strong_count() > 0);
            let own = Arc::default();
            senders.insert(sender.clone(), Arc::downgrade(&own));
            own
        });
        Room { buffer: self, own, bytes: 0 }
    }
}

impl Room<'_> {
    /// Requests space for this many more bytes.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), ExportError> {
        let share = self.buffer.share();
        if let Some(own) = &self.own
            && own.fetch_add(bytes, Ordering::Relaxed) + bytes > share
        {
            own.fetch_sub(bytes, Ordering::Relaxed);
            return Err(ExportError::NoRoom(share));
        }
        self.bytes += bytes;
        let before = self.buffer.all.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.buffer.bytes_max {
            return Err(ExportError::NoRoom(self.buffer.bytes_max));
        }
        Ok(())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.buffer.all.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(own) = &self.own {
            own.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::{Buffer, Sender};

    #[test]
    fn one_sender_leaves_room_to_others() {
        let buffer = Buffer::new(400, true);
        let sender = |name: &str| Sender::of([name.parse().expect("a project")]);
        let (one, other) = (sender("one"), sender("other"));
        let mut first = buffer.room(&one);
        first.grow(200).expect("there is room");
        let mut second = buffer.room(&one);
        second.grow(100).expect("three quarters are one sender's");
        assert!(second.grow(1).is_err(), "and no more");
        let mut third = buffer.room(&other);
        third.grow(100).expect("the rest is another's");
        assert!(third.grow(1).is_err(), "all is taken");
        drop((first, second, third));
        assert_eq!(buffer.all.load(Ordering::Relaxed), 0);
        buffer.room(&one).grow(300).expect("what was given back is there again");
        buffer.room(&other).grow(300).expect("for everybody");
        let senders = buffer.senders.as_ref().map(|it| it.lock().expect("no panic").len());
        assert_eq!(senders, Some(1), "senders without a message are forgotten");
        Buffer::new(400, false).room(&one).grow(400).expect("a sender nobody knows has all");
    }
}
