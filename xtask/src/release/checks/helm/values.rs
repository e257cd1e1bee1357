//! The values of the chart: each key has an effect, and values that contradict each other are refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context, Result, bail};

use super::chart::Chart;
use crate::machine::Machine;

/// A line of `keys.txt`: a key, a value file, and a value as JSON with which its output changes.
#[derive(Debug, PartialEq, Eq)]
struct Effect<'t> {
    key: &'t str,
    case: &'t str,
    json: &'t str,
}

/// A line of `refused.txt`: a value file, the keys that are changed, and words of the message.
#[derive(Debug, PartialEq, Eq)]
struct Refusal<'t> {
    case: &'t str,
    keys: Vec<&'t str>,
    words: &'t str,
}

/// Checks that the schema of values has that of the server's configuration, as it is now.
pub(super) fn schema(machine: &Machine, chart: &Chart<'_>) -> Result<()> {
    let file = chart.sources.join("qualitytrace/values.schema.json");
    let ours = fs::read_to_string(&file).with_context(|| format!("`{}`", file.display()))?;
    let server = machine.root.join("docs/quality-trace-config.schema.json");
    let server = fs::read_to_string(&server).with_context(|| format!("`{}`", server.display()))?;
    let expected = with_server(&ours, &server)?;
    if expected != ours {
        fs::write(file.with_extension("json.proposed"), expected)?;
        bail!(
            "values.schema.json has another schema of the configuration than docs: accept the new one by `cargo xtask accept`"
        );
    }
    Ok(())
}

/// Replaces the definition of the server's configuration in a schema of values.
fn with_server(ours: &str, server: &str) -> Result<String> {
    const FIRST: &str = "    \"serverConfiguration\": {";
    let start = ours.lines().position(|line| line == FIRST);
    let start = start.with_context(|| format!("values.schema.json has no line `{FIRST}`"))?;
    let lines: Vec<_> = ours.lines().collect();
    let length = lines[start..].iter().position(|line| *line == "    }" || *line == "    },");
    let end = start + length.context("values.schema.json: the definition does not end")?;
    // A definition does not name its own dialect.
    let inner = server.lines().filter(|line| !line.starts_with("  \"$schema\"")).skip(1);
    let mut inner: Vec<_> = inner.map(|line| format!("    {line}")).collect();
    // The last line closes the schema, as it does here.
    inner.pop();
    let before = lines[..=start].iter().map(|&it| it.to_owned());
    let after = lines[end..].iter().map(|&it| it.to_owned());
    Ok(before.chain(inner).chain(after).map(|line| line + "\n").collect())
}

/// Checks that every key of values.yaml changes what the chart renders.
pub(super) fn keys(chart: &Chart<'_>) -> Result<()> {
    let values = chart.helm(&["show", "values"])?;
    let defined: BTreeSet<_> = leaves(&values)?.into_iter().collect();
    let text =
        fs::read_to_string(chart.sources.join("keys.txt")).context("deploy/helm/keys.txt")?;
    let effects = lines(&text).map(Effect::parse).collect::<Result<Vec<_>>>()?;
    let shown: BTreeSet<_> = effects.iter().map(|it| it.key.to_owned()).collect();
    if defined != shown || shown.len() != effects.len() {
        let missing: Vec<_> = defined.difference(&shown).cloned().collect();
        let unknown: Vec<_> = shown.difference(&defined).cloned().collect();
        bail!(
            "deploy/helm/keys.txt has to have each key of values.yaml once: missing {missing:?}, unknown {unknown:?}, {} lines \
             for {} keys",
            effects.len(),
            shown.len()
        );
    }
    let mut before = BTreeMap::new();
    for Effect { key, case, json } in &effects {
        let values = chart.case(case);
        if !before.contains_key(case) {
            before.insert(case, chart.render(&values, &[])?);
        }
        let after = chart
            .render(&values, &[format!("{key}={json}")])
            .with_context(|| format!("keys.txt: `{key}` with {case}"))?;
        if before.get(case) == Some(&after) {
            bail!("`{key}: {json}` changes nothing of what {case} renders");
        }
    }
    println!("  each of {} keys of values.yaml changes what is rendered", effects.len());
    Ok(())
}

