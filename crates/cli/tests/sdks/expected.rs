//! The expected telemetry of the echo services of `tests/sdks`: one table for all, and the differences of each SDK.

use model::trace::{Kind, StatusCode, Value};

/// The OTLP protocols that a service can be configured with.
pub(crate) const GRPC: &str = "grpc";
pub(crate) const PROTOBUF: &str = "http/protobuf";
pub(crate) const JSON: &str = "http/json";

/// An SDK, and the differences in its telemetry.
pub(crate) struct Sdk {
    /// The language in `telemetry.sdk.language`.
    pub(crate) language: &'static str,
    /// The name of the variable with the path of its service.
    pub(crate) variable: &'static str,
    pub(crate) protocols: &'static [&'static str],
    /// The variables for JSON, if `OTEL_EXPORTER_OTLP_PROTOCOL` does not support it.
    pub(crate) json_by: &'static [&'static str],
    /// Attributes of `kinds` that differ from [`kinds`]; one without a value is absent.
    pub(crate) differs: fn(protocol: &str) -> Attributes,
    /// Attributes that are on every span, with unpredictable values.
    pub(crate) everywhere: &'static [&'static str],
    /// The trace state of the link in `kinds`.
    pub(crate) link_state: &'static str,
    /// W3C flags of spans and links: not every SDK sends them.
    pub(crate) sampled: u32,
    /// The span of the server: its name and its attributes.
    pub(crate) server: (&'static str, Vec<(&'static str, Value)>),
    /// The span of the failed call: its name, its status message and all its attributes.
    pub(crate) failed: (&'static str, &'static str, Vec<(&'static str, Value)>),
}

type Attributes = Vec<(&'static str, Option<Value>)>;

/// OTLP's bits in the flags of a span or a link: whether it is known that its parent, or its target, is remote; whether it is.
pub(crate) const IS_REMOTE_KNOWN: u32 = 0x100;
pub(crate) const IS_REMOTE: u32 = 0x200;

pub(crate) const KINDS: (&str, Kind) = ("kinds", Kind::Producer);
pub(crate) const KINDS_STATUS: (StatusCode, &str) = (StatusCode::Error, "it went wrong: Größe 🚫");
pub(crate) const LINKED: (&str, &str) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");

/// The largest integer that JavaScript represents without a gap.
const SAFE: i64 = (1 << 53) - 1;

fn text(text: &str) -> Value {
    Value::Str(text.to_owned())
}

fn bytes() -> Value {
    Value::Bytes(vec![0x00, 0x7f, 0x80, 0xff])
}

fn array<const N: usize>(values: [Value; N]) -> Value {
    Value::Array(values.into())
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(entries.map(|(key, value)| (key.to_owned(), value)).into())
}

/// The attributes of `kinds`.
pub(crate) fn kinds() -> Vec<(&'static str, Value)> {
    use Value::{Array, Bool, Bytes, Double, Empty, Int, Map};
    vec![
        ("text", text("plain")),
        ("text.empty", text("")),
        ("text.unicode", text("Grüße, 世界 🦀")),
        ("text.escapes", text("tab\t line\n quote\" slash\\ bell\x07 del\x7f")),
        ("flag.true", Bool(true)),
        ("flag.false", Bool(false)),
        ("int.max", Int(i64::MAX)),
        ("int.min", Int(i64::MIN)),
        ("int.zero", Int(0)),
        ("int.safe.max", Int(SAFE)),
        ("int.safe.min", Int(-SAFE)),
        ("double.fraction", Double(0.1)),
        ("double.whole", Double(3.0)),
        ("double.negative", Double(-2.5)),
        ("double.largest", Double(f64::MAX)),
        ("double.smallest", Double(5e-324)),
        ("double.infinite", Double(f64::INFINITY)),
        ("double.nan", Double(f64::NAN)),
        ("texts", array([text("a"), text(""), text("ß")])),
        ("texts.none", Array(Vec::new())),
        ("flags", array([Bool(true), Bool(false)])),
        ("ints", array([Int(-1), Int(0), Int(SAFE)])),
        ("doubles", array([Double(0.5), Double(-2.25), Double(1e-9)])),
        ("bytes", bytes()),
        ("bytes.empty", Bytes(Vec::new())),
        (
            "mixed",
            array([
                text("a"),
                Int(1),
                Bool(true),
                Double(0.5),
                bytes(),
                Empty,
                array([text("inner")]),
            ]),
        ),
        (
            "map",
            map([
                ("text", text("ß")),
                ("int", Int(1)),
                ("flag", Bool(true)),
                ("double", Double(0.5)),
                ("inner", map([("list", array([Int(1), text("two")]))])),
                ("nothing", Empty),
            ]),
        ),
        ("map.empty", Map(Vec::new())),
    ]
}

/// The event of `kinds`: its name and its attributes.
pub(crate) fn noted() -> (&'static str, Vec<(&'static str, Value)>) {
    let attributes = vec![
        ("event.text", text("ß")),
        ("event.int", Value::Int(7)),
        ("event.double", Value::Double(0.25)),
        ("event.flags", array([Value::Bool(true), Value::Bool(false)])),
    ];
    ("noted", attributes)
}

/// The attributes of the link.
pub(crate) fn link() -> Vec<(&'static str, Value)> {
    vec![("link.text", text("ß")), ("link.int", Value::Int(7))]
}

/// Returns the attributes of a failed call, by the semantic conventions.
fn refused(error: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("http.request.method", text("GET")),
        ("url.full", text("http://127.0.0.1:9/nobody")),
        ("server.address", text("127.0.0.1")),
        ("server.port", Value::Int(9)),
        ("error.type", text(error)),
    ]
}

