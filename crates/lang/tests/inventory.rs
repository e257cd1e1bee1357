//! Checks that every field of every kind of document is in one of the golden documents and in the schema.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use golden::Golden;
use serde_json::{Map, Value as Json};
use source::{Node, Text, Value, read_yaml};

/// The fields of Tracetest and ours, by kind. The elements of a list are `[]`.
#[rustfmt::skip]
const INVENTORY: &[(&str, &str)] = &[
    ("Test", "
        id name description version createdAt summary tags[] skipTraceCollection settleProfile pollingProfile
        trigger.type trigger.timeout trigger.propagation[]
        trigger.tls.caFile trigger.tls.certFile trigger.tls.keyFile trigger.tls.serverName
        trigger.httpRequest.url trigger.httpRequest.method trigger.httpRequest.body trigger.httpRequest.sslVerification
        trigger.httpRequest.redirects
        trigger.httpRequest.headers[].key trigger.httpRequest.headers[].value
        trigger.httpRequest.auth.type
        trigger.httpRequest.auth.apiKey.key trigger.httpRequest.auth.apiKey.value trigger.httpRequest.auth.apiKey.in
        trigger.httpRequest.auth.basic.username trigger.httpRequest.auth.basic.password
        trigger.httpRequest.auth.bearer.token
        trigger.graphql.url trigger.graphql.sslVerification trigger.graphql.schema
        trigger.graphql.headers[].key trigger.graphql.headers[].value
        trigger.graphql.auth.type trigger.graphql.auth.bearer.token
        trigger.graphql.body.query trigger.graphql.body.variables trigger.graphql.body.operationName
        trigger.grpc.protobufFile trigger.grpc.address trigger.grpc.service trigger.grpc.method trigger.grpc.request
        trigger.grpc.metadata[].key trigger.grpc.metadata[].value
        trigger.grpc.auth.type trigger.grpc.auth.apiKey.key trigger.grpc.auth.apiKey.value trigger.grpc.auth.apiKey.in
        trigger.kafka.brokerUrls[] trigger.kafka.topic trigger.kafka.messageKey trigger.kafka.messageValue
        trigger.kafka.headers[].key trigger.kafka.headers[].value trigger.kafka.sslVerification
        trigger.kafka.authentication.type
        trigger.kafka.authentication.plain.username trigger.kafka.authentication.plain.password
        trigger.traceid.id
        trigger.playwrightEngine.target trigger.playwrightEngine.method trigger.playwrightEngine.script
        trigger.exec.command trigger.exec.command[] trigger.exec.env trigger.exec.workdir
        specs[].name specs[].selector specs[].selector.query specs[].assertions[]
        outputs[].name outputs[].selector outputs[].selector.query outputs[].selector.parsedSelector outputs[].value
        trace[] trace[].name trace[].claim
        settle.timeout settle.flush settle.expect[] settle.absent[]"),
    ("TestSuite", "
        id name description version createdAt summary fullSteps
        steps[] steps[].name steps[].test steps[].id steps[].file steps[].needs[]"),
    ("Transaction", "name steps[]"),
    ("VariableSet", "id name description values[].key values[].value values[].type"),
    ("Environment", "id name version createdAt values[].key values[].value"),
    ("TraceStore", "
        id name type default createdAt
        jaeger.endpoint jaeger.readBufferSize jaeger.writeBufferSize jaeger.waitForReady jaeger.headers
        jaeger.balancerName jaeger.compression jaeger.tls.insecure jaeger.tls.insecureSkipVerify jaeger.tls.serverName
        jaeger.tls.settings.cAFile jaeger.tls.settings.certFile jaeger.tls.settings.keyFile
        jaeger.tls.settings.minVersion jaeger.tls.settings.maxVersion
        tempo.type tempo.grpc.endpoint tempo.grpc.compression tempo.grpc.tls.insecure
        tempo.http.url tempo.http.headers tempo.http.tls.insecure
        opensearch.addresses[] opensearch.username opensearch.password opensearch.index opensearch.certificate
        opensearch.insecureSkipVerify
        elasticapm.addresses[] elasticapm.username elasticapm.password elasticapm.index elasticapm.certificate
        elasticapm.insecureSkipVerify
        elasticsearch.addresses[] elasticsearch.username elasticsearch.password elasticsearch.index
        clickhouse.url clickhouse.database clickhouse.table clickhouse.username clickhouse.password
        zipkin.url zipkin.headers zipkin.tls.insecure
        signalfx.realm signalfx.token
        awsxray.region awsxray.accessKeyId awsxray.secretAccessKey awsxray.sessionToken awsxray.useDefaultAuth
        azureappinsights.useAzureActiveDirectoryAuth azureappinsights.accessToken azureappinsights.connectionType
        azureappinsights.resourceArmId
        sumologic.url sumologic.accessID sumologic.accessKey"),
    ("DataStore", "name type default"),
    ("SettleProfile", "id name default timeout"),
    ("PollingProfile", "
        id name default strategy createdAt
        periodic.retryDelay periodic.timeout periodic.selectorMatchRetries"),
    ("Analyzer", "
        id name enabled minimumScore createdAt plugins[].id plugins[].name plugins[].description plugins[].enabled
        plugins[].rules[].id plugins[].rules[].name plugins[].rules[].description plugins[].rules[].errorDescription
        plugins[].rules[].tips plugins[].rules[].weight plugins[].rules[].errorLevel"),
    ("QualityGate", "id name requiredGates[]"),
    ("TestRunner", "id name createdAt requiredGates[]"),
    ("Config", "id name analyticsEnabled"),
    ("Demo", "
        name type enabled pokeshop.httpEndpoint pokeshop.grpcEndpoint pokeshop.kafkaBroker
        opentelemetryStore.frontendEndpoint opentelemetryStore.productCatalogEndpoint opentelemetryStore.cartEndpoint
        opentelemetryStore.checkoutEndpoint"),
];

/// For each field, the words that the golden documents must contain.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "Test",
        "trigger.type",
        "http graphql grpc kafka traceid cypress playwright artillery k6 playwrightengine exec",
    ),
    ("Test", "trigger.httpRequest.auth.type", "apiKey basic bearer"),
    ("Test", "trigger.propagation[]", "w3c b3 b3multi jaeger"),
    (
        "TraceStore",
        "type",
        "otlp agent dash0 datadog dynatrace honeycomb instana lightstep newrelic signoz jaeger tempo opensearch \
         elasticsearch elasticapm clickhouse zipkin signalfx awsxray azureappinsights sumologic",
    ),
    ("VariableSet", "values[].type", "raw secret"),
    ("Analyzer", "plugins[].rules[].errorLevel", "error warning disabled"),
    ("TestRunner", "requiredGates[]", "analyzer-score analyzer-rules test-specs"),
];

#[test]
fn every_field_stands_in_a_document() {
    let found = found();
    for (kind, fields) in INVENTORY {
        for field in fields.split_whitespace() {
            let key = ((*kind).to_owned(), field.to_owned());
            assert!(found.contains_key(&key), "no golden document holds `{field}` of a {kind}");
        }
    }
    for (kind, field, words) in WORDS {
        let values = &found[&((*kind).to_owned(), (*field).to_owned())];
        for word in words.split_whitespace() {
            assert!(values.contains(word), "no golden document holds `{field}: {word}`");
        }
    }
}

/// The reverse: checks that no document has a field that is not in the inventory.
#[test]
fn every_field_of_a_document_is_listed() {
    let listed: BTreeSet<_> = INVENTORY
        .iter()
        .flat_map(|(kind, fields)| fields.split_whitespace().map(move |field| (*kind, field)))
        .collect();
    // A field, a prefix of its path, or a path below it if the user chooses the names.
    let is_below = |field: &str, path: &str| {
        field.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let is_listed = |kind: &str, field: &str| {
        listed
            .iter()
            .any(|(known, path)| *known == kind && (is_below(field, path) || is_below(path, field)))
    };
    for (kind, field) in found().keys() {
        assert!(is_listed(kind, field), "`{field}` of a {kind} is not in the list");
    }
}

#[test]
fn the_schema_is_the_one_that_editors_get() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/language");
    let mut golden = Golden::default();
    golden.compare(&docs.join("qualitytrace.schema.json"), &lang::schema());
    golden.finish(1);
}

#[test]
fn the_schema_takes_what_the_reader_takes() {
    let schema: Json = serde_json::from_str(&lang::schema()).expect("JSON");
    let mut count = 0;
    for file in files("ok") {
        for node in documents(&file) {
            let mistake = mistake(&schema, &schema, &json(&node), "");
            assert_eq!(mistake, None, "{}", file.display());
            count += 1;
        }
    }
    assert!(count > 90, "{count} documents");
    for (yaml, expected) in [
        ("type: Tset\nspec: {}", ".type"),
        ("type: Test\nspec: {name: x}", ".spec"),
        ("type: Test\nspec: {name: x, trigger: {type: http, httpReqest: {}}}", ".spec.trigger"),
        ("type: Test\nspec: {name: x, trigger: {type: k6}, specs: [{selector: a}]}", ".spec.specs"),
        ("type: TestSuite\nspec: {steps: [{test: a, need: [b]}]}", ".spec.steps"),
        ("type: TraceStore\nspec: {type: jager}", ".spec.type"),
        ("type: Analyzer\nspec: {minimumScore: 101}", ".spec.minimumScore"),
        ("type: Test\nstatus: {}\nspec: {name: x, trigger: {type: k6}}", ""),
    ] {
        let (nodes, _) = read_yaml(&Text::new("t", yaml));
        let found = mistake(&schema, &schema, &json(&nodes[0]), "").expect("a mistake");
        assert!(found.starts_with(expected), "{yaml}: {found}");
    }
}

/// Returns the location where a value violates a schema, if any. Supports the keywords that our schema uses, except `pattern`.
fn mistake(root: &Json, schema: &Json, value: &Json, path: &str) -> Option<String> {
    let here = |why: &str| Some(format!("{path} {why}"));
    if let Some(part) = schema["$ref"].as_str() {
        let part = root.pointer(part.trim_start_matches('#')).expect("a part");
        return mistake(root, part, value, path);
    }
    if let Some(either) = schema["anyOf"].as_array() {
        let mistakes: Vec<_> = either.iter().map(|one| mistake(root, one, value, path)).collect();
        return if mistakes.contains(&None) { None } else { mistakes.into_iter().flatten().last() };
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
        // The case of a method does not matter.
        && !words.iter().any(|word| word.as_str().map(str::to_lowercase).as_deref() == value.as_str())
    {
        return here("is none of the words");
    }
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    let fits = match &schema["type"] {
        Json::Null => true,
        Json::String(kind) => is(kind),
        kinds => {
            kinds.as_array().expect("kinds").iter().any(|kind| is(kind.as_str().expect("a kind")))
        }
    };
    if !fits || schema["maximum"].as_i64().zip(value.as_i64()).is_some_and(|(max, it)| it > max) {
        return here("is of another kind");
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        let found = mistake(root, &schema["items"], item, &format!("{path}[{at}]"));
        if found.is_some() {
            return found;
        }
    }
    let mut required = schema["required"].as_array().into_iter().flatten();
    if value.is_object() && required.any(|key| value.get(key.as_str().expect("a key")).is_none()) {
        return here("lacks a key");
    }
    for (key, item) in value.as_object().into_iter().flatten() {
        let inner = match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(inner), _) => inner,
            (None, Json::Bool(false)) => return here(&format!("has a key `{key}`")),
            (None, others) => others,
        };
        let found = mistake(root, inner, item, &format!("{path}.{key}"));
        if found.is_some() {
            return found;
        }
    }
    schema["allOf"].as_array().into_iter().flatten().find_map(|rule| {
        let kind = &rule["if"]["properties"]["type"]["const"];
        (kind == &value["type"]).then(|| {
            let spec = &rule["then"]["properties"]["spec"];
            mistake(root, spec, &value["spec"], &format!("{path}.spec"))
        })?
    })
}

fn json(node: &Node) -> Json {
    match &node.value {
        Value::Scalar(scalar) if scalar.is_null() => Json::Null,
        Value::Scalar(scalar) => match (scalar.as_bool(), scalar.as_i64(), scalar.as_f64()) {
            (Some(boolean), _, _) => Json::from(boolean),
            (_, Some(integer), _) => Json::from(integer),
            (_, _, Some(number)) => Json::from(number),
            _ => Json::from(scalar.text.clone()),
        },
        Value::Sequence(items) => items.iter().map(json).collect(),
        Value::Table(entries) => {
            let entry = |entry: &source::Entry| (entry.key.text.clone(), json(&entry.value));
            Json::Object(entries.iter().map(entry).collect::<Map<_, _>>())
        }
    }
}

/// Returns every field of the golden documents by kind and path, with its values.
fn found() -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for file in files("ok") {
        for node in documents(&file) {
            let kind = node.get("type").and_then(Node::as_scalar).expect("a kind").text.clone();
            collect(node.get("spec").expect("a spec"), &kind, "", &mut found);
        }
    }
    found
}

fn collect(
    node: &Node,
    kind: &str,
    path: &str,
    found: &mut BTreeMap<(String, String), BTreeSet<String>>,
) {
    if !path.is_empty() {
        let values = found.entry((kind.to_owned(), path.to_owned())).or_default();
        values.extend(node.as_scalar().map(|scalar| scalar.text.clone()));
    }
    for item in node.as_sequence().unwrap_or_default() {
        collect(item, kind, &format!("{path}[]"), found);
    }
    for entry in node.as_table().unwrap_or_default() {
        let dot = if path.is_empty() { "" } else { "." };
        collect(&entry.value, kind, &format!("{path}{dot}{}", entry.key.text), found);
    }
}

fn documents(file: &Path) -> Vec<Node> {
    read_yaml(&Text::new("t", fs::read_to_string(file).expect("a document"))).0
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    golden::files(&folder, &["yaml"])
}
