//! A property of every format: nothing in it controls its reader.

use report::Format;

/// Checks that nothing is invisible, and that only `github` writes commands of a CI pipeline.
pub(crate) fn safe(format: &Format, text: &str) {
    for line in text.lines() {
        assert!(!line.contains(is_hidden), "{format:?}: {line:?}");
        let is_command = line.trim_start().starts_with("::");
        assert!(!is_command || format.name == "github", "{line}");
        for command in ["##[", "##vso[", "##teamcity["] {
            assert!(!line.contains(command), "{format:?}: {line}");
        }
    }
    assert!(text.is_empty() || text.ends_with('\n'), "{format:?}");
    assert!(!text.contains('\r'), "{format:?}");
}

/// Checks that lines for people have no trailing whitespace.
pub(crate) fn lines_end(text: &str) {
    assert!(!text.ends_with("\n\n"));
    for line in text.lines() {
        assert_eq!(line, line.trim_end());
    }
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
            | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}