/// Returns some of the attributes of the server span, by the semantic conventions.
fn answered() -> Vec<(&'static str, Value)> {
    vec![
        ("http.request.method", text("GET")),
        ("url.path", text("/echo")),
        ("http.response.status_code", Value::Int(200)),
    ]
}

pub(crate) fn python() -> Sdk {
    Sdk {
        language: "python",
        variable: "QUALITYTRACE_TEST_SDK_PYTHON",
        protocols: &[GRPC, PROTOBUF, JSON],
        // JSON has an exporter of its own, which must be set for each signal.
        json_by: &[
            "OTEL_TRACES_EXPORTER=otlp_json_http",
            "OTEL_METRICS_EXPORTER=otlp_json_http",
            "OTEL_LOGS_EXPORTER=otlp_json_http",
        ],
        differs: |_| Vec::new(),
        everywhere: &[],
        link_state: "",
        sampled: 0,
        // Its instrumentations still use the old conventions by default.
        server: (
            "GET /echo",
            vec![
                ("http.method", text("GET")),
                ("http.route", text("/echo")),
                ("http.status_code", Value::Int(200)),
            ],
        ),
        failed: (
            "GET",
            "URLError: <urlopen error [Errno 111] Connection refused>",
            vec![("http.method", text("GET")), ("http.url", text("http://127.0.0.1:9/nobody"))],
        ),
    }
}

pub(crate) fn node() -> Sdk {
    Sdk {
        language: "nodejs",
        variable: "QUALITYTRACE_TEST_SDK_NODE",
        protocols: &[GRPC, PROTOBUF, JSON],
        json_by: &[],
        differs: |protocol| {
            let mut differs = vec![
                // JavaScript has doubles only: it cannot represent the first two, and sends a value without a fraction as an integer.
                ("int.max", None),
                ("int.min", None),
                ("double.whole", Some(Value::Int(3))),
            ];
            if protocol == JSON {
                // JSON has no such numbers, and the exporter does not use the strings that OTLP defines for them.
                differs.push(("double.infinite", Some(Value::Empty)));
                differs.push(("double.nan", Some(Value::Empty)));
            }
            differs
        },
        everywhere: &[],
        link_state: "vendor=value",
        sampled: 1,
        server: ("GET", answered()),
        failed: ("GET", "connect ECONNREFUSED 127.0.0.1:9", refused("Error")),
    }
}

pub(crate) fn go() -> Sdk {
    let mut failed = refused("*net.OpError");
    failed.push(("network.protocol.version", text("1.1")));
    Sdk {
        language: "go",
        variable: "QUALITYTRACE_TEST_SDK_GO",
        protocols: &[GRPC, PROTOBUF, JSON],
        json_by: &[],
        differs: |protocol| match protocol {
            JSON => vec![("bytes.empty", Some(Value::Empty))],
            _ => Vec::new(),
        },
        everywhere: &[],
        link_state: "",
        sampled: 1,
        server: ("GET /echo", answered()),
        failed: ("HTTP GET", "dial tcp 127.0.0.1:9: connect: connection refused", failed),
    }
}

pub(crate) fn java() -> Sdk {
    Sdk {
        language: "java",
        variable: "QUALITYTRACE_TEST_SDK_JAVA",
        protocols: &[GRPC, PROTOBUF],
        json_by: &[],
        differs: |_| Vec::new(),
        everywhere: &["thread.id", "thread.name"],
        link_state: "vendor=value",
        sampled: 1,
        server: ("GET /echo", answered()),
        failed: ("GET", "", refused("java.net.ConnectException")),
    }
}
