//! The trigger `playwrightengine`: one function of a browser script.

use super::call::{Field, FieldForm, Protocol};

pub(super) const PLAYWRIGHT_ENGINE: Protocol = Protocol {
    name: "playwrightengine",
    section: "playwrightEngine",
    fields: &[
        Field::new("target", FieldForm::Text, "The page.").required(),
        Field::new("method", FieldForm::Text, "The function of the script."),
        Field::new("script", FieldForm::Script, "The script, or its file.").required(),
    ],
    peer: "target",
    method: None,
    is_fired: false,
};
