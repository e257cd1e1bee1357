//! ClickHouse with a table of the Collector's `clickhouseexporter`: attributes in `Map` columns, or in `JSON` columns.
//!
//! A query is one `POST` of one statement, and its answer is one row: so neither `max_result_rows` nor the end of a connection can
//! cut the answer without a sign. Every answer also has the settings with which ClickHouse executed the statement. A profile of the user
//! may contain some that leave out rows; the driver sets others, and where it may not, the answer is partial.
//!
//! Deliberately absent: the native protocol, and tables of other products. A table of SigNoz or Jaeger is refused by name.

mod answer;
mod rows;
mod schema;
mod statement;

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use model::{SpanDetail, Timestamp, TraceId};
use serde::de::DeserializeOwned;

use super::{
    Completeness, Evidence, Query, QueryResult, Store, StoreProfile, connection::StoreConnection,
};
use schema::{AttributeColumns, Table, TableName};
use statement::SettingsClause;

/// The profile of a table with `Map` columns, which is what the exporter creates unless the user chooses `json`.
pub(super) const PROFILE: StoreProfile = StoreProfile {
    name: "ClickHouse",
    api: "SQL by HTTP, tables of the Collector's `clickhouseexporter`",
    version: "engine 26.9.2.1, tables of exporter 0.161.0",
    evidence: Evidence::RealEngine,
    lacks: &[SpanDetail::ValueTypes, SpanDetail::ScopeAttributes, SpanDetail::Flags],
    changes: "with `json: true` the types stay, but bytes are Base64, a map is one attribute for each path, a double without a fraction is an \
              integer, a text that is a time is written in another form, and empty values are missing",
    // Between the Collector and a row that can be read are the batch of the exporter (its documentation recommends to flush after 5 s),
    // an asynchronous insert (up to 1 s), and the replication to the replica that is queried (seconds).
    lag: Duration::from_secs(10),
    pause_max: Duration::from_secs(2),
    spans_max: None,
};

/// The profile of a table with `JSON` columns.
const PROFILE_OF_JSON: StoreProfile =
    StoreProfile { lacks: &[SpanDetail::ScopeAttributes, SpanDetail::Flags], ..PROFILE };

#[derive(Debug)]
pub(super) struct ClickHouse {
    connection: StoreConnection,
    /// The table that the user names, or why that is no name of a table.
    name: Result<TableName, String>,
    /// The columns, once they are known.
    table: OnceLock<Table>,
    /// Whether ClickHouse is known to refuse the settings of the driver.
    is_bound: AtomicBool,
}

pub(super) fn open(connection: StoreConnection, index: Option<&str>) -> Box<dyn Store> {
    let name = TableName::parse(index.unwrap_or(TableName::DEFAULT));
    Box::new(ClickHouse {
        connection,
        name,
        table: OnceLock::new(),
        is_bound: AtomicBool::new(false),
    })
}

impl Store for ClickHouse {
    fn profile(&self) -> &StoreProfile {
        match self.table.get().map(|table| table.attributes) {
            Some(AttributeColumns::Json) => &PROFILE_OF_JSON,
            Some(AttributeColumns::Map) | None => &PROFILE,
        }
    }

    fn query(&self, trace: TraceId, since: Option<Timestamp>) -> Query<'_> {
        Box::pin(async move { self.spans(trace, since).await.unwrap_or_else(|failure| failure) })
    }
}

impl ClickHouse {
    async fn spans(
        &self,
        trace: TraceId,
        since: Option<Timestamp>,
    ) -> Result<QueryResult, QueryResult> {
        let name = self.name.as_ref().map_err(|why| self.connection.refused(why.clone()))?;
        let table = match self.table.get() {
            Some(table) => table,
            None => self.describe(name).await?,
        };
        let (select, bound) = statement::trace(name, table, (trace, since));
        let row: rows::TraceRow = self.select(&select, &bound).await?;
        if table.attributes == AttributeColumns::Json && row.settings.quotes_integers() {
            return Err(self.connection.refused(
                "its user has a profile with `output_format_json_quote_64bit_integers`, so that integers cannot be distinguished from texts, \
                 and may not change it: set it to 0 in the profile, or `readonly` to 2"
                    .to_owned(),
            ));
        }
        let cut = row.settings.cut();
        let (spans, unreadable) = rows::translate(row, trace, table.attributes)
            .map_err(|why| self.connection.failed(why))?;
        let completeness = match cut.or(unreadable) {
            Some(reason) => Completeness::Partial(reason),
            None if spans.is_empty() => return Ok(QueryResult::Nothing),
            None => Completeness::Complete,
        };
        let otlp = if spans.is_empty() { Vec::new() } else { vec![otlp::encode(&spans).into()] };
        Ok(QueryResult::Spans { otlp, completeness })
    }

    /// Queries the columns of the table.
    async fn describe(&self, name: &TableName) -> Result<&Table, QueryResult> {
        let (select, bound) = statement::columns(name);
        let row: schema::ColumnsRow = self.select(&select, &bound).await?;
        let cut = row.settings.cut();
        match Table::of(name, &row) {
            Ok(table) => Ok(self.table.get_or_init(|| table)),
            // The missing columns may be among those that were left out.
            Err(why) => Err(match cut {
                Some(cut) => self.connection.failed(format!("{why}; but {cut}")),
                None => self.connection.refused(why),
            }),
        }
    }

    /// Executes a statement that returns one row: with the settings of the driver, or without, if ClickHouse refuses those.
    async fn select<T: DeserializeOwned>(
        &self,
        select: &str,
        bound: &str,
    ) -> Result<T, QueryResult> {
        let path = format!("/?wait_end_of_query=1{bound}");
        loop {
            let is_bound = self.is_bound.load(Ordering::Relaxed);
            let clause = if is_bound { SettingsClause::Absent } else { SettingsClause::Present };
            let body = Bytes::from(statement::complete(select, clause));
            let response = self.connection.post(&path, ("text/plain", body)).await?;
            match answer::read(&response) {
                Ok(row) => return Ok(row),
                Err(exception) if !is_bound && exception.is_about_settings() => {
                    self.is_bound.store(true, Ordering::Relaxed);
                }
                Err(exception) => return Err(exception.into_result(&self.connection, &response)),
            }
        }
    }
}
