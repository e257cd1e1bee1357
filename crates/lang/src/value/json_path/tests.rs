//! Tests of paths as data: a document, a path, and its results or its error message.

use proptest::prelude::*;

use super::{find, parse};
use crate::value::json;

proptest! {
    #[test]
    fn any_path_finds_or_is_refused(path in "[$@.*\\[\\]'\"?()!=<>&|,:0-9a-c \\-é\\\\]{0,24}") {
        let document = json::read(SHOP).expect("a document");
        if let Ok(query) = parse(&path) {
            prop_assert!(find(&query, &document).is_ok(), "{path}");
        }
    }
}

fn found(document: &str, path: &str) -> String {
    let document = json::read(document).expect(document);
    let query = match parse(path) {
        Ok(query) => query,
        Err(mistake) => return mistake,
    };
    let found = find(&query, &document).expect("little to look at");
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    found.join(" ")
}

const SHOP: &str = r#"{
    "items": [{"sku":"a","qty":1,"ok":true}, {"sku":"b","qty":2,"ok":false}, {"sku":"c","qty":3,"ok":true}],
    "nested": {"b": {"sku":"deep"}, "a-b": 1, "": 2}, "tags": ["x","y","z"], "none": null, "key with space": 5, "lim": 2
}"#;

#[test]
fn paths_find() {
    for (path, expected) in [
        ("$.lim", "2"),
        ("lim", "2"),
        (".lim", "2"),
        ("@.lim", "2"),
        ("['lim']", "2"),
        ("$['key with space']", "5"),
        ("$[\"key with space\"]", "5"),
        ("$ .nested ['']", "2"),
        ("$.nested.a-b", "1"),
        ("$.nope", ""),
        ("$.lim.nope", ""),
        ("$.none", "null"),
        ("$.tags[0]", "\"x\""),
        ("$.tags[-1]", "\"z\""),
        ("$.tags[3]", ""),
        ("$.tags[-4]", ""),
        ("$.tags[1:]", "\"y\" \"z\""),
        ("$.tags[::2]", "\"x\" \"z\""),
        ("$.tags[::-1]", "\"z\" \"y\" \"x\""),
        ("$.tags[-2:]", "\"y\" \"z\""),
        ("$.tags[5:1:-1]", "\"z\""),
        ("$.tags[::0]", ""),
        ("$.tags[0, 2, 0]", "\"x\" \"z\" \"x\""),
        ("$.tags.*", "\"x\" \"y\" \"z\""),
        ("$.nested.*", "{\"sku\":\"deep\"} 1 2"),
        ("$..sku", "\"a\" \"b\" \"c\" \"deep\""),
        ("$..[0].sku", "\"a\""),
        ("$.items[?(@.qty > 1)].sku", "\"b\" \"c\""),
        ("$.items[?@.qty>1].sku", "\"b\" \"c\""),
        ("$.items[?(@.sku == 'c')].qty", "3"),
        ("$.items[?(@.ok == true && @.qty < 3 || @.sku == \"b\")].sku", "\"a\" \"b\""),
        ("$.items[?!(@.ok == true)].sku", "\"b\""),
        ("$.items[?!@.ok].sku", ""),
        ("$.items[?@.qty == $.lim].sku", "\"b\""),
        ("$.items[?@.nope == @.none].sku", "\"a\" \"b\" \"c\""),
        ("$.items[?@.qty >= 2.0].sku", "\"b\" \"c\""),
        ("$.items[?@.sku <= 'b'].qty", "1 2"),
        ("$.items[?@.ok <= true].qty", "1 3"),
        ("$.items[?length(@.sku) == 1 && count(@.*) == 3].qty", "1 2 3"),
        ("$.items[?match(@.sku, '[ab]')].qty", "1 2"),
        ("$.tags[?search(@, 'y|z')]", "\"y\" \"z\""),
        ("$.tags[?match(@, '(')]", ""),
        ("$.tags[?match(@, '|)(')]", ""),
        ("$[?value(@..qty) == 1]", ""),
        ("$[?@[?@.sku == 'b']][0].sku", "\"a\""),
    ] {
        assert_eq!(found(SHOP, path), expected, "{path}");
    }
}

#[test]
fn paths_are_refused() {
    for (path, place, expected) in [
        ("", 1, "it is empty; `$` is the whole document"),
        ("$[", 3, "expected a name in quotes, a number, `*` or `?`"),
        ("$.items[?(@.qty]", 16, "expected `)`"),
        ("$.a b", 4, "expected `.`, `[` or the end"),
        ("$.", 3, "expected a name or `*`; a name of other characters is written as `[\"…\"]`"),
        ("7", 1, "expected a name or `*`; a name of other characters is written as `[\"…\"]`"),
        ("$[01]", 3, "expected a whole number"),
        ("$[-0]", 3, "expected a whole number"),
        ("$[9007199254740992]", 3, "expected a whole number"),
        ("$['a]", 3, "the text that begins here has no end"),
        ("$['\\x']", 3, "the text that begins here has a wrong escape"),
        ("$[?@.a == ]", 11, "expected a value, `@` or `$`"),
        ("$[?@..a == 1]", 4, "what is compared has to be one value: names and indices only"),
        ("$[?1]", 5, "expected a comparison such as `==`"),
        ("$[?length(@.a)]", 15, "expected a comparison such as `==`"),
        ("$[?match(@.a) == 1]", 13, "expected `,` and another argument"),
        ("$[?!@.a == 1]", 5, "`!` stands before a comparison in parentheses only"),
    ] {
        let expected = format!("the JSON path has a mistake at its character {place}: {expected}");
        assert_eq!(parse(path), Err(expected), "{path}");
    }
    for deep in [format!("$[?{}", "(".repeat(100_000)), format!("${}", "[?@".repeat(100_000))] {
        assert!(parse(&deep).is_err_and(|mistake| mistake.contains("nested too deeply")));
    }
}

#[test]
fn work_has_an_end() {
    let document = json::read(&format!("[{}0]", "0,".repeat(3_000))).expect("a list");
    let squared = parse("$[?count($[*]) == 1]").expect("a path");
    assert!(find(&squared, &document).is_err(), "nine million looks");
}
