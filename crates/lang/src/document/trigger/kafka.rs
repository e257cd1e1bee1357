//! The trigger `kafka`: one message to a topic.

use super::call::{Field, FieldForm, Protocol};

pub(super) const KAFKA: Protocol = Protocol {
    name: "kafka",
    section: "kafka",
    fields: &[
        Field::new("brokerUrls", FieldForm::Texts, "`host:port` of a broker."),
        Field::new("topic", FieldForm::Text, "Where the message is put.").required(),
        Field::new("headers", FieldForm::Headers, "Sent with it."),
        Field::new("messageKey", FieldForm::Text, "The key of the message."),
        Field::new(
            "messageValue",
            FieldForm::Content,
            "The message, or a file as `./message.json`.",
        ),
        Field::new("authentication", FieldForm::Plain, "How the broker knows us."),
        Field::new(
            "sslVerification",
            FieldForm::Verification,
            "Whether the certificate is verified.",
        ),
    ],
    peer: "brokerUrls",
    method: None,
    is_fired: false,
};
