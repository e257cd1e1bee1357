//! `low-cardinality-names`: the name of a span describes its operation, and holds no id of the object of that operation.
//!
//! A name that contains an id creates a separate time series for each id, and hides that all of them are one operation.

use super::{
    dns::is_address,
    finding::{Findings, shown},
    identifier::{identifier, uuid_at_end},
    world::{AnalysisContext, AnalyzedSpan},
};

/// The minimum number of digits of a number outside a path: a shorter number may be a status, a port or a step.
const WORD_DIGITS_MIN: usize = 5;
/// The maximum number of bytes of a name that the rule reads.
const NAME_BYTES_MAX: usize = 4096;

/// Path segments after which a number is a version.
const BEFORE_VERSIONS: &[&str] = &["api", "rest", "v", "version"];

pub(super) fn low_cardinality_names(world: &AnalysisContext<'_>, findings: &mut Findings) {
    for AnalyzedSpan { span, .. } in world.subjects() {
        let name = span.name();
        let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
        if let Some((piece, what)) = varying(name) {
            findings.add(*span, || {
                let piece = shown(piece);
                format!("holds {what} in its name, {piece}: put that into an attribute instead")
            });
        }
    }
}

/// Returns the first piece of a name that differs between calls, and the kind of that piece.
fn varying(name: &str) -> Option<(&str, &'static str)> {
    name.split_whitespace().find_map(|word| {
        let (path, query) = word.split_once('?').unwrap_or((word, ""));
        // The values of a query may hold anything, so the finding does not show them.
        if let Some((key, _)) = query.split_once('=') {
            return Some((key, "a query"));
        }
        if is_mail(path) {
            return Some((path, "a mail address"));
        }
        let mut before = "";
        path.split('/').find_map(|segment| {
            let found = varying_segment(segment, before, path.contains('/'));
            before = segment;
            found
        })
    })
}

fn varying_segment<'a>(
    segment: &'a str,
    before: &str,
    is_path: bool,
) -> Option<(&'a str, &'static str)> {
    // `{id}`, `:id`, `<id>`, `[id]`, `*`, `$id`: the placeholder of an id in a route.
    if segment.contains(['{', '}', '<', '>', '[', ']', '*', '$']) || segment.starts_with(':') {
        return None;
    }
    if let Some(what) = identifier(segment) {
        let is_number = what == "a number";
        let is_version =
            is_number && BEFORE_VERSIONS.iter().any(|word| word.eq_ignore_ascii_case(before));
        let is_small = is_number && !is_path && segment.len() < WORD_DIGITS_MIN;
        return (!is_small && !is_version).then_some((segment, what));
    }
    if is_address(segment.split(':').next().unwrap_or(segment)) {
        return Some((segment, "an address"));
    }
    if let Some(uuid) = uuid_at_end(segment) {
        return Some((uuid, "a UUID"));
    }
    let parts = segment.split(['-', '_', '.', ':', '#', '=', ',', '(', ')', '"', '\'']);
    parts.into_iter().find_map(|part| {
        let what = identifier(part).filter(|_| part.len() >= WORD_DIGITS_MIN)?;
        Some((part, what))
    })
}

fn is_mail(word: &str) -> bool {
    word.split_once('@').is_some_and(|(who, place)| {
        !who.is_empty() && place.contains('.') && !place.contains('/') && !who.contains('/')
    })
}

#[cfg(test)]
mod tests {
    use super::varying;

    #[test]
    fn names_of_one_thing_are_told_from_names_of_many() {
        let one = [
            ("GET /users/4711", "4711"),
            ("GET /users/7", "7"),
            ("GET /users/123e4567-e89b-12d3-a456-426614174000/cart", "123e4567"),
            ("process order-123e4567-e89b-12d3-a456-426614174000", "123e4567"),
            ("GET /search?q=shoes", "q"),
            ("order 104422", "104422"),
            ("job#99123", "99123"),
            ("consume orders.507f1f77bcf86cd799439011", "507f"),
            ("mail anna@shop.test", "anna@"),
            ("connect 10.0.0.7:5432", "10.0.0.7"),
            ("SELECT * FROM t WHERE id='10442'", "10442"),
        ];
        for (name, piece) in one {
            let found = varying(name).map(|(found, _)| found).unwrap_or_default();
            assert!(found.starts_with(piece), "{name}: {found}");
        }
        let many = [
            "GET /users/{id}",
            "GET /users/:id/orders/<int:order>",
            "GET /api/v1/users",
            "GET /rest/api/2/issue",
            "GET /users/*/cart?",
            "grpc.health.v1.Health/Check",
            "SELECT shop.orders2",
            "publish orders-eu-1",
            "HTTP 404",
            "retry 3",
            "listen 8080",
            "S3.PutObject",
            "",
        ];
        for name in many {
            assert_eq!(varying(name), None, "{name}");
        }
    }
}
