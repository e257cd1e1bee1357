//! Faults of the shop that can be switched on: five faults that are visible in traces but not in responses.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A fault of the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// `stock` reads the products of an order one by one.
    NPlusOne,
    /// `orders` does not send the trace context to `payments`.
    LostContext,
    /// `payments` is busy four times in a row, and `orders` retries at once.
    RetryStorm,
    /// Every statement takes 300 ms.
    SlowDatabase,
    /// `payments` and `shipping` hold back their spans for most of a second before they export them.
    LateSpans,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 5] =
        [Self::NPlusOne, Self::LostContext, Self::RetryStorm, Self::SlowDatabase, Self::LateSpans];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NPlusOne => "n-plus-one",
            Self::LostContext => "lost-context",
            Self::RetryStorm => "retry-storm",
            Self::SlowDatabase => "slow-database",
            Self::LateSpans => "late-spans",
        }
    }

    /// Returns a short description of the effect.
    pub fn about(self) -> &'static str {
        match self {
            Self::NPlusOne => "stock reads the products of an order one by one",
            Self::LostContext => "orders forgets to tell payments which trace it works for",
            Self::RetryStorm => "payments is busy four times in a row, and orders tries again",
            Self::SlowDatabase => "every statement takes 300 ms",
            Self::LateSpans => "payments and shipping keep their spans for 800 ms",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error for a name that is not the name of a fault.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no fault: expected n-plus-one, lost-context, retry-storm, slow-database or late-spans"
)]
pub struct UnknownFault(String);

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let named = Self::ALL.into_iter().find(|fault| fault.as_str() == text);
        named.ok_or_else(|| UnknownFault(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn a_fault_is_known_by_its_name_wherever_it_is_written() {
        for fault in Fault::ALL {
            assert_eq!(fault.as_str().parse(), Ok(fault));
            let json = serde_json::to_string(&fault).expect("a name");
            assert_eq!(json, format!("\"{fault}\""));
        }
        assert!("n+1".parse::<Fault>().is_err());
    }
}
