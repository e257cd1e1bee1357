//! Exit codes: the contract with CI pipelines.

use std::process::ExitCode;

use model::{Fault, Verdict};

/// The exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: everything requested was shown to hold.
    Passed,
    /// 1: something was shown not to hold.
    Failed,
    /// 2: usage, configuration or document error; nothing was tested.
    Refused,
    /// 3: neither was shown.
    Inconclusive,
    /// 130: Ctrl-C ended it before all tests were run.
    Interrupted,
    /// 143: SIGTERM, or a closed terminal, ended it before all tests were run.
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

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Passed => 0,
            Exit::Failed => 1,
            Exit::Refused => 2,
            Exit::Inconclusive => 3,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        })
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
