//! The operators on values: functions, filters, arithmetic and comparisons.

/// A function that generates a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Uuid,
    FirstName,
    LastName,
    FullName,
    Email,
    Phone,
    CreditCard,
    CreditCardCvv,
    CreditCardExpDate,
    Date,
    DateTime,
    RandomInt,
}

/// A filter behind `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    JsonPath,
    Regex,
    RegexGroup,
    GetIndex,
    Length,
    Type,
    Keys,
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparator {
    Equal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Contains,
    StartsWith,
    EndsWith,
    /// `=~` in a selector, `matches` in an expression; the parser accepts both in both.
    Matches,
    In,
}
