//! Random and time functions: `uuid()`, `firstName()`, `date("YYYY-MM-DD")` …
//!
//! They generate values from a seed that the run stores, so that the same seed gives the same request. Each occurrence in a test
//! gets its own value. No generated value belongs to a real person: mail goes to `example.com`, phone numbers are those reserved
//! for fiction, card numbers are those that payment services publish for tests.

use std::hash::Hasher;

use model::Timestamp;
use siphasher::sip::SipHasher24;

use super::{Number, Size, Value};
use crate::value::operator::Function;

/// The source of random and time values of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The time that `date()` returns.
    pub now: Timestamp,
    /// The seed of all other values.
    pub random: [u8; 32],
}

/// Generates the values for one occurrence after the other.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    seed: Seed,
    purpose: Purpose,
    occurrences: u64,
}

/// The purpose of a value: the request and the judgement are resolved separately, and get separate values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Request,
    Judgement,
}

/// The random number generator for one occurrence.
struct Dice<'s> {
    random: &'s [u8; 32],
    purpose: Purpose,
    occurrence: u64,
    thrown: u64,
}

/// The tokens of a format, each before its prefixes, and their equivalent in `jiff`. Times are in UTC.
const TOKENS: &[(&str, &str)] = &[
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("M", "%-m"),
    ("DDDD", "%A"),
    ("DDD", "%a"),
    ("DD", "%d"),
    ("D", "%-d"),
    ("hh", "%H"),
    ("h", "%I"),
    ("mm", "%M"),
    ("ss", "%S"),
    ("pm", "%p"),
    ("ZZZZ", "+0000"),
    ("ZZZ", "UTC"),
    ("ZZ", "Z"),
];

const FIRST_NAMES: &[&str] = &[
    "Ada", "Amir", "Anna", "Bela", "Bruno", "Carla", "Chen", "Clara", "Dario", "Edith", "Elena",
    "Emil", "Farah", "Felix", "Greta", "Hana", "Hugo", "Ines", "Ivan", "Jonas", "Kira", "Lena",
    "Luca", "Maya", "Nils", "Nora", "Omar", "Paula", "Rosa", "Samir", "Tara", "Yuki",
];

const LAST_NAMES: &[&str] = &[
    "Abel", "Adler", "Bauer", "Becker", "Castro", "Costa", "Dahl", "Diaz", "Fischer", "Fontaine",
    "Garcia", "Gruber", "Haas", "Ito", "Jensen", "Kaur", "Keller", "Kovacs", "Lang", "Lindgren",
    "Marin", "Moreau", "Nakamura", "Novak", "Okafor", "Petrov", "Rossi", "Santos", "Silva",
    "Tanaka", "Weber", "Young",
];

const CARDS: &[&str] = &[
    "4242424242424242",
    "4111111111111111",
    "4012888888881881",
    "4000056655665556",
    "5555555555554444",
    "5105105105105100",
    "5200828282828210",
    "2223003122003222",
    "378282246310005",
    "371449635398431",
    "6011111111111117",
    "6011000990139424",
    "3056930009020004",
    "36227206271667",
    "3566002020360505",
    "6200000000000005",
];

impl Draw {
    pub(crate) fn new(seed: &Seed, purpose: Purpose) -> Self {
        Self { seed: *seed, purpose, occurrences: 0 }
    }

    /// Generates the value for the next occurrence of the function. Functions with arguments complete it in [`finish`].
    pub(crate) fn draw(&mut self, function: Function) -> String {
        let mut dice = Dice {
            random: &self.seed.random,
            purpose: self.purpose,
            occurrence: self.occurrences,
            thrown: 0,
        };
        self.occurrences += 1;
        match function {
            Function::Uuid => uuid(&mut dice),
            Function::FirstName => dice.one_of(FIRST_NAMES).to_owned(),
            Function::LastName => dice.one_of(LAST_NAMES).to_owned(),
            Function::FullName => {
                format!("{} {}", dice.one_of(FIRST_NAMES), dice.one_of(LAST_NAMES))
            }
            Function::Email => {
                let name = format!("{}.{}", dice.one_of(FIRST_NAMES), dice.one_of(LAST_NAMES));
                format!("{}{}@example.com", name.to_ascii_lowercase(), dice.below(10_000))
            }
            // Any area code, and a subscriber number from 555-0100 to 555-0199.
            Function::Phone => format!("{}55501{:02}", 200 + dice.below(800), dice.below(100)),
            Function::CreditCard => dice.one_of(CARDS).to_owned(),
            Function::CreditCardCvv => format!("{:03}", dice.below(1_000)),
            Function::CreditCardExpDate => {
                let year = format_moment(self.seed.now, "YY").parse().unwrap_or(0_u64);
                format!("{:02}/{:02}", 1 + dice.below(12), (year + 1 + dice.below(5)) % 100)
            }
            Function::Date | Function::DateTime => self.seed.now.as_nanos().to_string(),
            Function::RandomInt => dice.wide().to_string(),
        }
    }
}

