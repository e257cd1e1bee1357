//! The classes of fields.

/// A field that changes a run: a document, and a replacement in it.
pub(crate) struct Change {
    pub(crate) kind: &'static str,
    pub(crate) field: &'static str,
    pub(crate) base: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// Fields without an effect on runs, by the prefix of their paths: a document with them, and the words of the warning or error.
pub(crate) struct Refused {
    pub(crate) kind: &'static str,
    pub(crate) field: &'static str,
    pub(crate) document: &'static str,
    pub(crate) words: &'static str,
}

/// Older names of kinds.
pub(crate) const ALIASES: &[(&str, &str)] = &[
    ("Transaction", "TestSuite"),
    ("Environment", "VariableSet"),
    ("DataStore", "TraceStore"),
    ("PollingProfile", "SettleProfile"),
    ("TestRunner", "QualityGate"),
];

const HTTP: &str = r#"type: Test
spec:
  id: shop
  name: the shop
  tags: [smoke]
  trigger:
    type: http
    timeout: 5s
    propagation: [w3c]
    tls: {caFile: ./ca.pem, certFile: ./cert.pem, keyFile: ./key.pem, serverName: shop}
    httpRequest:
      url: https://shop.test/cart
      method: POST
      headers: [{key: x-user, value: ann}]
      body: hello
      sslVerification: true
      redirects: 3
      auth: {type: basic, basic: {username: ann, password: word}}
  specs:
  - selector: span[name="charge"]
    assertions: [attr:shop.amount = 42]
  trace:
  - claim: count(span[name="charge"]) = 1
  outputs:
  - {name: ORDER, selector: 'span[name="charge"]', value: attr:shop.order}
  settle: {timeout: 10s, flush: 1s, expect: [shop], absent: [db]}
  settleProfile: slow
  skipTraceCollection: false
"#;

const API_KEY: &str = r#"type: Test
spec:
  name: the shop
  trigger:
    type: http
    httpRequest:
      url: https://shop.test/cart
      auth: {type: apiKey, apiKey: {key: x-key, value: word, in: header}}
"#;

const BEARER: &str = r#"type: Test
spec:
  name: the shop
  trigger: {type: http, httpRequest: {url: 'https://shop.test/', auth: {type: bearer, bearer: {token: word}}}}
"#;

const GRAPHQL: &str = r#"type: Test
spec:
  name: the shop
  trigger:
    type: graphql
    graphql:
      url: https://shop.test/graphql
      headers: [{key: x-user, value: ann}]
      sslVerification: true
      auth: {type: basic, basic: {username: ann, password: word}}
      body: {query: 'query One { cart }', variables: {id: 1}, operationName: One}
"#;

const GRAPHQL_KEY: &str = r#"type: Test
spec:
  name: the shop
  trigger:
    type: graphql
    graphql:
      url: https://shop.test/graphql
      auth: {type: apiKey, apiKey: {key: x-key, value: word, in: header}}
      body: {query: '{ cart }'}
"#;

const GRAPHQL_BEARER: &str = r#"type: Test
spec:
  name: the shop
  trigger:
    type: graphql
    graphql: {url: 'https://shop.test/graphql', auth: {type: bearer, bearer: {token: word}}, body: {query: '{ cart }'}}
"#;

const EXEC: &str = r#"type: Test
spec:
  name: the shop
  trigger: {type: exec, exec: {command: ./buy, env: {USER: ann}, workdir: ./bin}}
"#;

const TRACE_ID: &str = r#"type: Test
spec:
  name: the shop
  trigger: {type: traceid, traceid: {id: 0af7651916cd43dd8448eb211c80319c}}
"#;

const SUITE: &str = r#"type: TestSuite
spec:
  id: nightly
  name: the whole shop
  steps:
  - checkout
  - {name: pay, test: payment}
  - {name: back, id: refund, needs: [pay]}
  - {file: ./mail.yaml}
"#;

const POLLED: &str = r#"type: Test
spec:
  name: polled
  pollingProfile: slow
  trigger: {type: http, httpRequest: {url: https://shop.test/cart}}
"#;

const VARIABLES: &str = r#"type: VariableSet
spec:
  id: staging
  name: staging
  values:
  - {key: USER, value: ann-of-staging, type: raw}
"#;

const PROFILE: &str = r#"type: SettleProfile
spec: {id: slow, name: slow, default: false, timeout: 2m}
"#;

const POLLING_PROFILE: &str = r#"type: PollingProfile
spec: {id: slow, name: slow, default: false, strategy: periodic, periodic: {timeout: 2m}}
"#;

const OTHER_PROFILE: &str = r#"type: SettleProfile
spec: {id: other, default: false, periodic: {timeout: 2m}}
"#;

const GATES: &str = r#"type: Analyzer
spec:
  id: current
  enabled: true
  minimumScore: 60
  plugins:
  - id: standards
    enabled: true
    rules:
    - {id: no-empty-attributes, weight: 25, errorLevel: error}
  - id: common
---
type: QualityGate
spec: {id: current, requiredGates: [test-specs, analyzer-score]}
"#;

const AZURE: &str = r#"type: TraceStore
spec:
  id: cloud
  type: azureappinsights
  azureappinsights: {connectionType: direct, resourceArmId: /subscriptions/1}
"#;

const JAEGER: &str = r#"type: TraceStore
spec:
  id: prod
  type: jaeger
  default: false
  lag: 2s
  jaeger:
    endpoint: jaeger:16685
    headers: {token: word}
    tls: {insecure: false, insecureSkipVerify: false, serverName: a, settings: {cAFile: ./ca.pem, certFile: ./cert.pem, keyFile: ./key.pem}}
"#;

const TEMPO: &str = r#"type: TraceStore
spec:
  id: prod
  type: tempo
  tempo:
    type: http
    http:
      url: https://tempo:3200
      headers: {token: word}
      tls: {insecure: false, insecureSkipVerify: false, serverName: a, settings: {cAFile: ./ca.pem, certFile: ./cert.pem, keyFile: ./key.pem}}
"#;

const OPENSEARCH: &str = r#"type: TraceStore
spec:
  id: prod
  type: opensearch
  opensearch: {addresses: ['https://search:9200'], username: a, password: b, index: spans, certificate: PEM, insecureSkipVerify: false}
"#;

const ELASTICSEARCH: &str = r#"type: TraceStore
spec:
  id: prod
  type: elasticsearch
  elasticsearch: {addresses: ['https://search:9200'], username: a, password: b, index: spans, certificate: PEM, insecureSkipVerify: false}
"#;

const ELASTICAPM: &str = r#"type: TraceStore
spec:
  id: prod
  type: elasticapm
  elasticapm: {addresses: ['https://search:9200'], username: a, password: b, index: spans, certificate: PEM, insecureSkipVerify: false}
"#;

const CLICKHOUSE: &str = r#"type: TraceStore
spec:
  id: prod
  type: clickhouse
  clickhouse:
    url: https://clickhouse:8443
    headers: {token: word}
    database: shop
    table: traces
    username: a
    password: b
    tls: {insecure: false, insecureSkipVerify: false, serverName: a, settings: {cAFile: ./ca.pem, certFile: ./cert.pem, keyFile: ./key.pem}}
"#;

const ZIPKIN: &str = r#"type: TraceStore
spec:
  id: prod
  type: zipkin
  zipkin:
    url: https://zipkin:9411
    headers: {token: word}
    tls: {insecure: false, insecureSkipVerify: false, serverName: a, settings: {cAFile: ./ca.pem, certFile: ./cert.pem, keyFile: ./key.pem}}
"#;

const fn change(
    (kind, field): (&'static str, &'static str),
    base: &'static str,
    from: &'static str,
    to: &'static str,
) -> Change {
    Change { kind, field, base, from, to }
}

#[rustfmt::skip]
pub(crate) const CHANGES: &[Change] = &[
    change(("Test", "id"), HTTP, "id: shop", "id: store"),
    change(("Test", "store"), HTTP, "tags: [", "store: prod\n  tags: ["),
    change(("Test", "store[]"), HTTP, "tags: [", "store: [prod, staging]\n  tags: ["),
    change(("Test", "tags[]"), HTTP, "smoke", "slow"),
    change(("Test", "trigger.type"), HTTP, "type: http\n    timeout: 5s", "type: traceid\n    timeout: 5s\n    traceid: {id: 0af7651916cd43dd8448eb211c80319c}"),
    change(("Test", "trigger.timeout"), HTTP, "5s", "6s"),
    change(("Test", "trigger.propagation[]"), HTTP, "[w3c]", "[b3]"),
    change(("Test", "trigger.tls.caFile"), HTTP, "./ca.pem", "./other.pem"),
    change(("Test", "trigger.tls.certFile"), HTTP, "./cert.pem", "./other.pem"),
    change(("Test", "trigger.tls.keyFile"), HTTP, "./key.pem", "./other.pem"),
    change(("Test", "trigger.tls.serverName"), HTTP, "serverName: shop", "serverName: store"),
    change(("Test", "trigger.httpRequest.url"), HTTP, "/cart", "/basket"),
    change(("Test", "trigger.httpRequest.method"), HTTP, "POST", "PUT"),
    change(("Test", "trigger.httpRequest.headers[].key"), HTTP, "x-user", "x-name"),
    change(("Test", "trigger.httpRequest.headers[].value"), HTTP, "value: ann", "value: bob"),
    change(("Test", "trigger.httpRequest.body"), HTTP, "hello", "hallo"),
    change(("Test", "trigger.httpRequest.sslVerification"), HTTP, "sslVerification: true", "sslVerification: false"),
    change(("Test", "trigger.httpRequest.redirects"), HTTP, "redirects: 3", "redirects: 4"),
    change(("Test", "trigger.httpRequest.auth.type"), HTTP, "auth: {type: basic, ", "auth: {type: bearer, bearer: {token: word}, "),
    change(("Test", "trigger.httpRequest.auth.basic.username"), HTTP, "username: ann", "username: bob"),
    change(("Test", "trigger.httpRequest.auth.basic.password"), HTTP, "password: word", "password: ward"),
    change(("Test", "trigger.httpRequest.auth.apiKey.key"), API_KEY, "x-key", "x-code"),
    change(("Test", "trigger.httpRequest.auth.apiKey.value"), API_KEY, "word", "ward"),
    change(("Test", "trigger.httpRequest.auth.apiKey.in"), API_KEY, "in: header", "in: query"),
    change(("Test", "trigger.httpRequest.auth.bearer.token"), BEARER, "word", "ward"),
    change(("Test", "trigger.graphql.url"), GRAPHQL, "/graphql", "/query"),
    change(("Test", "trigger.graphql.headers[].key"), GRAPHQL, "x-user", "x-name"),
    change(("Test", "trigger.graphql.headers[].value"), GRAPHQL, "value: ann", "value: bob"),
    change(("Test", "trigger.graphql.sslVerification"), GRAPHQL, "sslVerification: true", "sslVerification: false"),
    change(("Test", "trigger.graphql.auth.type"), GRAPHQL, "auth: {type: basic, ", "auth: {type: bearer, bearer: {token: word}, "),
    change(("Test", "trigger.graphql.auth.basic.username"), GRAPHQL, "username: ann", "username: bob"),
    change(("Test", "trigger.graphql.auth.basic.password"), GRAPHQL, "password: word", "password: ward"),
    change(("Test", "trigger.graphql.auth.apiKey.key"), GRAPHQL_KEY, "x-key", "x-code"),
    change(("Test", "trigger.graphql.auth.apiKey.value"), GRAPHQL_KEY, "word", "ward"),
    change(("Test", "trigger.graphql.auth.apiKey.in"), GRAPHQL_KEY, "in: header", "in: query"),
    change(("Test", "trigger.graphql.auth.bearer.token"), GRAPHQL_BEARER, "word", "ward"),
    change(("Test", "trigger.graphql.body.query"), GRAPHQL, "{ cart }", "{ basket }"),
    change(("Test", "trigger.graphql.body.variables"), GRAPHQL, "{id: 1}", "{id: 2}"),
    change(("Test", "trigger.graphql.body.operationName"), GRAPHQL, "operationName: One", "operationName: Two"),
    change(("Test", "trigger.exec.command"), EXEC, "./buy", "./sell"),
    change(("Test", "trigger.exec.command[]"), EXEC, "./buy", "[./buy, twice]"),
    change(("Test", "trigger.exec.env.*"), EXEC, "USER: ann", "USER: bob"),
    change(("Test", "trigger.exec.workdir"), EXEC, "./bin", "./sbin"),
    change(("Test", "trigger.traceid.id"), TRACE_ID, "319c", "319d"),
    change(("Test", "specs[].selector"), HTTP, r#"- selector: span[name="charge"]"#, r#"- selector: span[name="ship"]"#),
    change(("Test", "specs[].selector.query"), HTTP, r#"- selector: span[name="charge"]"#, r#"- selector: {query: 'span[name="ship"]'}"#),
    change(("Test", "specs[].assertions[]"), HTTP, "[attr:shop.amount = 42]", "[attr:shop.amount = 43]"),
    change(("Test", "trace[]"), HTTP, "- claim: count(span[name=\"charge\"]) = 1", "- count(span[name=\"charge\"]) = 2"),
    change(("Test", "trace[].claim"), HTTP, "= 1", "= 2"),
    change(("Test", "outputs[].name"), HTTP, "name: ORDER", "name: PARCEL"),
    change(("Test", "outputs[].selector"), HTTP, r#"ORDER, selector: 'span[name="charge"]'"#, r#"ORDER, selector: 'span[name="ship"]'"#),
    change(("Test", "outputs[].selector.query"), HTTP, r#"ORDER, selector: 'span[name="charge"]'"#, r#"ORDER, selector: {query: 'span[name="ship"]'}"#),
    change(("Test", "outputs[].value"), HTTP, "value: attr:shop.order", "value: attr:shop.amount"),
    change(("Test", "settle.timeout"), HTTP, "timeout: 10s", "timeout: 11s"),
    change(("Test", "settle.flush"), HTTP, "flush: 1s", "flush: 2s"),
    change(("Test", "settle.expect[]"), HTTP, "expect: [shop]", "expect: [store]"),
    change(("Test", "settle.absent[]"), HTTP, "absent: [db]", "absent: [queue]"),
    change(("Test", "settleProfile"), HTTP, "settleProfile: slow", "settleProfile: fast"),
    change(("Test", "pollingProfile"), POLLED, "pollingProfile: slow", "pollingProfile: fast"),
    change(("Test", "skipTraceCollection"), API_KEY, "  name: the shop", "  name: the shop\n  skipTraceCollection: true"),

    change(("TestSuite", "id"), SUITE, "id: nightly", "id: hourly"),
    change(("TestSuite", "steps[]"), SUITE, "- checkout", "- checkin"),
    change(("TestSuite", "steps[].name"), SUITE, "{name: pay, test: payment}\n  - {name: back, id: refund, needs: [pay]}", "{name: paid, test: payment}\n  - {name: back, id: refund, needs: [paid]}"),
    change(("TestSuite", "steps[].test"), SUITE, "test: payment", "test: charge"),
    change(("TestSuite", "steps[].id"), SUITE, "id: refund", "id: refunds"),
    change(("TestSuite", "steps[].file"), SUITE, "./mail.yaml", "./mails.yaml"),
    change(("TestSuite", "steps[].needs[]"), SUITE, "needs: [pay]", "needs: [checkout]"),

    change(("VariableSet", "id"), VARIABLES, "id: staging", "id: production"),
    change(("VariableSet", "values[].key"), VARIABLES, "key: USER", "key: NAME"),
    change(("VariableSet", "values[].value"), VARIABLES, "ann-of-staging", "bob-of-staging"),
    change(("VariableSet", "values[].type"), VARIABLES, "type: raw", "type: secret"),

    change(("SettleProfile", "id"), PROFILE, "id: slow", "id: fast"),
    change(("SettleProfile", "default"), OTHER_PROFILE, "default: false", "default: true"),
    change(("SettleProfile", "timeout"), PROFILE, "2m", "3m"),
    change(("SettleProfile", "periodic.timeout"), POLLING_PROFILE, "2m", "3m"),

    change(("Analyzer", "id"), GATES, "id: current", "id: other"),
    change(("Analyzer", "enabled"), GATES, "enabled: true", "enabled: false"),
    change(("Analyzer", "minimumScore"), GATES, "minimumScore: 60", "minimumScore: 10"),
    change(("Analyzer", "plugins[].id"), GATES, "id: common", "id: security"),
    change(("Analyzer", "plugins[].enabled"), GATES, "enabled: true\n    rules", "enabled: false\n    rules"),
    change(("Analyzer", "plugins[].rules[].id"), GATES, "id: no-empty-attributes, weight: 25", "id: span-naming, weight: 99"),
    change(("Analyzer", "plugins[].rules[].weight"), GATES, "weight: 25", "weight: 90"),
    change(("Analyzer", "plugins[].rules[].errorLevel"), GATES, "errorLevel: error", "errorLevel: disabled"),
    change(("QualityGate", "id"), GATES, "spec: {id: current, required", "spec: {id: other, required"),
    change(("QualityGate", "requiredGates[]"), GATES, "analyzer-score]", "analyzer-rules]"),

    change(("TraceStore", "id"), AZURE, "id: cloud", "id: sky"),
    change(("TraceStore", "type"), AZURE, "type: azureappinsights\n", "type: sumologic\n  sumologic: {url: a, accessID: b, accessKey: c}\n"),
    change(("TraceStore", "default"), JAEGER, "default: false", "default: true"),
    change(("TraceStore", "lag"), JAEGER, "lag: 2s", "lag: 3s"),
    change(("TraceStore", "jaeger.endpoint"), JAEGER, "jaeger:16685", "http://jaeger:16686"),
    change(("TraceStore", "jaeger.headers.*"), JAEGER, "token: word", "token: ward"),
    change(("TraceStore", "jaeger.tls.insecure"), JAEGER, "insecure: false", "insecure: true"),
    change(("TraceStore", "jaeger.tls.insecureSkipVerify"), JAEGER, "insecureSkipVerify: false", "insecureSkipVerify: true"),
    change(("TraceStore", "jaeger.tls.serverName"), JAEGER, "serverName: a", "serverName: b"),
    change(("TraceStore", "jaeger.tls.settings.cAFile"), JAEGER, "./ca.pem", "./other.pem"),
    change(("TraceStore", "jaeger.tls.settings.certFile"), JAEGER, "./cert.pem", "./other.pem"),
    change(("TraceStore", "jaeger.tls.settings.keyFile"), JAEGER, "./key.pem", "./other.pem"),
    change(("TraceStore", "tempo.type"), TEMPO, "type: http\n", "type: grpc\n    grpc: {endpoint: a}\n"),
    change(("TraceStore", "tempo.http.url"), TEMPO, "https://tempo:3200", "https://tempo"),
    change(("TraceStore", "tempo.http.headers.*"), TEMPO, "token: word", "token: ward"),
    change(("TraceStore", "tempo.http.tls.insecure"), TEMPO, "insecure: false", "insecure: true"),
    change(("TraceStore", "tempo.http.tls.insecureSkipVerify"), TEMPO, "insecureSkipVerify: false", "insecureSkipVerify: true"),
    change(("TraceStore", "tempo.http.tls.serverName"), TEMPO, "serverName: a", "serverName: b"),
    change(("TraceStore", "tempo.http.tls.settings.cAFile"), TEMPO, "./ca.pem", "./other.pem"),
    change(("TraceStore", "tempo.http.tls.settings.certFile"), TEMPO, "./cert.pem", "./other.pem"),
    change(("TraceStore", "tempo.http.tls.settings.keyFile"), TEMPO, "./key.pem", "./other.pem"),
    change(("TraceStore", "opensearch.addresses[]"), OPENSEARCH, "search:9200", "search:9201"),
    change(("TraceStore", "opensearch.username"), OPENSEARCH, "username: a", "username: c"),
    change(("TraceStore", "opensearch.password"), OPENSEARCH, "password: b", "password: c"),
    change(("TraceStore", "opensearch.index"), OPENSEARCH, "index: spans", "index: others"),
    change(("TraceStore", "opensearch.certificate"), OPENSEARCH, "certificate: PEM", "certificate: OTHER"),
    change(("TraceStore", "opensearch.insecureSkipVerify"), OPENSEARCH, "insecureSkipVerify: false", "insecureSkipVerify: true"),
    change(("TraceStore", "elasticsearch.addresses[]"), ELASTICSEARCH, "search:9200", "search:9201"),
    change(("TraceStore", "elasticsearch.username"), ELASTICSEARCH, "username: a", "username: c"),
    change(("TraceStore", "elasticsearch.password"), ELASTICSEARCH, "password: b", "password: c"),
    change(("TraceStore", "elasticsearch.index"), ELASTICSEARCH, "index: spans", "index: others"),
    change(("TraceStore", "elasticsearch.certificate"), ELASTICSEARCH, "certificate: PEM", "certificate: OTHER"),
    change(("TraceStore", "elasticsearch.insecureSkipVerify"), ELASTICSEARCH, "insecureSkipVerify: false", "insecureSkipVerify: true"),
    change(("TraceStore", "elasticapm.addresses[]"), ELASTICAPM, "search:9200", "search:9201"),
    change(("TraceStore", "elasticapm.username"), ELASTICAPM, "username: a", "username: c"),
    change(("TraceStore", "elasticapm.password"), ELASTICAPM, "password: b", "password: c"),
    change(("TraceStore", "elasticapm.index"), ELASTICAPM, "index: spans", "index: others"),
    change(("TraceStore", "elasticapm.certificate"), ELASTICAPM, "certificate: PEM", "certificate: OTHER"),
    change(("TraceStore", "elasticapm.insecureSkipVerify"), ELASTICAPM, "insecureSkipVerify: false", "insecureSkipVerify: true"),
    change(("TraceStore", "clickhouse.url"), CLICKHOUSE, "https://clickhouse:8443", "https://clickhouse"),
    change(("TraceStore", "clickhouse.headers.*"), CLICKHOUSE, "token: word", "token: ward"),
    change(("TraceStore", "clickhouse.tls.insecure"), CLICKHOUSE, "insecure: false", "insecure: true"),
    change(("TraceStore", "clickhouse.tls.insecureSkipVerify"), CLICKHOUSE, "insecureSkipVerify: false", "insecureSkipVerify: true"),
    change(("TraceStore", "clickhouse.tls.serverName"), CLICKHOUSE, "serverName: a", "serverName: b"),
    change(("TraceStore", "clickhouse.tls.settings.cAFile"), CLICKHOUSE, "./ca.pem", "./other.pem"),
    change(("TraceStore", "clickhouse.tls.settings.certFile"), CLICKHOUSE, "./cert.pem", "./other.pem"),
    change(("TraceStore", "clickhouse.tls.settings.keyFile"), CLICKHOUSE, "./key.pem", "./other.pem"),
    change(("TraceStore", "clickhouse.database"), CLICKHOUSE, "database: shop", "database: store"),
    change(("TraceStore", "clickhouse.table"), CLICKHOUSE, "table: traces", "table: spans"),
    change(("TraceStore", "clickhouse.username"), CLICKHOUSE, "username: a", "username: c"),
    change(("TraceStore", "clickhouse.password"), CLICKHOUSE, "password: b", "password: c"),
    change(("TraceStore", "zipkin.url"), ZIPKIN, "https://zipkin:9411", "https://zipkin"),
    change(("TraceStore", "zipkin.headers.*"), ZIPKIN, "token: word", "token: ward"),
    change(("TraceStore", "zipkin.tls.insecure"), ZIPKIN, "insecure: false", "insecure: true"),
    change(("TraceStore", "zipkin.tls.insecureSkipVerify"), ZIPKIN, "insecureSkipVerify: false", "insecureSkipVerify: true"),
    change(("TraceStore", "zipkin.tls.serverName"), ZIPKIN, "serverName: a", "serverName: b"),
    change(("TraceStore", "zipkin.tls.settings.cAFile"), ZIPKIN, "./ca.pem", "./other.pem"),
    change(("TraceStore", "zipkin.tls.settings.certFile"), ZIPKIN, "./cert.pem", "./other.pem"),
    change(("TraceStore", "zipkin.tls.settings.keyFile"), ZIPKIN, "./key.pem", "./other.pem"),
    change(("TraceStore", "azureappinsights.connectionType"), AZURE, "connectionType: direct", "connectionType: collector"),
];

/// Why a field has no effect: it is only shown in reports, or it is one that Tracetest writes into its exports.
const EXPORTED: &str = "Tracetest writes it into exports by itself, and nobody can mean it";
const PEOPLE: &str = "shown in lists and reports";
const POLLING: &str =
    "how Tracetest polls a store; nothing is polled here, and a note says so of the times";

#[rustfmt::skip]
pub(crate) const FOR_PEOPLE: &[(&str, &str, &str)] = &[
    ("Test", "name", PEOPLE),
    ("Test", "description", PEOPLE),
    ("Test", "specs[].name", PEOPLE),
    ("Test", "trace[].name", PEOPLE),
    ("Test", "version", EXPORTED),
    ("Test", "createdAt", EXPORTED),
    ("Test", "summary", EXPORTED),
    ("Test", "specs[].selector.parsedSelector", EXPORTED),
    ("Test", "outputs[].selector.parsedSelector", EXPORTED),
    ("Test", "trigger.graphql.schema", "for editors that complete a query; what is sent is the query"),
    ("TestSuite", "name", PEOPLE),
    ("TestSuite", "description", PEOPLE),
    ("TestSuite", "version", EXPORTED),
    ("TestSuite", "createdAt", EXPORTED),
    ("TestSuite", "summary", EXPORTED),
    ("TestSuite", "fullSteps", EXPORTED),
    ("VariableSet", "name", PEOPLE),
    ("VariableSet", "description", PEOPLE),
    ("VariableSet", "version", EXPORTED),
    ("VariableSet", "createdAt", EXPORTED),
    ("TraceStore", "name", PEOPLE),
    ("TraceStore", "createdAt", EXPORTED),
    ("SettleProfile", "name", PEOPLE),
    ("SettleProfile", "createdAt", EXPORTED),
    ("SettleProfile", "strategy", POLLING),
    ("SettleProfile", "periodic.retryDelay", POLLING),
    ("SettleProfile", "periodic.selectorMatchRetries", POLLING),
    ("Analyzer", "name", PEOPLE),
    ("Analyzer", "createdAt", EXPORTED),
    ("Analyzer", "plugins[].name", EXPORTED),
    ("Analyzer", "plugins[].description", EXPORTED),
    ("Analyzer", "plugins[].errorDescription", EXPORTED),
    ("Analyzer", "plugins[].tips", EXPORTED),
    ("Analyzer", "plugins[].rules[].name", EXPORTED),
    ("Analyzer", "plugins[].rules[].description", EXPORTED),
    ("Analyzer", "plugins[].rules[].errorDescription", EXPORTED),
    ("Analyzer", "plugins[].rules[].tips", EXPORTED),
    ("QualityGate", "name", PEOPLE),
    ("QualityGate", "createdAt", EXPORTED),
];

const fn refused(
    (kind, field): (&'static str, &'static str),
    document: &'static str,
    words: &'static str,
) -> Refused {
    Refused { kind, field, document, words }
}

#[rustfmt::skip]
pub(crate) const REFUSED: &[Refused] = &[
    refused(("Test", "trigger.grpc."), "type: Test\nspec: {name: a, trigger: {type: grpc, grpc: {address: a, method: b}}}\n", "a trigger of type `grpc` cannot be fired by this version yet"),
    refused(("Test", "trigger.kafka."), "type: Test\nspec: {name: a, trigger: {type: kafka, kafka: {brokerUrls: [a], topic: b}}}\n", "a trigger of type `kafka` cannot be fired by this version yet"),
    refused(("Test", "trigger.playwrightEngine."), "type: Test\nspec: {name: a, trigger: {type: playwrightengine, playwrightEngine: {target: a, script: ./b.js}}}\n", "a trigger of type `playwrightengine` cannot be fired by this version yet"),
    refused(("TraceStore", "jaeger.readBufferSize"), "type: TraceStore\nspec: {name: a, type: jaeger, jaeger: {endpoint: a, readBufferSize: 8}}\n", "`readBufferSize` has no effect"),
    refused(("TraceStore", "jaeger.writeBufferSize"), "type: TraceStore\nspec: {name: a, type: jaeger, jaeger: {endpoint: a, writeBufferSize: 8}}\n", "`writeBufferSize` has no effect"),
    refused(("TraceStore", "jaeger.waitForReady"), "type: TraceStore\nspec: {name: a, type: jaeger, jaeger: {endpoint: a, waitForReady: true}}\n", "`waitForReady` has no effect"),
    refused(("TraceStore", "jaeger.balancerName"), "type: TraceStore\nspec: {name: a, type: jaeger, jaeger: {endpoint: a, balancerName: round_robin}}\n", "`balancerName` has no effect"),
    refused(("TraceStore", "jaeger.compression"), "type: TraceStore\nspec: {name: a, type: jaeger, jaeger: {endpoint: a, compression: gzip}}\n", "`compression` has no effect"),
    refused(("TraceStore", "jaeger.tls.settings.minVersion"), "type: TraceStore\nspec: {name: a, type: jaeger, jaeger: {endpoint: a, tls: {settings: {minVersion: '1.3'}}}}\n", "cannot be honoured: TLS 1.2 and 1.3 are spoken"),
    refused(("TraceStore", "jaeger.tls.settings.maxVersion"), "type: TraceStore\nspec: {name: a, type: jaeger, jaeger: {endpoint: a, tls: {settings: {maxVersion: '1.2'}}}}\n", "cannot be honoured: TLS 1.2 and 1.3 are spoken"),
    refused(("TraceStore", "tempo.http.tls.settings.minVersion"), "type: TraceStore\nspec: {name: a, type: tempo, tempo: {http: {url: a, tls: {settings: {minVersion: '1.3'}}}}}\n", "cannot be honoured: TLS 1.2 and 1.3 are spoken"),
    refused(("TraceStore", "tempo.http.tls.settings.maxVersion"), "type: TraceStore\nspec: {name: a, type: tempo, tempo: {http: {url: a, tls: {settings: {maxVersion: '1.2'}}}}}\n", "cannot be honoured: TLS 1.2 and 1.3 are spoken"),
    refused(("TraceStore", "clickhouse.tls.settings.minVersion"), "type: TraceStore\nspec: {name: a, type: clickhouse, clickhouse: {url: a, tls: {settings: {minVersion: '1.3'}}}}\n", "cannot be honoured: TLS 1.2 and 1.3 are spoken"),
    refused(("TraceStore", "clickhouse.tls.settings.maxVersion"), "type: TraceStore\nspec: {name: a, type: clickhouse, clickhouse: {url: a, tls: {settings: {maxVersion: '1.2'}}}}\n", "cannot be honoured: TLS 1.2 and 1.3 are spoken"),
    refused(("TraceStore", "zipkin.tls.settings.minVersion"), "type: TraceStore\nspec: {name: a, type: zipkin, zipkin: {url: a, tls: {settings: {minVersion: '1.3'}}}}\n", "cannot be honoured: TLS 1.2 and 1.3 are spoken"),
    refused(("TraceStore", "zipkin.tls.settings.maxVersion"), "type: TraceStore\nspec: {name: a, type: zipkin, zipkin: {url: a, tls: {settings: {maxVersion: '1.2'}}}}\n", "cannot be honoured: TLS 1.2 and 1.3 are spoken"),
    refused(("TraceStore", "tempo.grpc."), "type: TraceStore\nspec: {name: a, type: tempo, tempo: {grpc: {endpoint: 'tempo:9095'}}}\n", "Tempo offers no gRPC to clients"),
    refused(("TraceStore", "signalfx."), "type: TraceStore\nspec: {name: a, type: signalfx, signalfx: {realm: a, token: b}}\n", "a trace store of type `signalfx` is not queried"),
    refused(("TraceStore", "awsxray."), "type: TraceStore\nspec: {name: a, type: awsxray, awsxray: {region: a}}\n", "a trace store of type `awsxray` is not queried"),
    refused(("TraceStore", "sumologic."), "type: TraceStore\nspec: {name: a, type: sumologic, sumologic: {url: a, accessID: b, accessKey: c}}\n", "a trace store of type `sumologic` is not queried"),
    refused(("TraceStore", "azureappinsights.a"), AZURE, "a trace store of type `azureappinsights` is not queried"),
    refused(("TraceStore", "azureappinsights.r"), AZURE, "a trace store of type `azureappinsights` is not queried"),
    refused(("TraceStore", "azureappinsights.u"), AZURE, "a trace store of type `azureappinsights` is not queried"),
    refused(("Config", ""), "type: Config\nspec: {analyticsEnabled: true}\n", "documents of type `Config` are ignored"),
    refused(("Demo", ""), "type: Demo\nspec: {name: a, type: pokeshop, enabled: true}\n", "documents of type `Demo` are ignored"),
];
