//! Summarizes many values as one.

use std::{cmp::Ordering, collections::HashSet};

use super::expression::Lack;
use crate::{
    budget,
    syntax::ast::{Comparator, Summary},
    value::{
        Number, Size, Value,
        compare::{compare, compare_sizes},
        key::key,
    },
};

/// The result of a summary.
#[derive(Clone, Debug)]
pub(crate) struct SummaryValue<'a> {
    pub(crate) value: Value<'a>,
    /// The upper bound of the result, if some of the values are known between bounds and it differs.
    pub(crate) high: Option<Value<'a>>,
    /// A note on skipped or converted values.
    pub(crate) note: Option<String>,
    pub(crate) is_secret: bool,
    /// Why some of the values are unknown.
    pub(crate) doubt: Option<String>,
    /// Why some of the values are known only between bounds.
    pub(crate) between: Option<String>,
}

/// Why there is no value, and whether further spans can change that.
#[derive(Clone, Debug)]
pub(crate) struct NoValue {
    pub(crate) lack: Lack,
    /// Whether this is permanent. This holds only if the present spans stay: the selection has to be lasting.
    pub(crate) is_for_good: bool,
}

impl<'a> SummaryValue<'a> {
    pub(crate) fn new(value: Value<'a>) -> Self {
        Self { value, high: None, note: None, is_secret: false, doubt: None, between: None }
    }
}

/// The values so far, and their memory use.
pub(super) struct ValueCollector<'a> {
    gathered: Option<ValueSet<'a>>,
    held: u64,
}

/// The size of a value without its text, in bytes.
const VALUE_BYTES: u64 = size_of::<Value<'static>>() as u64;

impl<'a> ValueCollector<'a> {
    pub(super) fn new(function: Summary) -> Self {
        Self { gathered: Some(ValueSet::new(function)), held: 0 }
    }

    pub(super) fn add(&mut self, value: Value<'a>) -> Result<(), NoValue> {
        let bytes = VALUE_BYTES + value.owned_len() as u64;
        self.held += bytes;
        match &mut self.gathered {
            Some(gathered) if budget::hold(bytes) => gathered.add(value),
            _ => Err(over_budget()),
        }
    }

    /// Adds a duration that is known between bounds.
    pub(super) fn add_between(&mut self, low: &Value<'_>, high: &Value<'_>) -> Result<(), NoValue> {
        let bytes = 2 * VALUE_BYTES;
        self.held += bytes;
        match &mut self.gathered {
            Some(gathered) if budget::hold(bytes) => gathered.add_between(low, high),
            _ => Err(over_budget()),
        }
    }

    pub(super) fn summarize(mut self) -> Result<SummaryValue<'a>, NoValue> {
        self.gathered.take().ok_or_else(over_budget)?.summarize()
    }
}

impl Drop for ValueCollector<'_> {
    fn drop(&mut self) {
        budget::release(self.held);
    }
}

/// Returns the reason that the statement exceeds its budget.
pub(super) fn over_budget() -> NoValue {
    NoValue { lack: Lack::Open(budget::OVER.to_owned()), is_for_good: false }
}

/// The values so far.
struct ValueSet<'a> {
    function: Summary,
    /// Values that are only compared with each other.
    values: Vec<Value<'a>>,
    /// Values that are ordered or summed.
    amounts: Amounts,
}

#[derive(Default)]
struct Amounts {
    numbers: Vec<Number>,
    /// The upper bounds of the numbers, if some of them differ.
    highs: Option<Vec<Number>>,
    are_durations: bool,
    skipped: usize,
    read: usize,
}

impl<'a> ValueSet<'a> {
    fn new(function: Summary) -> Self {
        Self { function, values: Vec::new(), amounts: Amounts::default() }
    }

    fn add(&mut self, value: Value<'a>) -> Result<(), NoValue> {
        match self.function {
            Summary::Count | Summary::Value | Summary::Values => {
                self.values.push(value);
                Ok(())
            }
            _ => self.amounts.add(&value),
        }
    }

    fn add_between(&mut self, low: &Value<'_>, high: &Value<'_>) -> Result<(), NoValue> {
        let amounts = &mut self.amounts;
        amounts.highs.get_or_insert_with(|| amounts.numbers.clone());
        amounts.add(low)?;
        if let (Some(Size::Nanos(nanos)), Some(highs)) = (high.size(), &mut amounts.highs)
            && let Some(last) = highs.last_mut()
        {
            *last = Number::Int(nanos);
        }
        Ok(())
    }

