//! "Did you mean": suggests the nearest of the valid words.

/// Longer words are not compared: single-letter typos in them are unlikely, and the cost is quadratic in the length.
const WORD_CHARS_MAX: usize = 64;

/// Returns the candidate that is a typo away from `word`, if there is one.
///
/// A typo is an extra, missing, wrong or swapped letter. One typo is allowed for every three letters of the word, and
/// one for a shorter word. The comparison ignores case. Of equally near candidates the first wins.
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let letters = lowercase(word)?;
    let slips_max = (letters.len() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word)
        .filter_map(|candidate| Some((slips(&letters, &lowercase(candidate)?), candidate)))
        .filter(|(slips, candidate)| *slips <= slips_max && *slips < candidate.chars().count())
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

fn lowercase(word: &str) -> Option<Vec<char>> {
    let letters: Vec<char> =
        word.chars().take(WORD_CHARS_MAX + 1).flat_map(char::to_lowercase).collect();
    (letters.len() <= WORD_CHARS_MAX).then_some(letters)
}

/// Returns the Damerau-Levenshtein distance in which no letter is edited twice.
fn slips(from: &[char], to: &[char]) -> usize {
    let mut before = vec![0; to.len() + 1];
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let replaced = above[j] + usize::from(a != b);
            let mut least = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "ab", 1),
            ("abc", "axc", 1),
            ("ca", "abc", 3),
            ("lenght", "length", 1),
        ] {
            let letters = |word: &str| word.chars().collect::<Vec<_>>();
            assert_eq!(slips(&letters(from), &letters(to)), expected, "{from} {to}");
            assert_eq!(slips(&letters(to), &letters(from)), expected, "{to} {from}");
        }
    }

    #[test]
    fn a_slip_is_forgiven_and_a_guess_is_not() {
        let keys = ["postgres", "telemetry", "server", "port", "host"];
        for (word, expected) in [
            ("postgre", Some("postgres")),
            ("telmetry", Some("telemetry")),
            ("TELEMETRY", Some("telemetry")),
            ("sever", Some("server")),
            ("hots", Some("host")),
            ("prot", Some("port")),
            ("tracer", None),
            ("x", None),
            ("", None),
            ("port", None),
        ] {
            assert_eq!(did_you_mean(word, keys), expected, "{word}");
        }
        assert_eq!(did_you_mean(&"a".repeat(100_000), keys), None);
        assert_eq!(did_you_mean("naïve", ["naive"]), Some("naive"));
        assert_eq!(did_you_mean("ab", ["ac", "ad"]), Some("ac"));
    }
}