/// Checks that values which contradict each other are refused, with the words that lead to them.
pub(super) fn refusals(chart: &Chart<'_>) -> Result<()> {
    let text =
        fs::read_to_string(chart.sources.join("refused.txt")).context("deploy/helm/refused.txt")?;
    let refusals = lines(&text).map(Refusal::parse).collect::<Result<Vec<_>>>()?;
    for Refusal { case, keys, words } in &refusals {
        let keys: Vec<_> = keys.iter().map(|&it| it.to_owned()).collect();
        match chart.render(&chart.case(case), &keys) {
            Ok(_) => bail!("{case} with {keys:?} is rendered: expected `{words}`"),
            Err(error) if format!("{error:#}").contains(words) => {}
            Err(error) => bail!("{case} with {keys:?}: expected `{words}`, found: {error:#}"),
        }
    }
    println!("  {} contradictions and misspelt keys are refused", refusals.len());
    Ok(())
}

impl<'t> Effect<'t> {
    fn parse(line: &'t str) -> Result<Self> {
        let mut words = line.splitn(3, ' ');
        let [Some(key), Some(case), Some(json)] = [(); 3].map(|()| words.next()) else {
            bail!("keys.txt: `{line}` is not KEY CASE JSON");
        };
        Ok(Self { key, case, json })
    }
}

impl<'t> Refusal<'t> {
    fn parse(line: &'t str) -> Result<Self> {
        let (left, words) = line
            .split_once(" => ")
            .with_context(|| format!("refused.txt: `{line}` has no ` => `"))?;
        let mut keys = left.split(' ');
        let case = keys.next().unwrap_or_default();
        Ok(Self { case, keys: keys.collect(), words })
    }
}

/// Returns the lines of a table without its comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the paths of all values of a YAML document of mappings, two spaces a level, with one key on each line.
fn leaves(yaml: &str) -> Result<Vec<String>> {
    let (mut open, mut found) = (Vec::<&str>::new(), Vec::new());
    let mut parents = BTreeSet::new();
    for line in yaml.lines() {
        let text = line.trim_start();
        // An item belongs to the list of the key before it.
        if text.is_empty() || text.starts_with('#') || text.starts_with("- ") {
            continue;
        }
        let depth = (line.len() - text.len()) / 2;
        let key = text.split_once(':').map(|(key, _)| key);
        let (Some(key), true) = (key, depth <= open.len()) else {
            bail!("values.yaml: `{line}` is not a key below the one before it");
        };
        open.truncate(depth);
        parents.insert(open.join("."));
        open.push(key);
        found.push(open.join("."));
    }
    found.retain(|path| !parents.contains(path));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{Effect, Refusal, leaves, lines, with_server};

    #[test]
    fn the_schema_of_the_server_is_replaced_and_nothing_else() {
        let server = "{\n  \"$schema\": \"x\",\n  \"type\": \"object\"\n}\n";
        let ours =
            "{\n  \"$defs\": {\n    \"serverConfiguration\": {\n      \"old\": 1\n    }\n  }\n}\n";
        let made = with_server(ours, server).expect("made");
        assert_eq!(made, ours.replace("\"old\": 1", "\"type\": \"object\""));
        assert_eq!(with_server(&made, server).expect("made"), made);
        assert!(with_server("{}", server).is_err());
    }

    #[test]
    fn leaves_are_what_has_no_key_below_it() {
        let yaml = "# c\na: 1\nb:\n  # c\n  c: \"x: y\"\n  d:\n    - e: f\n    - g\n  h:\n    i: {}\nj: []\n";
        assert_eq!(leaves(yaml).expect("read"), ["a", "b.c", "b.d", "b.h.i", "j"]);
        assert!(leaves("a: 1\n    b: 2\n").is_err());
    }

    #[test]
    fn tables_are_read_without_their_comments() {
        let text = "# comment\na.b minimal {\"c\": \"d e\"}\n\n";
        let effects: Vec<_> = lines(text).map(|it| Effect::parse(it).expect("a line")).collect();
        assert_eq!(effects, [Effect { key: "a.b", case: "minimal", json: "{\"c\": \"d e\"}" }]);
        let refusal = Refusal::parse("minimal a=1 b=2 => no `a` => b").expect("a line");
        assert_eq!(
            refusal,
            Refusal { case: "minimal", keys: vec!["a=1", "b=2"], words: "no `a` => b" }
        );
        assert!(Effect::parse("a b").is_err());
        assert!(Refusal::parse("a b").is_err());
    }
}
