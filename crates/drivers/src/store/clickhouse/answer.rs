//! Reads the one row of an answer, and what an answer without it means.
//!
//! An exception of ClickHouse comes with a status and a header. If it occurs after the answer has begun, it is a text in the body of an answer
//! with the status 200, although `wait_end_of_query` should prevent that: a proxy may remove the parameter.

use http::StatusCode;
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    super::connection::{StoreConnection, StoreResponse, quoted},
    statement::{FILTERS, QUOTE, SETTINGS},
};
use crate::store::QueryResult;

/// The settings that were in effect, by name. Versions that do not know a setting do not list it.
#[derive(Debug, Deserialize)]
pub(super) struct SettingsRow(Vec<(String, String)>);

/// Why an answer has no row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Exception {
    /// An exception of ClickHouse, by its number and its text.
    Code(u32, String),
    /// A response that is not of ClickHouse.
    Status,
    /// A response with the status 200 that is not the row.
    Unreadable(String),
}

impl SettingsRow {
    /// Returns why rows may be missing, if they may.
    pub(super) fn cut(&self) -> Option<String> {
        let value = |name: &str| self.0.iter().find(|(it, _)| it == name).map(|(_, value)| value);
        if value("read_overflow_mode").is_none() {
            return Some("it does not show its settings, and some leave out rows".to_owned());
        }
        let cutting = SETTINGS.iter().filter(|(name, _)| {
            !matches!(*name, QUOTE | "cancel_http_readonly_queries_on_client_close")
        });
        let mut cutting = cutting.copied().chain([(FILTERS, "{}")]);
        let (name, value) = cutting.find_map(|(name, right)| {
            value(name).filter(|value| *value != right).map(|value| (name, value))
        })?;
        Some(format!(
            "the profile of its user has `{name}` = `{}`, which leaves out rows without a sign, and the user may not change it",
            quoted(value)
        ))
    }

    /// Whether 64-bit integers are written as texts.
    pub(super) fn quotes_integers(&self) -> bool {
        self.0.iter().any(|(name, value)| name == QUOTE && value != "0")
    }
}

/// Returns the row of an answer.
pub(super) fn read<T: DeserializeOwned>(response: &StoreResponse) -> Result<T, Exception> {
    let header = response.headers.get("x-clickhouse-exception-code");
    let code = header.and_then(|code| code.to_str().ok()?.parse().ok());
    let text = || String::from_utf8_lossy(&response.body);
    match (response.status, code) {
        (_, Some(code)) => Err(Exception::Code(code, text().trim().to_owned())),
        (StatusCode::OK, None) => serde_json::from_slice(&response.body)
            .map_err(|error| in_body(&text()).unwrap_or(Exception::Unreadable(error.to_string()))),
        (_, None) => Err(in_body(&text()).unwrap_or(Exception::Status)),
    }
}

/// Returns the exception in a text. Attributes of spans may contain such a text: this is only for a body that is not the row.
fn in_body(text: &str) -> Option<Exception> {
    let at = text.rfind("DB::Exception")?;
    let start = text[..at].rfind("Code: ")?;
    let digits = text[start + "Code: ".len()..at].split(|c: char| !c.is_ascii_digit()).next()?;
    Some(Exception::Code(digits.parse().ok()?, text[start..].trim().to_owned()))
}

impl Exception {
    /// Whether the settings of the driver are refused or unknown.
    pub(super) fn is_about_settings(&self) -> bool {
        // UNKNOWN_SETTING, READONLY, SETTING_CONSTRAINT_VIOLATION.
        matches!(self, Self::Code(115 | 164 | 452, _))
    }

    /// Returns what follows from it for the query.
    pub(super) fn into_result(
        self,
        connection: &StoreConnection,
        response: &StoreResponse,
    ) -> QueryResult {
        match self {
            Self::Status => connection.without_trace(response),
            Self::Unreadable(why) => {
                connection.failed(format!("not an answer of ClickHouse: {why}"))
            }
            Self::Code(code, text) => {
                let words = format!("exception {code}: {}", quoted(&text));
                match code {
                    // The user, the password, and the ways to prove them.
                    192..=194 | 516 => {
                        connection.refused(format!("{words}; it does not accept the credentials"))
                    }
                    // Syntax; functions, columns, tables and databases that are unknown; limits of reading; missing rights and settings.
                    46 | 47 | 60 | 62 | 81 | 115 | 158 | 164 | 307 | 396 | 452 | 497 => {
                        connection.refused(words)
                    }
                    // Timeouts, memory, quotas, too many queries, nodes and Keeper out of reach, and what is not known here.
                    _ => connection.failed(words),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_found_behind_the_beginning_of_an_answer() {
        let cases = [
            ("", None),
            ("<html>", None),
            ("DB::Exception", None),
            ("Code: x. DB::Exception: y", None),
            ("{\"count\":\"1\",\"rows\":[[\"aCode: 241. DB::Exception: memory\n", Some(241)),
            ("{\"exception\": \"Code: 159. DB::Exception: timeout\"}", Some(159)),
        ];
        for (body, expected) in cases {
            let code = match in_body(body) {
                Some(Exception::Code(code, _)) => Some(code),
                _ => None,
            };
            assert_eq!(code, expected, "{body}");
        }
    }

    #[test]
    fn a_setting_that_leaves_out_rows_is_named() {
        let row = |pairs: &[(&str, &str)]| {
            SettingsRow(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
        };
        let read = ("read_overflow_mode", "throw");
        let cases = [
            (row(&[read]), None),
            (row(&SETTINGS), None),
            (row(&[read, (FILTERS, "{}"), (QUOTE, "1")]), None),
            (row(&[]), Some("it does not show its settings")),
            (row(&[("read_overflow_mode", "break")]), Some("`read_overflow_mode` = `break`")),
            (row(&[read, ("skip_unavailable_shards", "1")]), Some("`skip_unavailable_shards`")),
            (row(&[read, (FILTERS, "{'t':'0'}")]), Some(FILTERS)),
        ];
        for (row, expected) in cases {
            let cut = row.cut();
            match expected {
                None => assert_eq!(cut, None, "{row:?}"),
                Some(words) => assert!(cut.is_some_and(|cut| cut.contains(words)), "{row:?}"),
            }
        }
    }
}
