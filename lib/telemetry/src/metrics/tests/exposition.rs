//! A strict parser of Prometheus' text format: it rejects every text that breaks a rule of the format.

use std::collections::{BTreeMap, BTreeSet};

/// Labels by name.
pub(super) type ParsedLabels = BTreeMap<String, String>;

/// A line with a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: ParsedLabels,
    pub(super) value: f64,
}

/// All samples under one `# TYPE`.
#[derive(Clone, Debug)]
pub(super) struct ParsedFamily {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) help: Option<String>,
    pub(super) samples: Vec<Sample>,
}

/// Parses the families of a text, or returns the rule that it breaks.
pub(super) fn parse(text: &str) -> Result<Vec<ParsedFamily>, String> {
    let mut families: Vec<ParsedFamily> = Vec::new();
    let mut help: Option<(String, String)> = None;
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line does not end".to_owned());
    }
    for line in text.split_terminator('\n') {
        let broken = |rule: &str| format!("{rule}: {line}");
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, text) = rest.split_once(' ').ok_or_else(|| broken("no help"))?;
            let before =
                help.replace((name.to_owned(), unescaped(text).map_err(|rule| broken(&rule))?));
            if before.is_some() {
                return Err(broken("the help before it has no type"));
            }
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or_else(|| broken("no type"))?;
            if !["counter", "gauge", "histogram"].contains(&kind) || !is_name(name) {
                return Err(broken("not a type"));
            }
            if families.iter().any(|family| family.name == name) {
                return Err(broken("a family twice"));
            }
            let help =
                help.take().map(
                    |(of, help)| if of == name { Ok(help) } else { Err(broken("help of another")) },
                );
            let (name, kind) = (name.to_owned(), kind.to_owned());
            families.push(ParsedFamily {
                name,
                kind,
                help: help.transpose()?,
                samples: Vec::new(),
            });
        } else {
            let family = families.last_mut().ok_or_else(|| broken("no type before it"))?;
            family.samples.push(sample(line).map_err(|rule| broken(&rule))?);
        }
    }
    families.iter().try_for_each(check)?;
    Ok(families)
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => '\n',
                Some(escaped @ ('\\' | '"')) => escaped,
                _ => return Err("not an escape".to_owned()),
            },
            (letter, false) => letter,
        });
    }
    Ok(out)
}

fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, mut rest) = line.split_at(end);
    if !is_name(name) {
        return Err(format!("`{name}` is not a name"));
    }
    let mut labels = ParsedLabels::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"").ok_or("no label")?;
            let closing = closing_quote(after).ok_or("a quote that stays open")?;
            if !is_name(label) || label.starts_with("__") {
                return Err(format!("`{label}` is not the name of a label"));
            }
            if labels.insert(label.to_owned(), unescaped(&after[..closing])?).is_some() {
                return Err(format!("the label `{label}` twice"));
            }
            rest = &after[closing + 1..];
            match rest.split_at_checked(1) {
                Some((",", after)) => rest = after,
                Some(("}", after)) => break rest = after,
                _ => return Err("labels that stay open".to_owned()),
            }
        }
    }
    let value = rest.strip_prefix(' ').ok_or("no space before the value")?;
    let value = value.parse().map_err(|_| format!("`{value}` is not a number"))?;
    Ok(Sample { name: name.to_owned(), labels, value })
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, letter)| {
        let closing = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        closing.then_some(at)
    })
}

fn check(family: &ParsedFamily) -> Result<(), String> {
    let mut met = BTreeSet::new();
    for sample in &family.samples {
        if !met.insert((&sample.name, &sample.labels)) {
            return Err(format!("a series twice: {sample:?}"));
        }
    }
    if family.samples.is_empty() {
        return Err(format!("`{}` has no sample", family.name));
    }
    match family.kind.as_str() {
        "histogram" => check_histogram(family),
        kind => {
            if family.samples.iter().any(|sample| sample.name != family.name) {
                return Err(format!("`{}` holds a sample of another name", family.name));
            }
            if kind == "counter" && !family.name.ends_with("_total") {
                return Err(format!("the counter `{}` does not end in `_total`", family.name));
            }
            Ok(())
        }
    }
}

/// Checks that bucket counts increase, that the last bucket is `+Inf` and equals `_count`, and that each series has a
/// sum and a count.
fn check_histogram(family: &ParsedFamily) -> Result<(), String> {
    #[derive(Default)]
    struct Series {
        buckets: Vec<(f64, f64)>,
        sums: usize,
        counts: Vec<f64>,
    }
    let mut all: BTreeMap<ParsedLabels, Series> = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        let bound = labels.remove("le");
        let series = all.entry(labels).or_default();
        match (sample.name.strip_prefix(&family.name), bound) {
            (Some("_bucket"), Some(bound)) => {
                let bound = bound.parse().map_err(|_| format!("`{bound}` is not a bound"))?;
                series.buckets.push((bound, sample.value));
            }
            (Some("_sum"), None) => series.sums += 1,
            (Some("_count"), None) => series.counts.push(sample.value),
            _ => return Err(format!("not of a histogram: {sample:?}")),
        }
    }
    for Series { buckets, sums, counts } in all.values() {
        let rises = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let last = buckets.last().copied();
        if !rises || *sums != 1 || counts.len() != 1 || last != Some((f64::INFINITY, counts[0])) {
            return Err(format!("`{}`: {buckets:?} with {sums} sums and {counts:?}", family.name));
        }
    }
    Ok(())
}

#[test]
fn a_text_that_breaks_a_rule_is_refused() {
    for broken in [
        "a 1\n",
        "# TYPE a gauge\n",
        "# TYPE a gauge\na 1",
        "# TYPE a gauge\na one\n",
        "# TYPE a gauge\na 1\na 2\n",
        "# TYPE a gauge\nb 1\n",
        "# TYPE a counter\na 1\n",
        "# TYPE a gauge\na 1\n# TYPE a gauge\na{b=\"c\"} 1\n",
        "# TYPE a.b gauge\na.b 1\n",
        "# TYPE a gauge\na{b.c=\"d\"} 1\n",
        "# TYPE a gauge\na{b=\"c} 1\n",
        "# TYPE a gauge\na{b=\"\\c\"} 1\n",
        "# HELP b text\n# TYPE a gauge\na 1\n",
        "# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 2\n",
        "# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
        "# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
        "# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_count 1\n",
    ] {
        assert!(parse(broken).is_err(), "{broken}");
    }
    let right =
        "# HELP a b\\\\c\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n";
    let families = parse(right).expect("a right text");
    assert_eq!(families[0].help.as_deref(), Some("b\\c"));
}