    /// Computes one value from many.
    fn summarize(self) -> Result<SummaryValue<'a>, NoValue> {
        let Self { function, values, amounts } = self;
        match function {
            Summary::Count | Summary::Value | Summary::Values if values.is_empty() => {
                Err(for_now("none of the spans has a value"))
            }
            Summary::Count => Ok(SummaryValue::new(Value::whole(values.len() as u64))),
            Summary::Value => the_one(values).map(SummaryValue::new),
            Summary::Values => Ok(SummaryValue::new(Value::List(different(values)))),
            Summary::Sum
            | Summary::Min
            | Summary::Max
            | Summary::Average
            | Summary::Percentile(_) => amounts.summarize(function),
        }
    }
}

impl Amounts {
    fn add(&mut self, value: &Value<'_>) -> Result<(), NoValue> {
        let (number, is_duration) = match value.size() {
            None => {
                return Err(for_good("only numbers and durations can be summed up or ordered"));
            }
            Some(Size::Number(number)) if number.is_nan() => {
                self.skipped += 1;
                return Ok(());
            }
            Some(Size::Number(number)) => (number, false),
            Some(Size::Nanos(nanos)) => (Number::Int(nanos), true),
        };
        if !self.numbers.is_empty() && self.are_durations != is_duration {
            return Err(for_good("some of the values are numbers, others are durations"));
        }
        self.are_durations = is_duration;
        self.read += usize::from(matches!(value, Value::Text(_) | Value::Quoted(_)));
        self.numbers.push(number);
        self.highs.iter_mut().for_each(|highs| highs.push(number));
        Ok(())
    }

    fn summarize<'a>(self, function: Summary) -> Result<SummaryValue<'a>, NoValue> {
        let Self { numbers, highs, are_durations, skipped, read } = self;
        if numbers.is_empty() {
            return Err(for_now("none of the values is a number"));
        }
        let result = |numbers: Vec<Number>| {
            let result = match function {
                Summary::Min => least_by(&numbers, order),
                Summary::Max => least_by(&numbers, |a, b| order(b, a)),
                Summary::Percentile(percent) => at_rank(numbers, percent),
                Summary::Average => average(&numbers, are_durations)?,
                _ => sum(&numbers)?,
            };
            Ok(match result {
                Number::Int(nanos) if are_durations => Value::Duration(nanos),
                number => Value::Number(number),
            })
        };
        // Each of these grows with each of its values, so the result lies between those of the lower and the upper bounds.
        let high = highs.map(result).transpose()?;
        let value = result(numbers)?;
        let notes = [
            (skipped > 0).then(|| format!("{skipped} that are not a number are left out")),
            (read > 0).then(|| "text read by its value".to_owned()),
        ];
        let notes: Vec<_> = notes.into_iter().flatten().collect();
        let note = (!notes.is_empty()).then(|| notes.join(", "));
        Ok(SummaryValue { high, note, ..SummaryValue::new(value) })
    }
}

/// Creates a lack of a value that one further span may change.
fn for_now(reason: &str) -> NoValue {
    NoValue { lack: Lack::Undefined(reason.to_owned()), is_for_good: false }
}

/// Creates a lack of a value that is permanent for the present spans.
fn for_good(reason: &str) -> NoValue {
    NoValue { is_for_good: true, ..for_now(reason) }
}

