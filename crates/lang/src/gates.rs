//! Gates: requirements that a run has to pass in addition to its test, and the rules by which its trace is analyzed.
//!
//! They come from the documents next to the tests: the [`Analyzer`] and the [`QualityGate`] with the id [`CURRENT`](crate::CURRENT). They apply
//! to every test of a command, or of a project on a server. Deliberately absent: judging them (`judge::gate`).

use model::Place;

use crate::{
    analyze::Rules,
    document::{Analyzer, Gate, QualityGate, RequiredGate},
};

/// The requirements that a run has to pass in addition to its test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    pub(crate) analysis: AnalysisMode,
    /// Each required gate of the analyzer, and the location where the document requires it.
    pub(crate) required: Vec<(AnalyzerGate, Place)>,
}

/// Whether the traces of runs are analyzed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnalysisMode {
    /// No document requests analysis.
    #[default]
    NotRequested,
    /// The analyzer document turns analysis off.
    Disabled,
    /// Traces are analyzed by these rules.
    By(Rules),
}

/// A gate that the analyzer decides. `test-specs` is not one of them: the specs and claims of a test always count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnalyzerGate {
    Score,
    Rules,
}

impl Gates {
    /// Builds the requirements from these documents. If a gate of the analyzer is required but there is no analyzer document, the
    /// default rules apply.
    pub fn new(analyzer: Option<&Analyzer>, runner: Option<&QualityGate>) -> Self {
        let required = runner.map_or(&[][..], |runner| &runner.required_gates);
        let required: Vec<_> = required.iter().filter_map(analyzer_gate).collect();
        let analysis = match analyzer {
            Some(analyzer) if analyzer.is_enabled => AnalysisMode::By(analyzer.rules.clone()),
            Some(_) => AnalysisMode::Disabled,
            None if required.is_empty() => AnalysisMode::NotRequested,
            None => AnalysisMode::By(Rules::default()),
        };
        Self { analysis, required }
    }

    /// Whether nothing is required that a trace can fail, so that the test alone decides.
    pub(crate) fn is_open(&self) -> bool {
        self.required.is_empty() || !matches!(self.analysis, AnalysisMode::By(_))
    }
}

impl AnalyzerGate {
    /// Returns the name of the gate in documents.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Score => "analyzer-score",
            Self::Rules => "analyzer-rules",
        }
    }
}

fn analyzer_gate(required: &RequiredGate) -> Option<(AnalyzerGate, Place)> {
    let gate = match required.gate {
        Gate::AnalyzerScore => AnalyzerGate::Score,
        Gate::AnalyzerRules => AnalyzerGate::Rules,
        Gate::TestSpecs => return None,
    };
    Some((gate, required.place.clone()))
}