/// Returns the value of a function, from its arguments and its generated value.
pub(crate) fn finish(
    function: Function,
    arguments: &[Value<'_>],
    drawn: &str,
) -> Result<String, &'static str> {
    let whole = |value: &Value<'_>| match value.size() {
        Some(Size::Number(Number::Int(int))) => Ok(int),
        _ => Err("`randomInt` takes two whole numbers"),
    };
    let now = || Timestamp::from_nanos(drawn.parse().unwrap_or(0));
    match (function, arguments) {
        (Function::RandomInt, [a, b]) => {
            let (a, b) = (whole(a)?, whole(b)?);
            random_int(a.min(b), a.max(b), drawn).ok_or("the numbers lie too far apart")
        }
        (Function::RandomInt, _) => Err("`randomInt` takes two whole numbers"),
        (Function::Date, []) => Ok(format_moment(now(), "YYYY-MM-DD")),
        (Function::DateTime, []) => Ok(format_moment(now(), "YYYY-MM-DDThh:mm:ssZZ")),
        (Function::Date | Function::DateTime, [format @ (Value::Text(_) | Value::Quoted(_))]) => {
            Ok(format_moment(now(), &format.text()))
        }
        (Function::Date | Function::DateTime, _) => Err("a date takes one text, its format"),
        (_, []) => Ok(drawn.to_owned()),
        _ => Err("this function takes no arguments"),
    }
}

fn random_int(low: i128, high: i128, drawn: &str) -> Option<String> {
    let width = u128::try_from(high.checked_sub(low)?).ok()? + 1;
    let offset = drawn.parse::<u128>().ok()? % width;
    Some((low + i128::try_from(offset).ok()?).to_string())
}

fn uuid(dice: &mut Dice<'_>) -> String {
    // Version 4, variant 1.
    let bits = dice.wide() & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let digits = format!("{bits:032x}");
    let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
    format!("{a}-{b}-{c}-{}-{}", &digits[16..20], &digits[20..])
}

