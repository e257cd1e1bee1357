-- The columns of the exporter's table. KIND is the type of attributes.
Timestamp DateTime64(9), TraceId String, SpanId String, ParentSpanId String, TraceState String,
SpanName LowCardinality(String), SpanKind LowCardinality(String), ServiceName LowCardinality(String),
ResourceAttributes KIND, ScopeName String, ScopeVersion String, SpanAttributes KIND, Duration UInt64,
StatusCode LowCardinality(String), StatusMessage String,
Events Nested (Timestamp DateTime64(9), Name LowCardinality(String), Attributes KIND),
Links Nested (TraceId String, SpanId String, TraceState String, Attributes KIND)
