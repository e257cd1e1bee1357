//! Adds, subtracts, multiplies and divides numbers and durations, exactly as far as possible.
//!
//! Integers stay integers up to 128 bits; a quotient that is not an integer becomes the nearest double. A number in an operation
//! with a duration counts as nanoseconds, as in a comparison. The result is a duration if it is a whole number of nanoseconds,
//! otherwise a number of nanoseconds. A text is a valid operand if it contains a number or a duration.

use super::{Number, Size, Value, numeral::WHOLE_DOUBLE_MAX};
use crate::value::operator::Arithmetic;

const TOO_LARGE: &str = "the result is too large";

/// Calculates; the error is the reason why that is impossible.
pub(crate) fn calculate(
    left: &Value<'_>,
    operator: Arithmetic,
    right: &Value<'_>,
) -> Result<Value<'static>, &'static str> {
    let (Some(a), Some(b)) = (left.size(), right.size()) else {
        return Err("only numbers and durations can be calculated with");
    };
    match (a, operator, b) {
        (Size::Number(a), _, Size::Number(b)) => numbers(a, operator, b).map(Value::Number),
        (Size::Nanos(a), Arithmetic::Divide, Size::Nanos(b)) => {
            numbers(Number::Int(a), operator, Number::Int(b)).map(Value::Number)
        }
        (Size::Nanos(_), Arithmetic::Multiply, Size::Nanos(_)) => {
            Err("two durations cannot be multiplied")
        }
        (Size::Number(_), Arithmetic::Divide, Size::Nanos(_)) => {
            Err("a number cannot be divided by a duration")
        }
        _ => {
            let nanos = |size| match size {
                Size::Number(number) => number,
                Size::Nanos(nanos) => Number::Int(nanos),
            };
            Ok(match numbers(nanos(a), operator, nanos(b))? {
                Number::Int(nanos) => Value::Duration(nanos),
                fraction @ Number::Double(_) => Value::Number(fraction),
            })
        }
    }
}

/// Negates a value.
pub(crate) fn negate(value: &Value<'_>) -> Result<Value<'static>, &'static str> {
    calculate(&Value::Number(Number::Int(0)), Arithmetic::Subtract, value)
}

fn numbers(a: Number, operator: Arithmetic, b: Number) -> Result<Number, &'static str> {
    let (a, b) = (simplest(a), simplest(b));
    if operator == Arithmetic::Divide && b.equals(Number::Int(0)) {
        return Err("division by zero");
    }
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        let whole = match operator {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Subtract => a.checked_sub(b),
            Arithmetic::Multiply => a.checked_mul(b),
            Arithmetic::Divide if b != -1 && a % b != 0 => {
                return Ok(Number::Double(a as f64 / b as f64));
            }
            Arithmetic::Divide => a.checked_div(b),
        };
        return whole.map(Number::Int).ok_or(TOO_LARGE);
    }
    let (a, b) = (double(a), double(b));
    let result = match operator {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
    };
    if result.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(TOO_LARGE);
    }
    Ok(simplest(Number::Double(result)))
}

/// Converts a double without a fraction to an integer, to avoid unnecessary rounding.
fn simplest(number: Number) -> Number {
    match number {
        Number::Double(double) if double.abs() <= WHOLE_DOUBLE_MAX && double.fract() == 0.0 => {
            Number::Int(double as i128)
        }
        _ => number,
    }
}

fn double(number: Number) -> f64 {
    match number {
        Number::Int(int) => int as f64,
        Number::Double(double) => double,
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, calculate, negate};
    use crate::value::{
        Number,
        operator::Arithmetic::{self, Add, Divide, Multiply, Subtract},
    };

    fn int(int: i128) -> Value<'static> {
        Value::Number(Number::Int(int))
    }

    fn double(double: f64) -> Value<'static> {
        Value::Number(Number::Double(double))
    }

    #[test]
    fn results_are_exact_and_typed() {
        let ms = |ms: i128| Value::Duration(ms * 1_000_000);
        let cases: [(Value<'_>, Arithmetic, Value<'_>, Result<Value<'_>, &str>); 22] = [
            (int(10), Divide, int(4), Ok(double(2.5))),
            (int(20), Divide, int(4), Ok(int(5))),
            (double(2.5), Multiply, int(2), Ok(int(5))),
            (double(0.5), Add, double(0.5), Ok(int(1))),
            (int(9_007_199_254_740_993), Add, double(1.0), Ok(int(9_007_199_254_740_994))),
            (int(i64::MAX.into()), Add, int(1), Ok(int(9_223_372_036_854_775_808))),
            (int(i128::MAX), Add, int(1), Err("the result is too large")),
            (int(i128::MIN), Divide, int(-1), Err("the result is too large")),
            (double(1e308), Multiply, int(10), Err("the result is too large")),
            (int(1), Divide, int(0), Err("division by zero")),
            (int(1), Divide, double(-0.0), Err("division by zero")),
            (ms(1_000), Subtract, ms(1_500), Ok(ms(-500))),
            (ms(10), Divide, ms(4), Ok(double(2.5))),
            (ms(10), Multiply, int(2), Ok(ms(20))),
            (double(1.5), Multiply, ms(10), Ok(ms(15))),
            (ms(25), Divide, int(1_000_000), Ok(Value::Duration(25))),
            (Value::Duration(25_400_000), Divide, int(1_000_000), Ok(double(25.4))),
            (ms(10), Add, int(5), Ok(Value::Duration(10_000_005))),
            (ms(10), Multiply, ms(2), Err("two durations cannot be multiplied")),
            (int(1), Divide, ms(2), Err("a number cannot be divided by a duration")),
            (Value::Quoted("1"), Add, Value::borrowed("-3"), Ok(int(-2))),
            (Value::borrowed("5ms"), Add, ms(1), Ok(ms(6))),
        ];
        for (a, operator, b, expected) in cases {
            assert_eq!(calculate(&a, operator, &b), expected, "{a:?} {operator:?} {b:?}");
        }
        for other in
            [Value::borrowed("a"), Value::Bool(true), Value::Null, Value::List(vec![int(1)])]
        {
            assert!(calculate(&int(1), Add, &other).is_err(), "{other:?}");
        }
        assert_eq!(negate(&ms(5)), Ok(ms(-5)));
        assert_eq!(negate(&double(0.5)), Ok(double(-0.5)));
    }
}
