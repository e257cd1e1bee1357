//! The rows of logins in the audit log: who logged in or failed to, from which address, and why it failed.
//!
//! A login gets its row before its session exists. A failed one gets a row with its reason, as long as there are not too many of
//! them (`access/failures.rs`).

use std::net::IpAddr;

use axum::http::{Method, StatusCode};
use db::{NewAudit, NewToken};

use crate::{
    access::{oidc::OidcError, token},
    http::{app::App, problem::Problem},
    telemetry::{call::Call, events, traceparent::TraceParent},
};

/// The path of the redirect back from the provider.
pub(super) const BACK: &str = "/auth/callback";
/// The maximum length of a reason. It may hold text that the provider or the browser sent.
const REASON_MAX: usize = 500;

/// Writes the audit rows of one login.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoginAudit<'a> {
    pub(super) app: &'a App,
    pub(super) context: TraceParent,
    pub(super) address: IpAddr,
}

impl LoginAudit<'_> {
    /// Writes that a person logs in, before the session exists; returns the number of the row.
    pub(super) async fn began(&self, session: &NewToken) -> Result<i64, Problem> {
        let entry = NewAudit {
            who: session.name.clone(),
            person: session.person.clone(),
            token: Some(session.id),
            ..self.entry()
        };
        let noted = self.app.db.audit(&entry);
        Ok(self.app.watch.db(self.context, Call("INSERT", "audit"), noted).await?)
    }

    /// Writes the status of the login. A row without a status is of a login that may or may not have happened.
    pub(super) async fn answered(&self, n: i64, status: StatusCode) {
        let answered = self.app.db.audit_answered(n, status.as_u16());
        if let Err(error) = self.app.watch.db(self.context, Call("UPDATE", "audit"), answered).await
        {
            tracing::warn!(%error, n, "the status of a login is missing from the audit log");
        }
    }

    /// Writes that a login failed.
    pub(super) async fn failed(&self, error: &OidcError, status: StatusCode) {
        let Some(omitted) = self.app.access.failures.count(self.address) else { return };
        events::login_failed();
        let person = error.person();
        let entry = NewAudit {
            who: person.map_or("unknown", |(name, _)| name).to_owned(),
            person: person.map(|(_, id)| id.clone()),
            reason: Some(reason(error, omitted)),
            ..self.entry()
        };
        let noted = self.app.db.audit(&entry);
        match self.app.watch.db(self.context, Call("INSERT", "audit"), noted).await {
            Ok(n) => self.answered(n, status).await,
            Err(error) => {
                tracing::warn!(%error, "a failed login is missing from the audit log");
            }
        }
    }

    /// Returns an entry with the fields that all logins share.
    fn entry(&self) -> NewAudit {
        NewAudit {
            at: self.app.world.now(),
            who: String::new(),
            person: None,
            address: Some(self.address),
            token: None,
            method: Method::GET.to_string(),
            route: BACK.to_owned(),
            path: BACK.to_owned(),
            project: None,
            reason: None,
        }
    }
}

/// Renders why a login failed, and how many failed logins before it have no row.
fn reason(error: &OidcError, omitted: u64) -> String {
    let text = token::hide(error.to_string());
    let text: String = text.chars().filter(|it| !it.is_control()).take(REASON_MAX).collect();
    match omitted {
        0 => text,
        1 => format!("{text} (and 1 more failed login that is not in this log)"),
        more => format!("{text} (and {more} more failed logins that are not in this log)"),
    }
}

#[cfg(test)]
mod tests {
    use super::reason;
    use crate::access::oidc::OidcError;

    #[test]
    fn a_reason_is_short_and_plain() {
        let cases = [
            (
                OidcError::Refused("no\n\u{0}".to_owned()),
                0,
                "the identity provider refused the login: no",
            ),
            (
                OidcError::Refused("no".to_owned()),
                7,
                "the identity provider refused the login: no (and 7 more failed logins that are not in this log)",
            ),
        ];
        for (error, omitted, text) in cases {
            assert_eq!(reason(&error, omitted), text);
        }
        let long = OidcError::Refused("é".repeat(9000));
        assert_eq!(reason(&long, 0).chars().count(), super::REASON_MAX);
    }
}
