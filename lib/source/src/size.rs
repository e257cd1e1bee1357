//! Parses and formats sizes as users write them: `32MiB`, `1GB`, `4096`.

/// Largest first within each family, so that the first match is the one for formatting.
const UNITS: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
    ("", 1),
];

/// Parses an integral number of bytes; the default unit is bytes. A space before the unit is allowed, a fraction is
/// not.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.strip_prefix(' ').filter(|unit| !unit.is_empty()).unwrap_or(unit);
    let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*bytes)
}

/// Formats a size with the largest binary unit that divides it.
pub fn format_size(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(name, unit)| {
        (name.ends_with("iB") || *name == "B") && bytes >= *unit && bytes.is_multiple_of(*unit)
    });
    match unit {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => "0B".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("12B", Some(12)),
            ("1kB", Some(1000)),
            ("32MiB", Some(32 << 20)),
            ("32 MiB", Some(32 << 20)),
            ("1GiB", Some(1 << 30)),
            ("2TB", Some(2_000_000_000_000)),
            ("", None),
            ("MiB", None),
            ("1.5GiB", None),
            ("-1", None),
            ("1 ", None),
            ("1  MiB", None),
            ("1mib", None),
            ("1MiB2", None),
            ("18446744073709551616", None),
            ("99999999999TiB", None),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for (bytes, text) in [
            (0, "0B"),
            (1, "1B"),
            (1025, "1025B"),
            (64 << 10, "64KiB"),
            (32 << 20, "32MiB"),
            (1536 << 20, "1536MiB"),
            (1 << 50, "1024TiB"),
        ] {
            assert_eq!(format_size(bytes), text);
            assert_eq!(parse_size(text), Some(bytes));
        }
    }
}
