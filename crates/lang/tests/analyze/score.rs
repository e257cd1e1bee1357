//! Tests scores against values calculated by hand.

use lang::{Rules, analyze};
use model::Level;

use crate::notation::trace;

/// A span that breaks no rule.
const GOOD: &str = r#"@shop
GET /cart [server] {"http.request.method": "GET", "http.route": "/cart", "url.path": "/cart", "url.scheme": "https"}"#;

#[test]
fn scores_of_the_default_rules() {
    // (spans, standards, common, security, total)
    let cases = [
        ("", 100, 100, 100, 100),
        (GOOD, 100, 100, 100, 100),
        // The name is wrong: 75 of 100. (75 + 100 + 100) / 3 = 91.67.
        (
            r#"cart [server] {"http.request.method": "GET", "http.route": "/cart", "url.path": "/cart", "url.scheme": "https"}"#,
            75,
            100,
            100,
            91,
        ),
        // The old semantic conventions without `net.host.name`, and without TLS. (75 + 100 + 70) / 3 = 81.67.
        (
            r#"GET /cart [server] {"http.method": "GET", "http.route": "/cart", "http.target": "/cart", "http.scheme": "http"}"#,
            75,
            100,
            70,
            81,
        ),
        // An IP address, and a header. (100 + 0 + 30) / 3 = 43.33.
        (
            r#"GET [client] {"http.request.method": "GET", "url.full": "https://10.0.0.7/", "server.address": "10.0.0.7", "http.request.header.authorization": ["Digest x"]}"#,
            100,
            0,
            30,
            43,
        ),
        // An empty attribute with a bad name, on one of three spans: two rules of four.
        (
            r#"a [internal]
b [internal] {"Bad": ""}
c [internal]"#,
            50,
            100,
            100,
            83,
        ),
    ];
    for (spans, standards, common, security, total) in cases {
        let analysis = analyze(&trace(spans), &Rules::default());
        let scores: Vec<_> = analysis.plugins.iter().map(|it| (it.id.as_str(), it.score)).collect();
        let expected = [
            ("standards", standards),
            ("common", common),
            ("security", security),
            ("structure", 100),
            ("repetition", 100),
        ];
        assert_eq!((scores.as_slice(), analysis.score), (expected.as_slice(), total), "{spans}");
    }
}

#[test]
fn a_score_is_of_what_takes_part() {
    // Breaks `span-naming`, `secure-https-protocol` and, as an orphan next to a root, `no-orphans`.
    let trace = trace(
        r#"a [internal]
  ? cart [server] {"http.request.method": "GET", "http.route": "/cart", "url.path": "/cart", "url.scheme": "http"}"#,
    );
    let score = |change: &dyn Fn(&mut Rules)| {
        let mut rules = Rules::default();
        change(&mut rules);
        let analysis = analyze(&trace, &rules);
        let ids: Vec<_> = analysis.plugins.into_iter().map(|plugin| plugin.id).collect();
        (ids.len(), analysis.score)
    };
    let set = |rules: &mut Rules, plugin: &str, rule: &str, level: Option<Level>, weight: u32| {
        let plugin = rules.plugin_mut(plugin).expect("it is there");
        let rule = plugin.rule_mut(rule).expect("it is there");
        (rule.level, rule.weight) = (level, weight);
    };
    // (75 + 100 + 70) / 3.
    assert_eq!(score(&|_| ()), (5, 81));
    // With plugins disabled: (75 + 70) / 2.
    let off = |rules: &mut Rules| {
        for id in ["common", "structure", "repetition"] {
            rules.plugin_mut(id).expect("it is there").is_enabled = false;
        }
    };
    assert_eq!(score(&off), (2, 72));
    // With a rule that only warns: (100 + 100 + 70) / 3.
    let told = |rules: &mut Rules| set(rules, "standards", "span-naming", Some(Level::Warning), 25);
    assert_eq!(score(&told), (5, 90));
    // With a disabled rule and the same weights for the others: 50 of 75, then (66 + 100 + 70) / 3.
    let heavier = |rules: &mut Rules| {
        set(rules, "standards", "no-empty-attributes", None, 25);
        set(rules, "standards", "span-naming", Some(Level::Error), 25);
    };
    assert_eq!(score(&heavier), (5, 78));
    // A new rule that counts: the plugin has a score now, 0. (75 + 100 + 70 + 0) / 4.
    let counted = |rules: &mut Rules| set(rules, "structure", "no-orphans", Some(Level::Error), 40);
    assert_eq!(score(&counted), (5, 61));
    // A plugin without a rule that counts has no part in the mean: (75 + 100) / 2.
    let silent = |rules: &mut Rules| {
        set(rules, "security", "secure-https-protocol", Some(Level::Warning), 30);
        set(rules, "security", "no-api-key-leak", None, 70);
    };
    assert_eq!(score(&silent), (5, 87));
    assert_eq!(analyze(&trace, &Rules::without_plugins()).score, 100);
}
