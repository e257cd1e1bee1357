//! Values as YAML, for people who read them.
//!
//! Written here, since a value of JSON needs little of YAML: strings are plain only where no parser could read anything else, and
//! otherwise in double quotes, whose escapes are those of JSON.

use serde_json::Value;

/// Words that some version of YAML reads as something else than a string.
const RESERVED: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// Returns a value as a YAML document that ends with a line break.
pub(crate) fn of(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    let text = text.trim_start_matches('\n');
    format!("{}\n", text.strip_prefix(' ').unwrap_or(text))
}

/// Writes a value behind a key or a dash.
fn write(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                *text += &format!("\n{}{}:", "  ".repeat(indent), string(key));
                write(value, indent + 1, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                *text += &format!("\n{}-", "  ".repeat(indent));
                write(item, indent + 1, text);
            }
        }
        Value::String(value) => *text += &format!(" {}", string(value)),
        value => *text += &format!(" {value}"),
    }
}

fn string(text: &str) -> String {
    let is_word = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|it| it.is_ascii_alphanumeric() || "_.-/".contains(it))
        && !RESERVED.contains(&text.to_ascii_lowercase().as_str());
    if is_word {
        return text.to_owned();
    }
    let quoted = Value::from(text).to_string();
    // Beyond 16 bits JSON escapes a character as two, which is none of YAML's escapes.
    let tags = '\u{e0000}'..='\u{e007f}';
    quoted
        .chars()
        .map(|it| match tags.contains(&it) {
            true => format!("\\U{:08x}", u32::from(it)),
            false => it.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::of;

    #[test]
    fn a_value_is_readable_yaml() {
        let value = json!({
            "id": "shop", "no": "yes", "text": "a: b # c\n\"d\"", "empty": {}, "none": null,
            "list": [1, "two", {"a": [true, []]}],
        });
        let expected = r#"empty: {}
id: shop
list:
  - 1
  - two
  -
    a:
      - true
      - []
"no": "yes"
none: null
text: "a: b # c\n\"d\""
"#;
        assert_eq!(of(&value), expected);
        assert_eq!(of(&json!("a b")), "\"a b\"\n");
        assert_eq!(of(&json!("a\u{e0041}")), "\"a\\U000e0041\"\n");
        assert_eq!(of(&json!([])), "[]\n");
    }
}
