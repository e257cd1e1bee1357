//! Helpers to fire triggers in tests.

use std::time::Duration;

use drivers::trigger::{AnswerHold, Commands, TriggerConfig, TriggerLimits, Triggers};
use model::{
    Answer, Attempt, Body, HttpRequest, NoAnswer, Propagator, Request, Response, Timestamp, Tls,
};
use net::Networks;

pub(crate) const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
pub(crate) const SPAN: &str = "b7ad6b7169203331";

pub(crate) const LIMITS: TriggerLimits =
    TriggerLimits { response_bytes_max: 1000, stderr_bytes_max: 100 };

/// Creates triggers with an environment.
pub(crate) fn triggers(environment: &[(&str, &str)]) -> Triggers {
    Triggers::new(config(environment))
}

/// The same for untrusted tests.
pub(crate) fn triggers_under(environment: &[(&str, &str)], networks: Networks) -> Triggers {
    Triggers::new(TriggerConfig { networks: Some(networks), ..config(environment) })
}

fn config(environment: &[(&str, &str)]) -> TriggerConfig {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let environment = environment.iter().map(owned).collect();
    TriggerConfig { limits: LIMITS, environment, commands: Commands::All, networks: None }
}

pub(crate) fn attempt() -> Attempt {
    Attempt {
        trace_id: TRACE.parse().expect("an id"),
        span_id: SPAN.parse().expect("an id"),
        at: Timestamp::from_nanos(0),
    }
}

pub(crate) async fn fire(triggers: &Triggers, request: &Request) -> Answer {
    triggers
        .fire(request, &attempt(), || true, &AnswerHold::unlimited())
        .await
        .expect("it was permitted")
}

pub(crate) async fn response(triggers: &Triggers, request: HttpRequest) -> Response {
    match fire(triggers, &Request::Http(request)).await {
        Answer::Response(response) => response,
        answer => panic!("{answer:?}"),
    }
}

pub(crate) async fn no_answer(triggers: &Triggers, request: HttpRequest) -> NoAnswer {
    match fire(triggers, &Request::Http(request)).await {
        Answer::NoAnswer(no_answer) => no_answer,
        answer => panic!("{answer:?}"),
    }
}

pub(crate) fn get(url: &str) -> HttpRequest {
    HttpRequest {
        method: "GET".to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        auth: None,
        body: Body::default(),
        secret_headers: Vec::new(),
        is_body_secret: false,
        timeout: Duration::from_secs(10),
        propagation: vec![Propagator::W3c],
        tls: Tls::default(),
        redirects_max: 0,
    }
}
