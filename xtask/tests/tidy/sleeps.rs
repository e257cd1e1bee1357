//! Tests wait for conditions and not for time: who sleeps in test code polls, controls the clock, or gives a reason.

use crate::{
    code::code,
    workspace::{Source, Workspace},
};

/// How many lines above a `sleep` its reason may stand.
const ABOVE: usize = 3;

/// A `sleep(` in test code stands in the body of a `loop` or `while`, in a test with a paused clock, or at most three
/// lines below a comment.
pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in workspace.files() {
        let code = code(&file.text);
        let lines: Vec<_> = file.text.lines().collect();
        let first = first_of_tests(file);
        for (at, _) in code.match_indices("sleep(") {
            let before = &code[..at];
            let line = before.matches('\n').count();
            let is_longer_word = before.ends_with(is_word);
            if line < first || is_longer_word || is_polling(before) || is_paused(before) {
                continue;
            }
            if !has_comment(&lines, line) {
                let (path, line) = (&file.path, line + 1);
                complaints.push(format!(
                    "{path}:{line}: sleeps: wait for a condition in a loop, or give the reason in a comment above"
                ));
            }
        }
    }
    complaints
}

/// Returns the first line of the tests: of the whole file, or of its block `mod tests`.
fn first_of_tests(file: &Source) -> usize {
    match file.path.contains("/tests/") || file.path.ends_with("/tests.rs") {
        true => 0,
        false => file.around_tests().0.lines().count(),
    }
}

/// Whether the end of this code is in the body of a `loop` or `while`.
fn is_polling(code: &str) -> bool {
    let mut blocks = Vec::new();
    let mut head = 0;
    for (at, c) in code.char_indices().filter(|(_, c)| matches!(c, '{' | '}' | ';')) {
        match c {
            '{' => blocks.push(words(&code[head..at]).any(|it| it == "loop" || it == "while")),
            '}' => drop(blocks.pop()),
            _ => {}
        }
        head = at + 1;
    }
    blocks.contains(&true)
}

/// Whether the end of this code is in a test with a paused clock, and not in a function behind it.
fn is_paused(code: &str) -> bool {
    let Some(test) = code.rfind("test(").map(|at| &code[at..]) else { return false };
    let attribute = test.split(']').next().unwrap_or_default();
    attribute.contains("start_paused") && words(test).filter(|it| *it == "fn").count() == 1
}

/// Whether a comment stands behind the `sleep` of this line, or closely above it.
fn has_comment(lines: &[&str], line: usize) -> bool {
    let is_behind = lines[line].split("sleep(").skip(1).any(|rest| rest.contains("// "));
    let above = &lines[line.saturating_sub(ABOVE)..line];
    is_behind || above.iter().any(|line| line.trim_start().starts_with("// "))
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c| !is_word(c))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
