//! Exit codes: what a pipeline can rely on.

use std::process::ExitCode;

use model::{Fault, Verdict};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: everything asked for was shown to hold.
    Passed,
    /// 1: something was shown not to hold.
    Failed,
    /// 2: usage, configuration or document error; nothing was tested.
    Refused,
    /// 3: nothing was shown either way.
    Inconclusive,
    /// 130: Ctrl-C ended it before all was tested.
    Interrupted,
    /// 143: SIGTERM, or a terminal that went away, ended it before all was tested.
    Terminated,
}

impl Exit {
    /// Of several, the first of 130, 143, 2, 1, 3 that occurs.
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
            // The world failed, or we did: nothing is known of the system under test.
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
