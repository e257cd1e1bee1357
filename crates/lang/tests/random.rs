//! Whatever is written, nothing panics; and selectors select what their definition says.

mod case;

use lang::{Document, compile, read};
use proptest::prelude::{
    ProptestConfig, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest,
};
use source::{Colour, Text, draw};

/// Pieces of both languages, right and wrong.
const PIECES: &[&str] = &[
    "span",
    "[",
    "]",
    "name",
    "=",
    "contains",
    "not-contains",
    "\"a\"",
    "'a'",
    "\"",
    "'",
    "\\",
    ",",
    ".",
    ":",
    "first",
    "last",
    "nth_child",
    "(",
    ")",
    "2",
    "-",
    "0x2",
    "1_0",
    "1.5",
    "5ms",
    "5 ms",
    "9999999999999999999999",
    "attr:",
    "attr:name",
    "attr:tracetest.selected_spans.count",
    "attr:tracetest.response.body",
    "var:x",
    "${",
    "}",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "|",
    "json_path",
    "+",
    "and",
    "not",
    "true",
    " ",
    "\n",
    "//",
    "/*",
    "*/",
    "é",
    "\u{200b}",
    "日本",
    "🚀",
    "{\"a\":1}",
    "[1]",
];

/// Pieces of documents.
const LINES: &[&str] = &[
    "type: Test",
    "type: Demo",
    "spec:",
    "  name: x",
    "  id: y",
    "  trigger:",
    "    type: http",
    "    httpRequest:",
    "      url: http://x",
    "      headers:",
    "        - key: a",
    "          value: b",
    "      body: |",
    "        ${var:x}",
    "  specs:",
    "    - selector: span[]",
    "      assertions:",
    "        - attr:a = 1",
    "        - 5",
    "  outputs:",
    "    - name: z",
    "      value: attr:a",
    "  settle:",
    "    timeout: 1s",
    "  specs: [{selector: [], assertions: {}}]",
    "---",
    "  ? a",
    "  - [",
    "  key: &a b",
    "  <<: *a",
    "\t",
    "# ${",
    "  skipTraceCollection: maybe",
];

fn soup(pieces: &'static [&'static str], between: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(move |p| p.join(between))
}

fn anything() -> impl Strategy<Value = String> {
    prop_oneof![soup(PIECES, ""), soup(PIECES, " "), any::<String>()]
}

/// Reads, compiles and draws; gives the plans' number back.
fn compile_text(yaml: String) -> usize {
    let (documents, mut found) = read(&Text::new("t.yaml", yaml));
    let mut plans = 0;
    for Document::Test(test) in &documents {
        let (plan, more) = compile(test);
        plans += usize::from(plan.is_some());
        found.extend(more);
    }
    draw(&found, Colour::Never);
    plans
}

fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn no_string_panics(selector in anything(), assertion in anything(), url in anything()) {
        compile_text(format!(
            "type: Test\nspec:\n  name: x\n  trigger: {{type: http, httpRequest: {{url: {}}}}}\n  specs:\n  - selector: {}\n    assertions: [{}]\n",
            quoted(&url), quoted(&selector), quoted(&assertion),
        ));
    }

    #[test]
    fn no_document_panics(document in prop_oneof![soup(LINES, "\n"), any::<String>()]) {
        compile_text(document);
    }

    /// What compiles can be judged, and twice the same (`case::judge` looks).
    #[test]
    fn what_compiles_is_judged(selector in anything(), assertion in anything()) {
        for (selector, assertion) in [
            (selector.as_str(), "attr:name != 5"),
            ("span[]", assertion.as_str()),
        ] {
            let specs = format!("specs: [{{selector: {}, assertions: [{}]}}]", quoted(selector), quoted(assertion));
            let head = "type: Test\nspec:\n  name: x\n  trigger: {type: http, httpRequest: {url: http://x}}\n";
            if compile_text(format!("{head}  {specs}\n")) == 1 {
                case::judge("answer 200 {\"a\":1}\nsettled whole\na [server 5ms] {\"a\": 1}", &specs);
            }
        }
    }

    #[test]
    fn selectors_select_what_they_say(
        tree in prop::collection::vec((0usize..4, 0usize..3), 1..16),
        steps in prop::collection::vec((0usize..4, 0usize..5), 1..4),
    ) {
        let tree = Tree::grow(&tree);
        let selector: Vec<String> = steps.iter().map(|(name, position)| {
            let name = ["a", "b", "c"].get(*name).map_or(String::new(), |name| format!("name=\"{name}\""));
            let position = ["", ":first", ":last", ":nth_child(2)", ":nth_child(99)"][*position];
            format!("span[n=true {name}]{position}")
        }).collect();
        let selector = selector.join(" ");
        let specs = format!("specs: [{{selector: '{selector}', assertions: ['attr:name != 5']}}]");
        let judged = case::judge(&format!("answer 200\nsettled whole\n{}", tree.written), &specs);
        let mut listed: Vec<usize> = judged
            .lines()
            .filter_map(|line| line.trim().strip_prefix("passed "))
            .filter_map(|line| usize::from_str_radix(line.get(..2)?, 16).ok())
            .map(|id| id - 3)
            .collect();
        listed.sort_unstable();
        prop_assert_eq!(listed, tree.select(&steps), "{}\n{}\n{}", selector, tree.written, judged);
    }
}

/// A tree in the order of its lines, with the definition of selectors spelled out on it.
struct Tree {
    written: String,
    names: Vec<usize>,
    parents: Vec<Option<usize>>,
}

impl Tree {
    /// Each span is one deeper at most than the one before.
    fn grow(spans: &[(usize, usize)]) -> Self {
        let mut tree = Self { written: String::new(), names: Vec::new(), parents: Vec::new() };
        let mut open: Vec<usize> = Vec::new();
        for (at, (depth, name)) in spans.iter().enumerate() {
            open.truncate(*depth);
            tree.parents.push(open.last().copied());
            tree.names.push(*name);
            let indent = "  ".repeat(open.len());
            tree.written.push_str(&format!(
                "{indent}{} [internal 1ms] {{\"n\": true}}\n",
                ["a", "b", "c"][*name]
            ));
            open.push(at);
        }
        tree.written.pop();
        tree
    }

    fn select(&self, steps: &[(usize, usize)]) -> Vec<usize> {
        let mut outer: Option<Vec<usize>> = None;
        for (name, position) in steps {
            let matching = |at: &usize| *name > 2 || self.names[*at] == *name;
            let scopes: Vec<Vec<usize>> = match &outer {
                None => vec![(0..self.names.len()).collect()],
                Some(outer) => outer.iter().map(|ancestor| self.below(*ancestor)).collect(),
            };
            let mut selected: Vec<usize> = Vec::new();
            for scope in scopes {
                let found: Vec<usize> = scope.into_iter().filter(matching).collect();
                selected.extend(match position {
                    0 => found,
                    1 => found.first().copied().into_iter().collect(),
                    2 => found.last().copied().into_iter().collect(),
                    3 => found.get(1).copied().into_iter().collect(),
                    _ => Vec::new(),
                });
            }
            selected.sort_unstable();
            selected.dedup();
            outer = Some(selected);
        }
        outer.unwrap_or_default()
    }

    fn below(&self, ancestor: usize) -> Vec<usize> {
        let is_below = |at: &usize| {
            let mut parent = self.parents[*at];
            while let Some(above) = parent {
                if above == ancestor {
                    return true;
                }
                parent = self.parents[above];
            }
            false
        };
        (0..self.names.len()).filter(is_below).collect()
    }
}
