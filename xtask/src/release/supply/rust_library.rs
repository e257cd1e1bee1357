//! The licences of the standard library of Rust, which is part of every binary and of no lockfile.
//!
//! Each toolchain has them as a page, which is read here into plain text. A text that the page has for many crates is kept once.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail};

use crate::{machine::Machine, spawn};

/// Returns what the toolchain states, as plain text.
pub(super) fn read(machine: &Machine) -> Result<String> {
    let sysroot = spawn::output(machine.command("rustc").args(["--print", "sysroot"]))?;
    let file = Path::new(&sysroot).join("share/doc/rust/COPYRIGHT-library.html");
    let page = fs::read_to_string(&file).with_context(|| {
        format!("cannot read `{}`, which is part of each toolchain of rustup", file.display())
    })?;
    parse(&page).with_context(|| format!("`{}`", file.display()))
}

/// Reads the page: verbatim texts are in `pre`, with the crate in an `h3` and the name of the file in a line before them.
fn parse(page: &str) -> Result<String> {
    let (_, body) = page.split_once("<body>").context("expected a page with a body")?;
    let mut out = String::new();
    // The first crate and file that had a text.
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let (mut name, mut file) = (String::new(), String::new());
    for (index, part) in body.split("<pre>").enumerate() {
        let mut lines = part;
        if index > 0 {
            let (text, rest) = part.split_once("</pre>").context("a `pre` has no end")?;
            let text = plain(text)?.trim_matches('\n').trim_end().to_owned();
            match known.get(&text) {
                Some(first) => out.push_str(&format!("(the same text as {first})\n")),
                None => {
                    out.extend(["\n", &text, "\n\n"]);
                    known.insert(text, format!("{file} of {name}"));
                }
            }
            lines = rest;
        }
        if let Some((_, title)) = lines.rsplit_once("<h3>") {
            let (title, _) = title.split_once("</h3>").context("an `h3` has no end")?;
            name = plain(title)?.trim_start_matches("📦 ").to_owned();
        }
        for line in plain(lines)?.lines().map(str::trim).filter(|line| !line.is_empty()) {
            line.clone_into(&mut file);
            out.extend([line, "\n"]);
        }
    }
    Ok(out)
}

/// Returns a text without tags and with its characters for their entities.
fn plain(text: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        let (end, is_tag) = if rest[at..].starts_with('<') { ('>', true) } else { (';', false) };
        let (inner, after) = rest[at + 1..].split_once(end).context("a tag has no end")?;
        if !is_tag {
            out.push(entity(inner)?);
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn entity(name: &str) -> Result<char> {
    let number = name.strip_prefix('#').and_then(|digits| digits.parse().ok());
    match (name, number.and_then(char::from_u32)) {
        (_, Some(character)) => Ok(character),
        ("amp", _) => Ok('&'),
        ("lt", _) => Ok('<'),
        ("gt", _) => Ok('>'),
        ("quot", _) => Ok('"'),
        _ => bail!("`&{name};` is no entity that this reads"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_lines_and_texts_and_each_text_once() {
        let page = "<html><body><h1>Notices</h1>\n<h3>📦 a-1</h3>\n  <p><b>Authors:</b> A &#60;a@b&#62;</p>
            <summary><code>MIT</code></summary>\n<pre>\n\n  &#34;as is&#34;\nhere\n   </pre>
            <h3>b-1</h3>\n<summary>LICENSE</summary><pre>  &quot;as is&quot;\nhere</pre></body>";
        let expected = "Notices\n📦 a-1\nAuthors: A <a@b>\nMIT\n\n  \"as is\"\nhere\n\nb-1\nLICENSE\n(the same text as MIT of a-1)\n";
        assert_eq!(parse(page).expect("a page"), expected);
    }

    #[test]
    fn a_page_of_another_form_is_refused() {
        for page in ["no page", "<body><pre>x", "<body>a & b", "<body>&nbsp;"] {
            assert!(parse(page).is_err(), "{page}");
        }
    }
}
