//! Exit codes: the contract with CI pipelines.

use std::process::ExitCode;

use model::{Fault, Verdict};

/// The exit code of the program. The page of commands has these lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(clap::ValueEnum))]
pub(crate) enum Exit {
    /// 0: everything that was requested holds.
    Passed,
    /// 1: something was shown not to hold: a test failed, documents differ, a server is not ready.
    Failed,
    /// 2: usage, configuration or document error, or a refusal of the server; nothing was tested.
    Refused,
    /// 3: neither was shown: a verdict is inconclusive, or a server or another part could not be reached.
    Inconclusive,
    /// 130: Ctrl-C ended it.
    Interrupted,
    /// 143: SIGTERM or a closed terminal ended it.
    Terminated,
}

impl Exit {
    /// Aggregates several exits: returns the first of 130, 143, 2, 1, 3 that occurs.
    pub(crate) fn over(exits: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::Passed;
        for exit in exits {
            all = match (all, exit) {
                (Self::Interrupted, _) | (_, Self::Interrupted) => Self::Interrupted,
                (Self::Terminated, _) | (_, Self::Terminated) => Self::Terminated,
                (Self::Refused, _) | (_, Self::Refused) => Self::Refused,
                (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
                (Self::Inconclusive, _) | (_, Self::Inconclusive) => Self::Inconclusive,
                (Self::Passed, Self::Passed) => Self::Passed,
            };
        }
        all
    }
}

impl Exit {
    /// Returns its number.
    fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::Inconclusive => 3,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Self::Passed,
            Verdict::Failed => Self::Failed,
            Verdict::Inconclusive => Self::Inconclusive,
        }
    }
}

impl From<Fault> for Exit {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Invalid | Fault::Missing | Fault::Conflict | Fault::Denied => Self::Refused,
            // The environment or our code failed: the result of the system under test is unknown.
            Fault::Upstream | Fault::Overloaded | Fault::Internal => Self::Inconclusive,
        }
    }
}

/// Returns all exit codes with their meanings, for the page of commands.
#[cfg(test)]
pub(crate) fn all() -> Vec<(u8, String)> {
    use clap::ValueEnum;
    let line = |exit: &Exit| {
        let value = exit.to_possible_value().expect("none is hidden");
        let line = value.get_help().expect("each has a line").to_string();
        let (number, meaning) = line.split_once(": ").expect("a number and its meaning");
        assert_eq!(number, exit.code().to_string(), "{line}");
        (exit.code(), meaning.to_owned())
    };
    Exit::value_variants().iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::Exit::{self, Failed, Inconclusive, Interrupted, Passed, Refused, Terminated};

    #[test]
    fn of_several_the_first_of_2_1_3_counts() {
        let cases: [(&[Exit], Exit); 6] = [
            (&[], Passed),
            (&[Passed, Inconclusive], Inconclusive),
            (&[Inconclusive, Failed], Failed),
            (&[Failed, Refused, Inconclusive], Refused),
            (&[Passed, Passed], Passed),
            (&[Refused, Terminated, Interrupted, Failed], Interrupted),
        ];
        for (given, expected) in cases {
            assert_eq!(Exit::over(given.iter().copied()), expected, "{given:?}");
        }
    }
}
