//! Normalizes statements and paths: two calls that differ only in their values get the same shape.
//!
//! This is not a parser: the same few rules apply to every SQL dialect and every path, and need not be exact. Findings report two
//! texts of the same shape as one repeated call. A shape contains no value of the text, so a message can show it.

use super::identifier::identifier;

/// The maximum number of bytes of a text that are read: texts that differ only after them have the same shape.
const TEXT_BYTES_MAX: usize = 4096;

/// Returns a statement with `?` for each value, one `?` for a list of values, and one blank between words.
pub(super) fn shape_of_statement(statement: &str) -> String {
    let statement = &statement[..statement.floor_char_boundary(TEXT_BYTES_MAX)];
    let mut shape = String::with_capacity(statement.len());
    let mut rest = statement.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' => {
                // A doubled quote inside a string reads as two adjacent strings here, which gives the same shape.
                while rest.next().is_some_and(|inner| inner != '\'') {}
                push_value(&mut shape);
            }
            '0'..='9' if !shape.ends_with(is_word) => {
                while rest.next_if(|c| c.is_alphanumeric() || *c == '.').is_some() {}
                push_value(&mut shape);
            }
            c if c.is_whitespace() => {
                if !shape.ends_with(' ') && !shape.is_empty() {
                    shape.push(' ');
                }
            }
            '?' => push_value(&mut shape),
            c => shape.push(c),
        }
    }
    shape.truncate(shape.trim_end().len());
    shape
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Appends `?` for a value, unless the shape already ends in `?`, or in `?` and a comma.
fn push_value(shape: &mut String) {
    let before = shape.trim_end();
    let list = before.strip_suffix(',').map(str::trim_end).filter(|list| list.ends_with('?'));
    match list.map(str::len) {
        Some(len) => shape.truncate(len),
        None if before.ends_with('?') => shape.truncate(before.len()),
        None => shape.push('?'),
    }
}

/// Returns a path with `{}` for each segment that is an id, without its query.
pub(super) fn shape_of_path(path: &str) -> String {
    let path = &path[..path.floor_char_boundary(TEXT_BYTES_MAX)];
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let segments = path.split('/').map(|segment| match identifier(segment) {
        Some(_) => "{}",
        None => segment,
    });
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::{shape_of_path, shape_of_statement};

    #[test]
    fn values_are_left_out_of_a_shape() {
        let statements = [
            ("SELECT * FROM t WHERE id = 42", "SELECT * FROM t WHERE id = ?"),
            ("SELECT  *\n FROM t1 WHERE x='it''s'  ", "SELECT * FROM t1 WHERE x=?"),
            ("WHERE id IN (1, 2,3) AND b = 1.5e3", "WHERE id IN (?) AND b = ?"),
            ("WHERE id IN (?, ?, ?)", "WHERE id IN (?)"),
            ("WHERE id = $1 AND x = :name", "WHERE id = $? AND x = :name"),
            ("GET user:17", "GET user:?"),
            ("'", "?"),
            ("", ""),
        ];
        for (statement, shape) in statements {
            assert_eq!(shape_of_statement(statement), shape, "{statement}");
        }
        let paths =
            [("/users/4711/cart?x=1", "/users/{}/cart"), ("/users/me", "/users/me"), ("", "")];
        for (path, shape) in paths {
            assert_eq!(shape_of_path(path), shape, "{path}");
        }
    }
}
