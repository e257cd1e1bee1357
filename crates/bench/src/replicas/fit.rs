//! A straight line through costs: what a request costs without spans, and what each span adds.

/// `request + span × spans`, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct CostLine {
    pub(super) request: f64,
    pub(super) span: f64,
    /// The largest difference of a point from the line, as a share of the point.
    pub(super) error: f64,
}

impl CostLine {
    /// Fits the line to pairs of a number of spans and a cost, such that the relative errors are small: small requests count as much
    /// as large ones.
    pub(super) fn fit(points: &[(f64, f64)]) -> Self {
        let (mut weight, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (spans, cost) in points {
            let one = 1.0 / (cost * cost);
            weight += one;
            x += one * spans;
            y += one * cost;
            xx += one * spans * spans;
            xy += one * spans * cost;
        }
        let span = (weight * xy - x * y) / (weight * xx - x * x);
        let request = (y - span * x) / weight;
        let errors =
            points.iter().map(|(spans, cost)| (request + span * spans - cost).abs() / cost);
        Self { request, span, error: errors.fold(0.0, f64::max) }
    }

    /// Returns the cost of a request with this many spans.
    pub(super) fn at(self, spans: f64) -> f64 {
        self.request + self.span * spans
    }
}

#[cfg(test)]
mod tests {
    use super::CostLine;

    #[test]
    fn a_line_is_found_again_and_a_point_beside_it_is_an_error() {
        let on_line = [1.0, 10.0, 100.0, 512.0].map(|spans| (spans, 5000.0 + 200.0 * spans));
        let line = CostLine::fit(&on_line);
        assert!(
            (line.request - 5000.0).abs() < 1e-6 && (line.span - 200.0).abs() < 1e-6,
            "{line:?}"
        );
        assert!(line.error < 1e-9 && (line.at(10.0) - 7000.0).abs() < 1e-6, "{line:?}");
        let mut beside = on_line;
        beside[1].1 *= 2.0;
        assert!(CostLine::fit(&beside).error > 0.2);
    }
}
