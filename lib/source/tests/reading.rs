//! The results of the two readers for valid documents, and the errors for invalid ones.

use source::{
    Colour, DIAGNOSTICS_MAX, Diagnostic, Diagnostics, Fields, NESTING_MAX, Node, Scalar, Severity,
    Span, TEXT_BYTES_MAX, Text, Value, draw, read_toml, read_yaml,
};

/// Formats the tree in one line: `{k: [str(a), int(1)]}`.
fn show(node: &Node) -> String {
    match &node.value {
        Value::Scalar(scalar) => {
            if let Some(value) = scalar.as_str() {
                format!("{value:?}")
            } else if let Some(value) = scalar.as_bool() {
                format!("{value}")
            } else if let Some(value) = scalar.as_i64() {
                format!("{value}")
            } else if let Some(value) = scalar.as_f64() {
                format!("{value:?}")
            } else if scalar.is_null() {
                "null".to_owned()
            } else {
                format!("({} {})", scalar.kind(), scalar.text)
            }
        }
        Value::Sequence(items) => {
            format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        Value::Table(entries) => {
            let entry =
                |entry: &source::Entry| format!("{}: {}", entry.key.text, show(&entry.value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Formats the message and the location of each diagnostic.
fn told(mistakes: &[Diagnostic]) -> Vec<String> {
    let one = |mistake: &Diagnostic| match mistake.span {
        Some(span) => {
            let place = mistake.text.place(span.start);
            format!("{}:{} {}", place.line, place.column, mistake.message)
        }
        None => mistake.message.clone(),
    };
    mistakes.iter().map(one).collect()
}

fn yaml(content: &str) -> (Vec<String>, Vec<String>) {
    let (documents, mistakes) = read_yaml(&Text::new("t.yaml", content));
    (documents.iter().map(show).collect(), told(&mistakes))
}

fn toml(content: &str) -> (String, Vec<String>) {
    let (document, mistakes) = read_toml(&Text::new("t.toml", content));
    (document.as_ref().map(show).unwrap_or_default(), told(&mistakes))
}

#[test]
fn yaml_documents() {
    for (content, documents) in [
        ("", vec![]),
        ("# only a comment\n", vec![]),
        ("---\n---\n...\n", vec![]),
        ("a: 1\n---\nb: 2\n---\n", vec!["{a: 1}", "{b: 2}"]),
        ("--- a\n--- null\n", vec!["\"a\"", "null"]),
        ("a: 5\nb: \"5\"\nc: '5'\nd: |-\n  5\n", vec![r#"{a: 5, b: "5", c: "5", d: "5"}"#]),
        (
            "a: yes\nb: true\nc: ~\nd: 1.5\ne:\n",
            vec![r#"{a: "yes", b: true, c: null, d: 1.5, e: null}"#],
        ),
        ("a: !!str 5\nb: !!int \"5\"\nc: ! 5\n", vec![r#"{a: "5", b: 5, c: "5"}"#]),
        ("a: &x [1]\nb: *x\n", vec!["{a: [1], b: [1]}"]),
        ("&k a: 1\nb: *k\n", vec![r#"{a: 1, b: "a"}"#]),
        ("a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\n", vec!["{a: {p: 1, q: 2}, b: {q: 3, p: 1}}"]),
        ("<<: [{a: 1}, {a: 2, b: 3}]\n", vec!["{a: 1, b: 3}"]),
        ("'<<': 1\n", vec!["{<<: 1}"]),
        ("[a: 1, b]\n", vec![r#"[{a: 1}, "b"]"#]),
        ("{a, b: }\n", vec!["{a: null, b: null}"]),
        (
            "enable: true\nenable.log-exporter: true\n",
            vec!["{enable: true, enable.log-exporter: true}"],
        ),
        ("\u{feff}a: 1\r\nb: 2\r\n", vec!["{a: 1, b: 2}"]),
    ] {
        let documents: Vec<String> = documents.into_iter().map(str::to_owned).collect();
        assert_eq!(yaml(content), (documents, vec![]), "{content:?}");
    }
}

#[test]
fn yaml_mistakes_are_told_and_reading_goes_on() {
    for (content, documents, mistakes) in [
        ("a: 1\na: 2\nb: 3\n", vec!["{a: 1, b: 3}"], vec!["2:1 the key `a` is written twice"]),
        ("[a]: 1\nb: 2\n", vec!["{b: 2}"], vec!["1:1 a key must be a single value"]),
        ("<<: 1\nb: 2\n", vec!["{b: 2}"], vec!["1:5 `<<` must be a table or a list of tables"]),
        ("a: !x 1\n", vec!["{a: 1}"], vec!["1:4 the tag `!x` is ignored"]),
        (
            "a: &x 1\n---\nb: *x\n---\nc: 3\n",
            vec!["{a: 1}", "{c: 3}"],
            vec!["3:4 an alias without an anchor in this document"],
        ),
        ("a: &x [*x]\n", vec![], vec!["1:8 an alias is inside the value that it repeats"]),
        (
            "a: é: b\n---\nb: 2\n---\n- @\n---\nc: 3\n",
            vec!["{b: 2}", "{c: 3}"],
            vec![
                "1:5 not valid YAML: mapping values are not allowed in this context",
                "5:3 not valid YAML: unexpected character: `@`",
            ],
        ),
    ] {
        let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(yaml(content), (owned(documents), owned(mistakes)), "{content:?}");
    }
}

#[test]
fn a_key_that_stands_twice_is_shown_in_both_places() {
    let text = Text::new("t.yaml", "a: 1\nb: 2\na: 3\n");
    let (_, mistakes) = read_yaml(&text);
    let places = (mistakes[0].span.unwrap(), mistakes[0].also[0].0);
    assert_eq!((text.place(places.0.start).line, text.place(places.1.start).line), (3, 1));
}

#[test]
fn toml_documents() {
    for (content, document) in [
        ("", "{}"),
        ("a = 1\nb = 'x'\nc = [1, 2.5, true]\n", r#"{a: 1, b: "x", c: [1, 2.5, true]}"#),
        ("[a.b]\nc = 1\n[a]\nd = 2\n", "{a: {b: {c: 1}, d: 2}}"),
        ("a.b.c = 1\na.b.d = 2\n", "{a: {b: {c: 1, d: 2}}}"),
        ("[[a]]\nx = 1\n[a.b]\ny = 2\n[[a]]\nx = 3\n", "{a: [{x: 1, b: {y: 2}}, {x: 3}]}"),
        ("a = {x = 1, y.z = 2}\n", "{a: {x: 1, y: {z: 2}}}"),
        ("a = [[1], {b = 2}]\n", "{a: [[1], {b: 2}]}"),
        ("a = 0xff\nb = 1_000\nc = 0b11\nd = -inf\n", "{a: 255, b: 1000, c: 3, d: -inf}"),
        ("a = 2026-01-02\nb = 99999999999999999999\n", "{a: (a date 2026-01-02), b: 1e20}"),
        ("\u{feff}\"a b\" = 1\r\n", "{a b: 1}"),
        (
            "[tracer.otel]\nenable = true\n\"enable.log-exporter\" = true\n",
            "{tracer: {otel: {enable: true, enable.log-exporter: true}}}",
        ),
        ("[a]\nb.c = 1\n[a.b.d]\ne = 2\n", "{a: {b: {c: 1, d: {e: 2}}}}"),
    ] {
        assert_eq!(toml(content), (document.to_owned(), vec![]), "{content:?}");
    }
}

#[test]
fn toml_mistakes_are_told_and_reading_goes_on() {
    for (content, document, mistakes) in [
        ("a = 1\na = 2\nb = 3\n", "{a: 1, b: 3}", vec!["2:1 the key `a` is written twice"]),
        (
            "[a]\n[a]\nx = 1\nx = 2\n",
            "{a: {}}",
            vec!["2:2 the key `a` is written twice", "4:1 the key `x` is written twice"],
        ),
        ("a = 1\n[a]\n", "{a: 1}", vec!["2:2 the key `a` is written twice"]),
        ("a = 1\n[a.b]\n", "{a: 1}", vec!["2:2 nothing can be added to `a`"]),
        ("a = {}\na.b = 1\n", "{a: {}}", vec!["2:1 nothing can be added to `a`"]),
        ("[a.b]\n[a]\nb.c = 1\n", "{a: {b: {}}}", vec!["3:1 nothing can be added to `b`"]),
        ("a = [1]\n[[a]]\n", "{a: [1]}", vec!["2:3 the key `a` is written twice"]),
        ("[a]\nb.c = 1\n[a.b]\n", "{a: {b: {c: 1}}}", vec!["3:4 the key `b` is written twice"]),
        (
            "enable = true\nenable.log-exporter = true\n",
            "{enable: true}",
            vec!["2:1 nothing can be added to `enable`"],
        ),
    ] {
        let mistakes: Vec<String> = mistakes.into_iter().map(str::to_owned).collect();
        assert_eq!(toml(content), (document.to_owned(), mistakes), "{content:?}");
    }
    let (document, mistakes) = toml("a = \nb = 2\nc 3\nd = \"x\ne = 5\n");
    assert!(document.contains("b: 2") && document.contains("e: 5"), "{document}");
    assert!(mistakes.len() >= 3, "{mistakes:?}");
}

#[test]
fn nesting_is_bounded() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let blocks = |levels: usize| "- ".repeat(levels) + "a";
    let too_deep = "nested deeper than 128 levels";
    assert!(yaml(&deep(NESTING_MAX)).1.is_empty());
    assert!(yaml(&blocks(NESTING_MAX)).1.is_empty());
    for content in [deep(NESTING_MAX + 1), blocks(NESTING_MAX + 1), deep(100_000), blocks(100_000)]
    {
        let (documents, mistakes) = yaml(&content);
        assert!(documents.is_empty());
        assert!(
            mistakes[0].contains(too_deep) || mistakes[0].contains("recursion"),
            "{mistakes:?}"
        );
    }
    assert!(toml(&format!("a = {}", deep(NESTING_MAX))).1.is_empty());
    assert_eq!(toml(&format!("a = {}", deep(100_000))).1.len(), 1);
    let dotted = vec!["a"; 100_000].join(".");
    assert!(toml(&format!("{dotted} = 1")).1[0].contains(too_deep));
    assert!(toml(&format!("[{dotted}]\nx = 1")).1[0].contains(too_deep));
    assert!(toml(&format!("[{}]\n{0} = 1", vec!["a"; 100].join("."))).1[0].contains(too_deep));
}

#[test]
fn nesting_through_aliases_is_bounded() {
    let level = |n: usize| format!("a{n}: &a{n} {}*a{}{}\n", "[".repeat(50), n - 1, "]".repeat(50));
    let content = format!("a0: &a0 1\n{}{}{}", level(1), level(2), level(3));
    assert_eq!(yaml(&content).1, ["4:59 nested deeper than 128 levels"]);
}

#[test]
fn a_billion_laughs_stop_early() {
    let mut content = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for n in 1..12 {
        let list = vec![format!("*a{}", n - 1); 9].join(", ");
        content.push_str(&format!("a{n}: &a{n} [{list}]\n"));
    }
    let (documents, mistakes) = yaml(&content);
    assert!(documents.is_empty());
    assert_eq!(mistakes.len(), 1);
    assert!(mistakes[0].contains("anchors and aliases repeat too much"), "{mistakes:?}");
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 1000].join(", "));
    assert!(yaml(&long).1[0].contains("anchors and aliases repeat too much"));
}

#[test]
fn a_text_that_is_too_large_is_refused() {
    let content = "a".repeat(TEXT_BYTES_MAX + 1);
    assert_eq!(yaml(&content), (vec![], vec!["larger than the 4 MiB that are read".to_owned()]));
    assert_eq!(toml(&content).1, ["larger than the 4 MiB that are read"]);
}

#[test]
fn diagnostics_are_bounded() {
    let broken = "--- @\n".repeat(DIAGNOSTICS_MAX * 4);
    assert_eq!(yaml(&broken).1.len(), DIAGNOSTICS_MAX);
    let (_, mistakes) = read_toml(&Text::new("t.toml", "a = 1\n".repeat(DIAGNOSTICS_MAX * 4)));
    assert_eq!(mistakes.len(), DIAGNOSTICS_MAX + 1);
    assert_eq!(mistakes[DIAGNOSTICS_MAX].severity, Severity::Note);
}

#[test]
fn what_stands_for_something_else_is_refused_where_it_came_from() {
    let (text, start) = Text::new("t.yaml", "a: ${A}\nc: {}\n").with_part("more", "A=x");
    let (documents, _) = read_yaml(&Text::new("t.yaml", "a: 1\nc: {}\n"));
    let found = Diagnostics::new(&text);
    let mut fields = Fields::of(&documents[0], "the document", &found).unwrap();
    let item = fields.take("a").unwrap();
    let source = Span { start: start + 2, end: start + 3 };
    for (scalar, is_number) in [
        (Scalar::instead("x", (3..7).into()), false),
        (Scalar::instead("5", (3..7).into()).plain(), true),
    ] {
        let scalar = scalar.with_sources(vec![source]);
        let node = Node { span: scalar.span, value: Value::Scalar(scalar) };
        assert_eq!(item.with_node(&node).integer(0..=9).is_some(), is_number);
        assert_eq!(item.with_node(&node).size(0..=9).is_some(), is_number);
    }
    // A missing section is empty; a present section has its path.
    assert!(fields.section("none").take("x").is_none());
    assert_eq!(fields.section("c").section("d").string("e"), None);
    fields.finish();
    let drawn = draw(&found.into_vec(), Colour::Never);
    let expected = "\
error: `a` must be an integer from 0 to 9
 --> t.yaml:1:4
  |
1 | a: ${A}
  |    ^^^^ found a string
  |
 ::: more:1:3
  |
1 | A=x
  |   - from here

error: `a` must be a size from 0B to 9B, such as `32MiB`
 --> t.yaml:1:4
  |
1 | a: ${A}
  |    ^^^^
  |
 ::: more:1:3
  |
1 | A=x
  |   - from here
";
    assert_eq!(drawn, expected);
}

/// A key without a similar candidate is reported as missing, also if reading ends early.
#[test]
fn a_misspelt_key_is_not_missing_as_well() {
    let text = Text::new("t.yaml", "hots: a\n");
    let (documents, _) = read_yaml(&text);
    let told = |read: fn(Fields<'_>)| {
        let found = Diagnostics::new(&text);
        read(Fields::of(&documents[0], "the document", &found).unwrap());
        found.into_vec().into_iter().map(|one| one.message).collect::<Vec<_>>()
    };
    let missing = |key: &str| format!("missing key `{key}` in the document");
    let unknown = "unknown key `hots` in the document".to_owned();
    let both = told(|mut fields| {
        assert!(fields.require("host").is_none() && fields.require("port").is_none());
        fields.finish();
    });
    assert_eq!(both, [unknown, missing("port")]);
    assert_eq!(told(|mut fields| drop(fields.require("host"))), [missing("host")]);
}

#[test]
fn a_hidden_value_is_not_quoted() {
    let text = Text::new("t.yaml", "password: 12345\n").hiding([(10..15).into()]);
    let (documents, _) = read_yaml(&text);
    let found = Diagnostics::new(&text);
    Fields::of(&documents[0], "the document", &found).unwrap().string("password");
    let drawn = draw(&found.into_vec(), Colour::Never);
    assert!(drawn.ends_with("help: write it in quotes\n") && !drawn.contains("12345"), "{drawn}");
}

/// Each of these takes minutes if any part of the readers is quadratic.
#[test]
fn large_texts_are_read_in_linear_time() {
    let lines = |line: &dyn Fn(usize) -> String| (0..30_000).map(line).collect::<String>();
    for content in [
        lines(&|n| format!("key{n}: 'ü'\n")),
        lines(&|n| format!("- |\n  {n}\n")),
        lines(&|_| "--- |\n a\n".to_owned()),
        lines(&|n| if n % 3 == 0 { format!("- &a{n} b\n- *a{n}\n") } else { "- a\n".to_owned() }),
    ] {
        assert_eq!(yaml(&content).1, Vec::<String>::new());
    }
    assert!(toml(&lines(&|n| format!("key{n} = 1\n"))).1.is_empty());
    assert!(toml(&lines(&|n| format!("[a.key{n}]\nb.c = 1\n"))).1.is_empty());
}
