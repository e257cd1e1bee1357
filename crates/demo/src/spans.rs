//! Spans of a service, and the propagation to the next service: W3C trace context and baggage, in headers.
//!
//! The context is an argument, not a thread-local: the services share threads.

use std::{collections::BTreeMap, fmt};

use http::{HeaderMap, HeaderName, HeaderValue};
use telemetry::{
    Telemetry,
    opentelemetry::{
        Context, KeyValue,
        baggage::BaggageExt,
        global::BoxedTracer,
        propagation::{Extractor, Injector, TextMapPropagator},
        trace::{Link, SpanBuilder, SpanKind, Status, TraceContextExt, TracerProvider},
    },
    propagation::{BaggagePropagator, TraceContextPropagator},
};

/// The baggage entry that names the customer, and the attribute that repeats it.
const CUSTOMER: &str = "shop.customer";

/// Creates the spans of a service.
pub(crate) struct Spans(BoxedTracer);

/// A started span. It ends when this is dropped.
pub(crate) struct Open {
    /// The context with this span, the parent of further spans.
    pub(crate) context: Context,
}

impl Spans {
    pub(crate) fn new(telemetry: &Telemetry) -> Self {
        Self(BoxedTracer::new(Box::new(telemetry.tracer_provider().tracer("shop"))))
    }

    /// Starts a span.
    pub(crate) fn start(
        &self,
        parent: &Context,
        kind: SpanKind,
        name: impl Into<String>,
        attributes: Vec<KeyValue>,
    ) -> Open {
        self.built(parent, SpanBuilder::from_name(name.into()).with_kind(kind), attributes)
    }

    /// Starts the span of a consumer, as a child of its producer and with a link to it.
    pub(crate) fn consume(&self, producer: &Context, name: &str, with: Vec<KeyValue>) -> Open {
        let link = Link::with_context(producer.span().span_context().clone());
        let builder = SpanBuilder::from_name(name.to_owned()).with_kind(SpanKind::Consumer);
        self.built(producer, builder.with_links(vec![link]), with)
    }

    fn built(&self, parent: &Context, builder: SpanBuilder, mut with: Vec<KeyValue>) -> Open {
        let customer = parent.baggage().get(CUSTOMER).map(ToString::to_string);
        with.extend(customer.map(|name| KeyValue::new(CUSTOMER, name)));
        let span = builder.with_attributes(with).start_with_context(&self.0, parent);
        Open { context: parent.with_span(span) }
    }
}

impl Open {
    /// Adds an attribute.
    pub(crate) fn note(
        &self,
        key: &'static str,
        value: impl Into<telemetry::opentelemetry::Value>,
    ) {
        self.context.span().set_attribute(KeyValue::new(key, value));
    }

    /// Sets the status to error.
    pub(crate) fn fail(&self, kind: &str, message: String) {
        self.note("error.type", kind.to_owned());
        self.context.span().set_status(Status::error(message));
    }

    /// Adds the customer to this span and to the baggage, so that every service that follows has the attribute too.
    pub(crate) fn name_customer(&mut self, customer: &str) {
        self.note(CUSTOMER, customer.to_owned());
        let known = self.context.baggage().iter();
        let mut baggage: Vec<KeyValue> =
            known.map(|(key, (value, _))| KeyValue::new(key.clone(), value.clone())).collect();
        baggage.push(KeyValue::new(CUSTOMER, customer.to_owned()));
        self.context = self.context.with_baggage(baggage);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.context.span().end();
    }
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spans")
    }
}

/// Extracts the context that a caller sent.
pub(crate) fn remote(carrier: &impl Extractor) -> Context {
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), carrier);
    BaggagePropagator::new().extract_with_context(&context, carrier)
}

/// Injects the context into the headers for the next service.
pub(crate) fn pass_on(context: &Context, carrier: &mut impl Injector) {
    TraceContextPropagator::new().inject_context(context, carrier);
    BaggagePropagator::new().inject_context(context, carrier);
}

/// HTTP headers, to extract from.
pub(crate) struct Headers<'a>(pub(crate) &'a HeaderMap);

/// HTTP headers, to inject into.
pub(crate) struct HeadersMut<'a>(pub(crate) &'a mut HeaderMap);

/// Headers of a message, to extract from.
pub(crate) struct Properties<'a>(pub(crate) &'a BTreeMap<String, String>);

/// Headers of a message, to inject into.
pub(crate) struct PropertiesMut<'a>(pub(crate) &'a mut BTreeMap<String, String>);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        // The injector drops an invalid header, as every propagator does.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}

impl Extractor for Properties<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

impl Injector for PropertiesMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.insert(key.to_owned(), value);
    }
}
