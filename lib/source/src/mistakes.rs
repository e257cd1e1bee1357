//! The errors that both readers report, with the same messages.

use crate::{Diagnostic, Diagnostics, NESTING_MAX, Scalar, Span, TEXT_BYTES_MAX};

pub(crate) fn too_large(found: &Diagnostics) -> Diagnostic {
    let limit = TEXT_BYTES_MAX / 1024 / 1024;
    found.error(None, format!("larger than the {limit} MiB that are read")).help("split the file")
}

pub(crate) fn too_deep(found: &Diagnostics, span: Span) -> Diagnostic {
    let span = found.text().first_line(span);
    found.error(span, format!("nested deeper than {NESTING_MAX} levels"))
}

pub(crate) fn duplicate(found: &Diagnostics, key: &Scalar, first: Span) -> Diagnostic {
    found
        .error(key.span, format!("the key `{}` is written twice", key.text))
        .label("again here")
        .also(first, "first here")
}
