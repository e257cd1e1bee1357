//! Files of `packaging` with places for values: `@NAME@`, in capital letters.

use std::{collections::BTreeSet, fs};

use anyhow::{Context, Result, bail};

use crate::machine::Machine;

/// Returns a file of `packaging` with the values in their places.
pub(crate) fn filled(machine: &Machine, name: &str, values: &[(&str, &str)]) -> Result<String> {
    let file = machine.root.join("packaging").join(name);
    let text = fs::read_to_string(&file)
        .with_context(|| format!("`{}` cannot be read", file.display()))?;
    fill(&text, values).with_context(|| format!("`{}`", file.display()))
}

/// Puts each value into its place. A place without a value is an error, and so is a value without a place.
fn fill(text: &str, values: &[(&str, &str)]) -> Result<String> {
    let mut filled = String::with_capacity(text.len());
    let mut used = BTreeSet::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('@') {
        filled.push_str(before);
        let name = after.split_once('@').map(|(name, _)| name).filter(|name| is_place(name));
        let Some(name) = name else {
            filled.push('@');
            rest = after;
            continue;
        };
        let value = values.iter().find(|(known, _)| *known == name);
        let (name, value) = value.with_context(|| format!("`@{name}@` has no value"))?;
        used.insert(*name);
        filled.push_str(value);
        rest = &after[name.len() + 1..];
    }
    filled.push_str(rest);
    if let Some((name, _)) = values.iter().find(|(name, _)| !used.contains(name)) {
        bail!("it has no `@{name}@`");
    }
    Ok(filled)
}

fn is_place(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|it| it.is_ascii_uppercase() || it == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_place() {
        let values = [("A", "1"), ("B_C", "2")];
        assert_eq!(
            fill("x@A@y@B_C@ $@ \"$@\" a@b.c@", &values).expect("filled"),
            "x1y2 $@ \"$@\" a@b.c@"
        );
        let words = fill("@A@", &values).expect_err("B_C is not in it").to_string();
        assert_eq!(words, "it has no `@B_C@`");
        let words = fill("@A@ @B_C@ @D@", &values).expect_err("D is unknown").to_string();
        assert_eq!(words, "`@D@` has no value");
    }
}
