//! Attributes that the semantic conventions renamed: the older and the newer name.
//!
//! If a test queries one name and the spans have the other, a message about the rename helps more than any number of
//! similar names. The other name is no alias, and no lookup uses it.

/// The older name, the newer name.
const RENAMED: &[(&str, &str)] = &[
    ("http.method", "http.request.method"),
    ("http.status_code", "http.response.status_code"),
    ("http.url", "url.full"),
    ("http.target", "url.path"),
    ("http.target", "url.query"),
    ("http.scheme", "url.scheme"),
    ("http.host", "server.address"),
    ("http.server_name", "server.address"),
    ("http.flavor", "network.protocol.version"),
    ("http.user_agent", "user_agent.original"),
    ("http.client_ip", "client.address"),
    ("http.resend_count", "http.request.resend_count"),
    ("http.request_content_length", "http.request.body.size"),
    ("http.response_content_length", "http.response.body.size"),
    ("net.peer.name", "server.address"),
    ("net.peer.name", "client.address"),
    ("net.peer.port", "server.port"),
    ("net.peer.port", "client.port"),
    ("net.peer.ip", "network.peer.address"),
    ("net.host.name", "server.address"),
    ("net.host.port", "server.port"),
    ("net.host.ip", "network.local.address"),
    ("net.sock.peer.addr", "network.peer.address"),
    ("net.sock.peer.port", "network.peer.port"),
    ("net.sock.host.addr", "network.local.address"),
    ("net.sock.host.port", "network.local.port"),
    ("net.transport", "network.transport"),
    ("net.protocol.name", "network.protocol.name"),
    ("net.protocol.version", "network.protocol.version"),
    ("net.app.protocol.name", "network.protocol.name"),
    ("net.app.protocol.version", "network.protocol.version"),
    ("db.system", "db.system.name"),
    ("db.name", "db.namespace"),
    ("db.statement", "db.query.text"),
    ("db.operation", "db.operation.name"),
    ("db.sql.table", "db.collection.name"),
    ("db.mongodb.collection", "db.collection.name"),
    ("db.cassandra.table", "db.collection.name"),
    ("db.redis.database_index", "db.namespace"),
    ("db.instance", "db.namespace"),
    ("messaging.destination", "messaging.destination.name"),
    ("messaging.message_id", "messaging.message.id"),
    ("messaging.conversation_id", "messaging.message.conversation_id"),
    ("messaging.operation", "messaging.operation.type"),
    ("messaging.message_payload_size_bytes", "messaging.message.body.size"),
    ("messaging.kafka.consumer.group", "messaging.consumer.group.name"),
    ("messaging.kafka.partition", "messaging.destination.partition.id"),
    ("messaging.kafka.message_key", "messaging.kafka.message.key"),
    ("messaging.rabbitmq.routing_key", "messaging.rabbitmq.destination.routing_key"),
    ("rpc.system", "rpc.system.name"),
    ("rpc.grpc.status_code", "rpc.response.status_code"),
    ("enduser.id", "user.id"),
    ("faas.execution", "faas.invocation_id"),
    ("faas.id", "cloud.resource_id"),
    ("deployment.environment", "deployment.environment.name"),
    ("code.function", "code.function.name"),
    ("code.filepath", "code.file.path"),
    ("code.lineno", "code.line.number"),
    ("otel.library.name", "otel.scope.name"),
    ("otel.library.version", "otel.scope.version"),
    ("browser.user_agent", "user_agent.original"),
    ("container.image.tag", "container.image.tags"),
    ("telemetry.auto.version", "telemetry.distro.version"),
];

/// Whether another name is the older or the newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    Older,
    Newer,
}

/// Returns the other names of an attribute.
pub(crate) fn others(name: &str) -> impl Iterator<Item = (&'static str, Age)> {
    RENAMED.iter().filter_map(move |(older, newer)| match name {
        _ if name == *older => Some((*newer, Age::Newer)),
        _ if name == *newer => Some((*older, Age::Older)),
        _ => None,
    })
}

impl Age {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Older => "older",
            Self::Newer => "newer",
        }
    }
}