fn the_one(values: Vec<Value<'_>>) -> Result<Value<'_>, NoValue> {
    let mut values = values.into_iter();
    let first = values.next().ok_or_else(|| for_now("none of the spans has a value"))?;
    match values.find(|other| !compare(&first, Comparator::Equal, other).holds()) {
        None => Ok(first),
        Some(_) => Err(for_good("the spans have different values, so there is not one of them")),
    }
}

/// Returns each value once, in the order of the first occurrences.
fn different(values: Vec<Value<'_>>) -> Vec<Value<'_>> {
    let mut texts = HashSet::new();
    let mut wholes = HashSet::new();
    let mut others = HashSet::new();
    let mut is_first = |value: &Value<'_>| match value {
        Value::Text(text) if texts.contains(&**text) => false,
        Value::Text(text) => texts.insert(text.clone().into_owned()),
        Value::Number(number) => match number.whole() {
            Some(int) => wholes.insert(int),
            None => others.insert(key(value)),
        },
        other => others.insert(key(other)),
    };
    values.into_iter().filter(|value| is_first(value)).collect()
}

/// Values that are not numbers were skipped, so that all values have an order.
fn order(a: &Number, b: &Number) -> Ordering {
    compare_sizes(Size::Number(*a), Size::Number(*b)).unwrap_or(Ordering::Equal)
}

fn least_by(numbers: &[Number], order: impl Fn(&Number, &Number) -> Ordering) -> Number {
    numbers.iter().copied().min_by(order).unwrap_or(Number::Int(0))
}

/// Sums integers exactly, and doubles with compensated summation.
fn sum(numbers: &[Number]) -> Result<Number, NoValue> {
    let mut whole = 0_i128;
    let (mut double, mut error, mut has_double) = (0.0_f64, 0.0_f64, false);
    for number in numbers {
        match number {
            Number::Int(int) => {
                whole = whole
                    .checked_add(*int)
                    .ok_or_else(|| for_now("the sum does not fit 128 bits"))?;
            }
            Number::Double(one) => {
                has_double = true;
                let next = double + one;
                if next.is_finite() {
                    let lost = if double.abs() >= one.abs() {
                        (double - next) + one
                    } else {
                        (one - next) + double
                    };
                    error += lost;
                }
                double = next;
            }
        }
    }
    Ok(match has_double {
        false => Number::Int(whole),
        true => Number::Double(double + error + whole as f64),
    })
}

/// Returns the average. A duration is rounded to the nearest nanosecond.
fn average(numbers: &[Number], is_duration: bool) -> Result<Number, NoValue> {
    let count = numbers.len() as i128;
    Ok(match sum(numbers)? {
        Number::Int(sum) if sum % count == 0 => Number::Int(sum / count),
        Number::Int(sum) if is_duration => Number::Int((2 * sum + count).div_euclid(2 * count)),
        Number::Int(sum) => Number::Double(sum as f64 / count as f64),
        Number::Double(sum) => Number::Double(sum / count as f64),
    })
}

/// Returns the percentile by nearest rank: this percentage of the values, counted up to it, are not larger.
fn at_rank(mut numbers: Vec<Number>, percent: Number) -> Number {
    let count = numbers.len() as i128;
    // Computed as a fraction of the written digits: 99.9 is not the double nearest to it.
    let written = match percent {
        Number::Int(int) => int.to_string(),
        Number::Double(double) => double.to_string(),
    };
    let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
    let scale = 10_i128.checked_pow(fraction.len() as u32).filter(|_| fraction.len() <= 18);
    let digits = format!("{whole}{fraction}").parse::<i128>().ok();
    let rank = match digits.zip(scale) {
        Some((digits, scale)) => (digits * count + 100 * scale - 1).div_euclid(100 * scale),
        None => count,
    };
    let index = (rank.clamp(1, count) - 1) as usize;
    let (_, at, _) = numbers.select_nth_unstable_by(index, order);
    *at
}

#[cfg(test)]
mod tests {
    use super::ValueCollector;
    use crate::{
        syntax::ast::Summary,
        value::{Number, Value},
    };

    fn ints(values: &[i128]) -> Vec<Value<'static>> {
        values.iter().map(|int| Value::Number(Number::Int(*int))).collect()
    }

    fn shown(function: Summary, values: Vec<Value<'static>>) -> String {
        let mut gathered = ValueCollector::new(function);
        let added = values.into_iter().try_for_each(|value| gathered.add(value));
        match added.and_then(|()| gathered.summarize()) {
            Ok(summed) => {
                let note = summed.note.map_or(String::new(), |note| format!(" ({note})"));
                format!("{}{note}", summed.value.show())
            }
            Err(missing) => format!("{:?}", missing.lack),
        }
    }

    #[test]
    fn the_nearest_rank() {
        let all: Vec<i128> = (1..=1000).rev().collect();
        for (percent, expected) in [
            (Number::Int(0), "1"),
            (Number::Int(50), "500"),
            (Number::Double(99.9), "999"),
            (Number::Double(99.91), "1000"),
            (Number::Int(100), "1000"),
        ] {
            assert_eq!(shown(Summary::Percentile(percent), ints(&all)), expected, "{percent:?}");
        }
        assert_eq!(shown(Summary::Percentile(Number::Int(95)), ints(&[7])), "7");
    }

    #[test]
    fn sums_are_exact_and_types_are_kept() {
        let double = |double: f64| Value::Number(Number::Double(double));
        assert_eq!(shown(Summary::Sum, ints(&[i128::from(i64::MAX); 3])), "27670116110564327421");
        assert_eq!(shown(Summary::Sum, vec![double(0.1); 10]), "1");
        assert_eq!(shown(Summary::Sum, vec![double(1e100), double(1.0), double(-1e100)]), "1");
        let durations = vec![Value::Duration(8), Value::Duration(9), Value::Duration(9)];
        assert_eq!(shown(Summary::Sum, durations.clone()), "26ns");
        assert_eq!(shown(Summary::Average, durations), "9ns");
        assert_eq!(shown(Summary::Average, ints(&[1, 2])), "1.5");
        let skipped = vec![double(f64::NAN), double(2.0), double(f64::NAN)];
        assert_eq!(shown(Summary::Max, skipped), "2 (2 that are not a number are left out)");
        let mixed = vec![Value::Duration(1), double(1.0)];
        assert!(shown(Summary::Sum, mixed).contains("others are durations"));
    }
}
