//! Where a reader of a stream is, and whether it has missed a message: decisions without a connection.

use model::Timestamp;

use crate::{Doubt, Era};

/// What a stream reports of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamFacts {
    /// When it was made. Another time means another stream.
    pub(super) created: Timestamp,
    /// What identifies the process that acknowledges its messages, and since when it does: a hash.
    pub(super) leader: u64,
    /// The first message that it still has.
    pub(super) first: u64,
    /// The last message.
    pub(super) last: u64,
}

/// The position of one reader.
#[derive(Debug)]
pub(super) struct Cursor {
    /// The last message that was read.
    last: u64,
    /// The number of deliveries since the reader was opened.
    deliveries: u64,
    stream: Option<StreamFacts>,
    /// Whether the stream keeps what it acknowledged when a node fails.
    is_synced: bool,
    /// The changes of the stream that may have lost messages; traces that began before one are in doubt.
    era: Era,
}

/// What to do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It is the next one.
    Next,
    /// It was read before.
    Again,
    /// Others before it are missing: the reader has to be opened again.
    Gap,
}

impl StreamFacts {
    /// Returns what identifies the stream, and what its leader acknowledged unless that is on disk.
    pub(super) fn state(&self, is_synced: bool) -> String {
        let leader = if is_synced { 0 } else { self.leader };
        format!("{}-{leader}", self.created.as_nanos())
    }
}

impl Cursor {
    /// Creates the position before all messages after `last`; of a stream that was not seen yet.
    pub(super) fn new(is_synced: bool) -> Self {
        Self { last: 0, deliveries: 0, stream: None, is_synced, era: Era::default() }
    }

    /// Skips all messages that the stream has now.
    pub(super) fn skip(&mut self, facts: StreamFacts) {
        self.last = self.last.max(facts.last);
    }

    /// Takes note of the stream before the reader is opened, and returns the message to begin with.
    pub(super) fn open(&mut self, facts: StreamFacts) -> u64 {
        self.note(facts);
        self.deliveries = 0;
        self.last + 1
    }

    /// Takes note of the stream, and of changes that may have lost messages.
    pub(super) fn note(&mut self, facts: StreamFacts) {
        let Some(before) = self.stream.replace(facts) else { return };
        let is_replaced = before.created != facts.created || facts.last < self.last;
        let is_led_anew = before.leader != facts.leader;
        if is_replaced {
            self.last = 0;
            self.change(Doubt::StreamReplaced);
        } else if facts.first > self.last + 1 && before.first <= self.last {
            // What was too old to be kept may have been for this reader.
            self.change(Doubt::StreamReplaced);
        } else if is_led_anew && !self.is_synced {
            self.change(Doubt::LeaderChanged);
        }
    }

    fn change(&mut self, doubt: Doubt) {
        self.era = Era { number: self.era.number + 1, doubt: Some(doubt) };
    }

    /// Takes note of a delivered message: its number in the stream, and the number of the delivery.
    pub(super) fn deliver(&mut self, message: u64, delivery: u64) -> Delivery {
        if delivery != self.deliveries + 1 {
            return Delivery::Gap;
        }
        self.deliveries = delivery;
        if message <= self.last {
            return Delivery::Again;
        }
        self.last = message;
        Delivery::Next
    }

    /// Returns the state of the stream, once it was seen.
    pub(super) fn state(&self) -> Option<String> {
        self.stream.map(|facts| facts.state(self.is_synced))
    }

    pub(super) fn era(&self) -> &Era {
        &self.era
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Delivery, StreamFacts};
    use crate::Doubt;
    use model::Timestamp;

    fn facts(created: u64, leader: u64, first: u64, last: u64) -> StreamFacts {
        StreamFacts { created: Timestamp::from_nanos(created), leader, first, last }
    }

    fn doubt(cursor: &Cursor) -> (u64, Option<Doubt>) {
        (cursor.era().number, cursor.era().doubt.clone())
    }

    #[test]
    fn messages_are_read_once_and_in_order() {
        let mut cursor = Cursor::new(true);
        assert_eq!(cursor.open(facts(1, 1, 1, 4)), 1);
        assert_eq!(cursor.deliver(2, 1), Delivery::Next);
        assert_eq!(cursor.deliver(4, 2), Delivery::Next);
        assert_eq!(cursor.deliver(9, 4), Delivery::Gap, "the third delivery is missing");
        assert_eq!(cursor.open(facts(1, 1, 1, 9)), 5, "behind the last one");
        assert_eq!(cursor.deliver(7, 1), Delivery::Next);
        assert_eq!(cursor.deliver(7, 2), Delivery::Again);
        assert_eq!(doubt(&cursor), (0, None));
    }

    #[test]
    fn a_reader_of_new_messages_skips_the_old_ones() {
        let mut cursor = Cursor::new(true);
        cursor.skip(facts(1, 1, 1, 8));
        assert_eq!(cursor.open(facts(1, 1, 1, 8)), 9);
    }

    #[test]
    fn another_stream_is_read_from_its_beginning_and_told() {
        for other in [facts(2, 1, 1, 9), facts(1, 1, 1, 3)] {
            let mut cursor = Cursor::new(true);
            cursor.skip(facts(1, 1, 1, 8));
            cursor.open(facts(1, 1, 1, 8));
            assert_eq!(cursor.open(other), 1);
            assert_eq!(doubt(&cursor), (1, Some(Doubt::StreamReplaced)));
            cursor.note(other);
            assert_eq!(doubt(&cursor), (1, Some(Doubt::StreamReplaced)), "once");
        }
    }

    #[test]
    fn a_new_leader_is_a_doubt_unless_the_stream_is_synced() {
        for is_synced in [true, false] {
            let mut cursor = Cursor::new(is_synced);
            cursor.open(facts(1, 1, 1, 8));
            cursor.note(facts(1, 2, 1, 8));
            let expected = if is_synced { (0, None) } else { (1, Some(Doubt::LeaderChanged)) };
            assert_eq!(doubt(&cursor), expected);
        }
    }

    #[test]
    fn what_grew_too_old_unread_is_a_doubt() {
        let mut cursor = Cursor::new(true);
        cursor.open(facts(1, 1, 1, 8));
        cursor.deliver(5, 1);
        cursor.note(facts(1, 1, 6, 20));
        assert_eq!(doubt(&cursor).0, 0, "everything up to 5 was read");
        let mut cursor = Cursor::new(true);
        cursor.open(facts(1, 1, 1, 8));
        cursor.deliver(5, 1);
        cursor.note(facts(1, 1, 7, 20));
        assert_eq!(doubt(&cursor).0, 1, "6 is gone");
    }
}
