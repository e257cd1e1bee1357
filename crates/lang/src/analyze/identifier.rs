//! Recognizes pieces of a name or a path that are an id of one object rather than a word for many.
//!
//! Recognition depends on the format of ids; there is no list of words. An ambiguous piece counts as a word.

/// The minimum number of hexadecimal digits of a short hash.
const HASH_CHARS_MIN: usize = 8;
/// The number of hexadecimal digits from which on a piece cannot be a word.
const HEX_CHARS_MIN: usize = 16;
/// The minimum number of decimal digits in a short hash: `face2face` is a word.
const HASH_DIGITS_MIN: usize = 3;
const UUID_CHARS: usize = 36;
const ULID_CHARS: usize = 26;

/// Returns the kind of id that `piece` is, if it is an id.
pub(super) fn identifier(piece: &str) -> Option<&'static str> {
    let digits = piece.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    if digits == piece.len() {
        return Some("a number");
    }
    if is_uuid(piece) {
        return Some("a UUID");
    }
    let is_hex = piece.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_hash = piece.len() >= HASH_CHARS_MIN && digits >= HASH_DIGITS_MIN;
    if is_hex && (is_hash || piece.len() >= HEX_CHARS_MIN) {
        return Some("a hexadecimal id");
    }
    is_ulid(piece).then_some("a ULID")
}

fn is_uuid(piece: &str) -> bool {
    let mut groups = piece.split('-');
    let is_hex = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    piece.len() == UUID_CHARS
        && [8, 4, 4, 4, 12]
            .iter()
            .all(|len| groups.next().is_some_and(|group| group.len() == *len && is_hex(group)))
}

/// Whether `piece` is a ULID: a timestamp and random bits in 26 digits of base 32, of which the first is at most 7.
fn is_ulid(piece: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    piece.len() == ULID_CHARS
        && piece.bytes().all(is_digit)
        && piece.starts_with(|c: char| c <= '7')
}

/// Returns the UUID at the end of `piece`, if there is one.
pub(super) fn uuid_at_end(piece: &str) -> Option<&str> {
    let start = piece.len().checked_sub(UUID_CHARS)?;
    piece.get(start..).filter(|end| is_uuid(end))
}

#[cfg(test)]
mod tests {
    use super::{identifier, uuid_at_end};

    #[test]
    fn ids_are_told_from_words() {
        let cases = [
            ("4711", Some("a number")),
            ("0", Some("a number")),
            ("123e4567-e89b-12d3-a456-426614174000", Some("a UUID")),
            ("507f1f77bcf86cd799439011", Some("a hexadecimal id")),
            ("9f86d081", Some("a hexadecimal id")),
            ("01ARZ3NDEKTSV4RRFFQ69G5FAV", Some("a ULID")),
            ("", None),
            ("orders", None),
            ("v1", None),
            ("face2face", None),
            ("deadbeef", None),
            ("s3", None),
            ("utf8", None),
            ("123e4567-e89b-12d3-a456-42661417400", None),
            ("größe-und-länge-einer-straße-12", None),
        ];
        for (piece, expected) in cases {
            assert_eq!(identifier(piece), expected, "{piece}");
        }
        let uuid = "123e4567-e89b-12d3-a456-426614174000";
        assert_eq!(uuid_at_end(&format!("order-{uuid}")), Some(uuid));
        assert_eq!(uuid_at_end("ßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßßß"), None);
    }
}
