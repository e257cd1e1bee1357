//! Triggers of further protocols, each described by a table: its fields, how they are written, and which of them name the peer.
//!
//! A protocol is one file beside this one and its line in [`TYPES`](super::TYPES). Parsing, filling in and the schema read its table.

use source::{Diagnostics, Fields, Item, Scalar};

use super::{
    Auth, Content, Header,
    read::{content, read_auth, read_headers, scalar, word_or_text},
};
use crate::document::{FileRef, is_blank, texts};

/// A protocol by which a trigger calls the system.
#[derive(Debug)]
pub(crate) struct Protocol {
    /// The type of the trigger.
    pub(crate) name: &'static str,
    /// The key of its section.
    pub(crate) section: &'static str,
    /// The keys of its section, in the order in which they are read.
    pub(crate) fields: &'static [Field],
    /// The field with the address of the peer, as diagnosis names it.
    pub(crate) peer: &'static str,
    /// The field with the method that is called, as spans of the peer name it.
    pub(crate) method: Option<&'static str>,
    /// Whether a run can fire it.
    pub(crate) is_fired: bool,
}

/// A key of the section of a protocol.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its name in the section.
    pub(crate) name: &'static str,
    pub(crate) form: FieldForm,
    pub(crate) is_required: bool,
    /// Its purpose, in one sentence.
    pub(crate) meaning: &'static str,
}

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldForm {
    Text,
    Texts,
    /// A list of names and values.
    Headers,
    /// A text, or a file if it starts like a path.
    Content,
    /// A text that is never a single word, or a file.
    Script,
    Auth,
    /// A user name and a password under `plain`.
    Plain,
    /// Whether the certificate of the peer is verified.
    Verification,
}

/// A trigger of a protocol.
#[derive(Clone, Debug)]
pub(crate) struct Call<T> {
    pub(crate) protocol: &'static Protocol,
    /// The fields that are written, in the order of the protocol.
    pub(crate) fields: Vec<(&'static str, FieldValue<T>)>,
}

/// The value of a field.
#[derive(Clone, Debug)]
pub(crate) enum FieldValue<T> {
    Text(T),
    Texts(Vec<T>),
    Headers(Vec<Header<T>>),
    Content(Content<T>),
    Auth(Auth<T>),
    /// The user name and the password.
    Plain(T, T),
    Verification(bool),
}

impl Field {
    pub(super) const fn new(name: &'static str, form: FieldForm, meaning: &'static str) -> Self {
        Self { name, form, is_required: false, meaning }
    }

    pub(super) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// Parses the field. The outer option is none if it is required and absent.
    fn read(
        &self,
        fields: &mut Fields<'_>,
        found: &Diagnostics,
    ) -> Option<Option<FieldValue<Scalar>>> {
        let value = match self.form {
            FieldForm::Texts => Some(FieldValue::Texts(texts(fields, self.name))),
            FieldForm::Headers => Some(FieldValue::Headers(read_headers(fields, self.name))),
            FieldForm::Verification => fields.boolean(self.name).map(FieldValue::Verification),
            form => {
                let item = match self.is_required {
                    true => fields.require(self.name),
                    false => fields.take(self.name),
                };
                match form {
                    FieldForm::Content => content(item, found).map(FieldValue::Content),
                    FieldForm::Script => word_or_text(item, found).map(FieldValue::Content),
                    FieldForm::Auth => {
                        item.and_then(|auth| read_auth(&auth, found)).map(FieldValue::Auth)
                    }
                    FieldForm::Plain => item.and_then(|plain| read_plain(&plain)),
                    _ => scalar(item).map(FieldValue::Text),
                }
            }
        };
        (value.is_some() || !self.is_required).then_some(value)
    }
}

impl Call<Scalar> {
    pub(super) fn read(
        protocol: &'static Protocol,
        mut fields: Fields<'_>,
        found: &Diagnostics,
    ) -> Option<Self> {
        let read = |field: &'static Field| (field.name, field.read(&mut fields, found));
        let values: Vec<_> = protocol.fields.iter().map(read).collect();
        fields.finish();
        let mut written = Vec::new();
        for (name, value) in values {
            written.extend(value?.map(|value| (name, value)));
        }
        Some(Self { protocol, fields: written })
    }
}

impl<T> Call<T> {
    pub(super) fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> Call<U> {
        let fields = self.fields.iter().map(|(name, value)| (*name, value.map(f))).collect();
        Call { protocol: self.protocol, fields }
    }

    /// Returns the files that it needs.
    pub(super) fn files(&self) -> impl Iterator<Item = &FileRef> {
        self.fields.iter().filter_map(|(_, value)| match value {
            FieldValue::Content(content) => content.file(),
            _ => None,
        })
    }
}

impl<T> FieldValue<T> {
    fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> FieldValue<U> {
        match self {
            Self::Text(text) => FieldValue::Text(f(text)),
            Self::Texts(texts) => FieldValue::Texts(texts.iter().map(f).collect()),
            Self::Headers(headers) => FieldValue::Headers(super::headers(headers, f)),
            Self::Content(content) => FieldValue::Content(content.map(f)),
            Self::Auth(auth) => FieldValue::Auth(auth.map(f)),
            Self::Plain(user, password) => FieldValue::Plain(f(user), f(password)),
            Self::Verification(is_on) => FieldValue::Verification(*is_on),
        }
    }
}

fn read_plain(item: &Item<'_>) -> Option<FieldValue<Scalar>> {
    if is_blank(item.node) {
        return None;
    }
    let mut fields = item.fields()?;
    fields.require("type").and_then(|kind| kind.choice(&[("plain", ())]));
    let plain = fields.require("plain").and_then(|plain| plain.fields());
    fields.finish();
    let mut plain = plain?;
    let pair = (scalar(plain.require("username")), scalar(plain.require("password")));
    plain.finish();
    Some(FieldValue::Plain(pair.0?, pair.1?))
}
