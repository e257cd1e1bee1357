//! Gates: what a run has to pass besides what its test says, and by which rules its trace is analyzed.
//!
//! They come from the documents beside the tests, the [`Analyzer`] and the [`QualityGate`] whose id is [`CURRENT`], and
//! hold for every test of a command, or of a project on a server. Deliberately absent: judging them (`judge::gate`).

use model::Place;

use crate::{
    analyze::Rules,
    document::{Analyzer, Gate, QualityGate, RequiredGate},
};

/// The id of the analyzer and of the quality gate that hold for runs; of one that is written without an id too.
pub const CURRENT: &str = "current";

/// What a run has to pass besides what its test says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    pub(crate) analysis: AnalysisMode,
    /// Each gate of the analyzer that is required, and where that is written.
    pub(crate) required: Vec<(AnalyzerGate, Place)>,
}

/// Whether the traces of runs are analyzed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnalysisMode {
    /// No document asks for it.
    #[default]
    NotRequested,
    /// The analyzer says that it is off.
    Disabled,
    /// By these rules.
    By(Rules),
}

/// A gate that the analyzer decides. `test-specs` is none: what a test says always counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnalyzerGate {
    Score,
    Rules,
}

impl Gates {
    /// What these documents ask of a run. Where a gate of the analyzer is required and there is no analyzer, the rules
    /// are those of every analyzer that says nothing else.
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

    /// Whether nothing is required that a trace can fail to meet, so that the test alone decides.
    pub(crate) fn is_open(&self) -> bool {
        self.required.is_empty() || !matches!(self.analysis, AnalysisMode::By(_))
    }
}

impl AnalyzerGate {
    /// As documents name it.
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
