//! Suites: the order of steps, values from one step to the next, and the effect of a failure.

use anyhow::Result;

use crate::stand::{Answer, Answers, Stand, names, outcomes, plain};

/// Returns a test with an output `key`, which passes the body's field `key` to later steps.
fn giving(name: &str, url: &str, key: &str) -> String {
    let output = format!(
        "  outputs:\n    - name: {key}\n      selector: span[name=\"Qualitytrace trigger\"]\n      value: attr:tracetest.response.body | json_path '$.{key}'\n"
    );
    plain(name, url) + &output
}

async fn answers() -> Result<Answers> {
    Answers::start(|path, _| Answer {
        body: "{\"token\": \"s3cr3t-of-ada-1\", \"id\": \"17\"}".to_owned(),
        ..Answer::status(if path.starts_with("/bad") { 500 } else { 200 })
    })
    .await
}

#[tokio::test]
async fn outputs_reach_later_steps_and_secrets_no_report() -> Result<()> {
    let answers = answers().await?;
    let stand = Stand::new()?;
    let url = &answers.url;
    stand.write(
        "t/login.yaml",
        &giving("login", &format!("{url}/login/${{var:PASSWORD}}"), "token"),
    )?;
    stand.write("t/order.yaml", &giving("order", &format!("{url}/order/${{var:token}}"), "id"))?;
    stand.write(
        "t/look.yaml",
        &plain("look", &format!("{url}/orders/${{var:id}}/${{var:token}}")),
    )?;
    stand.write(
        "t/suite.yaml",
        "type: TestSuite\nspec:\n  name: checkout\n  steps:\n    - login\n    - test: ./order.yaml\n      name: order it\n    - look\n",
    )?;
    let secret = ["--set", "PASSWORD=s3cr3t-of-ada", "--secret", "PASSWORD"];
    let run =
        [&["run", "t", "--otlp", "127.0.0.1:0", "--report", "json", "--verbose"], &secret[..]];
    let finished = stand.run(&run.concat()).await?;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let asked: Vec<_> = answers.asked().into_iter().collect();
    let expected = ["/login/s3cr3t-of-ada", "/order/s3cr3t-of-ada-1", "/orders/17/s3cr3t-of-ada-1"];
    assert_eq!(
        asked,
        expected.map(|path| (path.to_owned(), 1)),
        "each once, with what came before"
    );
    let order: Vec<_> = outcomes(&finished)?
        .iter()
        .map(|it| it["test"].as_str().unwrap_or("").to_owned())
        .collect();
    assert_eq!(order, ["checkout / login", "checkout / order it", "checkout / look"]);
    let outputs = outcomes(&finished)?[0]["judgement"]["outputs"].to_string();
    assert!(outputs.contains("***-1"), "the secret in it is masked: {outputs}");
    let outputs = outcomes(&finished)?[1]["judgement"]["outputs"].to_string();
    assert!(outputs.contains("\"17\""), "{outputs}");
    Ok(())
}

#[tokio::test]
async fn what_needs_a_step_that_did_not_pass_is_not_run() -> Result<()> {
    let answers = answers().await?;
    let stand = Stand::new()?;
    for name in ["bad", "left", "right", "last"] {
        stand.write(&format!("t/{name}.yaml"), &plain(name, &format!("{}/{name}", answers.url)))?;
    }
    let suite = "type: TestSuite
spec:
  name: graph
  steps:
    - {test: bad, needs: []}
    - {test: left, needs: []}
    - {test: right, needs: [left]}
    - {test: last, needs: [right, bad]}
";
    stand.write("t/suite.yaml", suite)?;
    let run = ["run", "t", "--otlp", "127.0.0.1:0", "--report", "json"];
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let asked: Vec<_> = answers.asked().into_keys().collect();
    assert_eq!(asked, ["/bad", "/left", "/right"]);
    let outcomes = outcomes(&finished)?;
    let last = outcomes.iter().find(|it| it["test"] == "graph / last");
    let last = last.map(ToString::to_string).unwrap_or_default();
    assert!(last.contains("it needs the step `bad`, which did not pass"), "{last}");
    assert!(last.contains("\"verdict\":\"inconclusive\""), "{last}");
    // A test that is selected by its name is run by itself, without its suite.
    let alone = stand.run(&[&run[..], &["--test", "left"]].concat()).await?;
    assert_eq!(names(&alone)?, ["left"]);
    let suite = stand.run(&[&run[..], &["--test", "graph", "--repeat", "2"]].concat()).await?;
    assert_eq!(names(&suite)?.len(), 8, "{suite:?}");
    Ok(())
}

#[tokio::test]
async fn a_value_that_never_came_leaves_a_step_open_and_a_wrong_name_is_refused() -> Result<()> {
    let answers = answers().await?;
    let stand = Stand::new()?;
    let nobody =
        "    - name: nothing\n      selector: span[name=\"nobody\"]\n      value: attr:name\n";
    stand.write("a.yaml", &format!("{}  outputs:\n{nobody}", plain("a", &answers.url)))?;
    stand.write("b.yaml", &plain("basket", &format!("{}/${{var:nothing}}", answers.url)))?;
    stand.write("s.yaml", "type: TestSuite\nspec: {name: s, steps: [a, basket]}\n")?;
    let run = ["run", "a.yaml", "b.yaml", "s.yaml", "--otlp", "127.0.0.1:0", "--report", "json"];
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let reason = outcomes(&finished)?[1]["reasons"][0].to_string();
    assert!(reason.contains("`nothing`"), "{reason}");
    for (steps, words) in [
        ("[a, baskt]", "did you mean `basket`?"),
        ("[./nowhere.yaml]", "its file cannot be read"),
        ("[./s.yaml]", "holds 0 tests"),
    ] {
        stand.write("s.yaml", &format!("type: TestSuite\nspec: {{name: s, steps: {steps}}}\n"))?;
        let finished = stand.run(&run).await?;
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.err.contains(words), "`{words}` is not in:\n{}", finished.err);
        assert!(finished.err.contains("s.yaml:2:"), "{}", finished.err);
    }
    Ok(())
}
