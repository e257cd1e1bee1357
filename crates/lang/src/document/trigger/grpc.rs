//! The trigger `grpc`: one call of a method.

use super::call::{Field, FieldForm, Protocol};

pub(super) const GRPC: Protocol = Protocol {
    name: "grpc",
    section: "grpc",
    fields: &[
        Field::new("protobufFile", FieldForm::Script, "The `.proto` file, or its content."),
        Field::new("address", FieldForm::Text, "`host:port`").required(),
        Field::new("service", FieldForm::Text, "The service, where the method does not name it."),
        Field::new("method", FieldForm::Text, "The method, as `package.Service.Method`.")
            .required(),
        Field::new("metadata", FieldForm::Headers, "Sent with it."),
        Field::new("auth", FieldForm::Auth, "Who asks."),
        Field::new(
            "request",
            FieldForm::Content,
            "The message as JSON, or a file as `./request.json`.",
        ),
    ],
    peer: "address",
    method: Some("method"),
    is_fired: false,
};