fn format_moment(moment: Timestamp, format: &str) -> String {
    let moment = jiff::Timestamp::from_nanosecond(moment.as_nanos().into()).unwrap_or_default();
    let moment = jiff::tz::Offset::UTC.to_datetime(moment);
    let (mut told, mut rest) = (String::new(), format);
    while let Some(c) = rest.chars().next() {
        match TOKENS.iter().find(|(token, _)| rest.starts_with(token)) {
            Some((token, meaning)) => {
                told.push_str(&jiff::fmt::strtime::format(meaning, moment).unwrap_or_default());
                rest = &rest[token.len()..];
            }
            None => {
                told.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    told
}

impl Dice<'_> {
    fn throw(&mut self) -> u64 {
        let (key, message) = self.random.split_at(16);
        let mut hasher = SipHasher24::new_with_key(key.try_into().unwrap_or(&[0; 16]));
        hasher.write(message);
        hasher.write_u8(match self.purpose {
            Purpose::Request => 1,
            Purpose::Judgement => 2,
        });
        hasher.write_u64(self.occurrence);
        hasher.write_u64(self.thrown);
        self.thrown += 1;
        hasher.finish()
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.throw()) << 64 | u128::from(self.throw())
    }

    /// Returns a number below `end`. The modulo bias of 64 bits is negligible.
    fn below(&mut self, end: u64) -> u64 {
        self.throw() % end
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::Timestamp;

    use super::{CARDS, Draw, FIRST_NAMES, Purpose, Seed, finish};
    use crate::value::{Number, Value, operator::Function, pattern};

    const SEED: Seed =
        // 2026-11-15T08:05:09.5Z
        Seed { now: Timestamp::from_nanos(1_794_729_909_500_000_000), random: [7; 32] };

    #[test]
    fn what_is_drawn_has_its_form() {
        for (function, form) in [
            (
                Function::Uuid,
                "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
            ),
            (Function::FirstName, "^[A-Z][a-z]+$"),
            (Function::LastName, "^[A-Z][a-z]+$"),
            (Function::FullName, "^[A-Z][a-z]+ [A-Z][a-z]+$"),
            (Function::Email, r"^[a-z]+\.[a-z]+[0-9]+@example\.com$"),
            (Function::Phone, "^[2-9][0-9]{2}55501[0-9]{2}$"),
            (Function::CreditCard, "^[0-9]{14,16}$"),
            (Function::CreditCardCvv, "^[0-9]{3}$"),
            (Function::CreditCardExpDate, "^(0[1-9]|1[0-2])/(2[7-9]|3[01])$"),
        ] {
            let mut draw = Draw::new(&SEED, Purpose::Request);
            let drawn: BTreeSet<_> = (0..200).map(|_| draw.draw(function)).collect();
            for drawn in &drawn {
                let form = pattern::compile(form).expect(form);
                assert!(form.is_match(drawn), "{drawn}");
            }
            assert!(drawn.len() > 10, "{function:?} draws {drawn:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same() {
        let draw = |seed: &Seed, purpose| {
            let mut draw = Draw::new(seed, purpose);
            [draw.draw(Function::Uuid), draw.draw(Function::Uuid), draw.draw(Function::Email)]
        };
        let first = draw(&SEED, Purpose::Request);
        assert_eq!(first, draw(&SEED, Purpose::Request));
        assert_eq!(first[0], "c3cc3c81-7e9e-439f-b94a-e116c50c4f1f");
        let mut seed = SEED;
        seed.random[31] = 8;
        for other in [draw(&seed, Purpose::Request), draw(&SEED, Purpose::Judgement)] {
            assert!(first.iter().zip(other).all(|(a, b)| *a != b), "everything counts");
        }
    }

    #[test]
    fn dates_are_told_in_their_format() {
        let drawn = Draw::new(&SEED, Purpose::Request).draw(Function::Date);
        for (format, expected) in [
            ("YYYY-MM-DD", "2026-11-15"),
            ("D.M.YY", "15.11.26"),
            ("DDDD, D MMMM YYYY", "Sunday, 15 November 2026"),
            ("DDD MMM", "Sun Nov"),
            ("hh:mm:ss", "08:05:09"),
            ("h:mmpm", "08:05AM"),
            ("hh:mm ZZZZ ZZZ ZZ", "08:05 +0000 UTC Z"),
            ("100% é", "100% é"),
            ("", ""),
        ] {
            let told = finish(Function::Date, &[Value::Quoted(format)], &drawn);
            assert_eq!(told.as_deref(), Ok(expected), "{format}");
        }
        assert_eq!(finish(Function::Date, &[], &drawn).as_deref(), Ok("2026-11-15"));
        let told = finish(Function::DateTime, &[], &drawn);
        assert_eq!(told.as_deref(), Ok("2026-11-15T08:05:09Z"));
        let number = Value::Number(Number::Int(5));
        assert_eq!(
            finish(Function::Date, &[number], &drawn),
            Err("a date takes one text, its format")
        );
    }

    #[test]
    fn random_numbers_lie_between_their_bounds() {
        let int = |int: i128| Value::Number(Number::Int(int));
        let mut draw = Draw::new(&SEED, Purpose::Request);
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let drawn = draw.draw(Function::RandomInt);
            // The bounds may be in any order.
            let number = finish(Function::RandomInt, &[int(2), int(-2)], &drawn).expect("a number");
            seen.insert(number.parse::<i8>().expect("a number"));
            assert_eq!(finish(Function::RandomInt, &[int(7), int(7)], &drawn).as_deref(), Ok("7"));
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
        let too_far = finish(Function::RandomInt, &[int(i128::MIN), int(i128::MAX)], "1");
        assert_eq!(too_far, Err("the numbers lie too far apart"));
        let text = Value::Quoted("a");
        assert!(finish(Function::RandomInt, &[text, int(1)], "1").is_err());
        assert!(finish(Function::Uuid, &[int(1)], "x").is_err());
    }

    #[test]
    fn cards_have_their_check_digit_and_names_their_letters() {
        for card in CARDS {
            let digits = card.bytes().rev().map(|byte| u32::from(byte - b'0'));
            let sum: u32 = digits
                .enumerate()
                .map(|(place, digit)| match place % 2 {
                    0 => digit,
                    _ => digit * 2 - if digit > 4 { 9 } else { 0 },
                })
                .sum();
            assert_eq!(sum % 10, 0, "{card}");
        }
        assert!(FIRST_NAMES.is_sorted(), "so that a name stands once");
    }
}
