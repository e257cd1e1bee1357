//! Reads the runs from the database: the record that the history is compared with.

use anyhow::Result;
use serde_json::Value;
use sqlx::{PgConnection, Row as _};

use super::history::RecordedRun;

const OPEN: &str = "select count(*) from runs where verdict is null";

const RUNS: &str = "
select id::text, test_id, accepted_at_ns / 1000000, ended_at_ns / 1000000, verdict, outcome::text, epoch,
    attempted_at_ns is not null, coalesce(key, vars->'values'->>'run'), coalesce(judged, 0), coalesce(judged_at, 0)
from runs
left join idempotency_keys on started = id
left join (
    select run_id, count(*) as judged, max(n) as judged_at
    from events where event->'what'->'judged' is not null group by run_id
) as final on run_id = id
order by id";

/// Returns how many runs have no verdict.
pub(super) async fn open(connection: &mut PgConnection) -> Result<i64> {
    Ok(sqlx::query_scalar(OPEN).fetch_one(connection).await?)
}

/// Returns all runs.
pub(super) async fn read(connection: &mut PgConnection) -> Result<Vec<RecordedRun>> {
    let rows = sqlx::query(RUNS).fetch_all(connection).await?;
    rows.iter().map(record).collect()
}

fn record(row: &sqlx::postgres::PgRow) -> Result<RecordedRun> {
    let number = |at: usize| -> Result<u64> { Ok(u64::try_from(row.try_get::<i64, _>(at)?)?) };
    let ended: Option<i64> = row.try_get(3)?;
    let outcome: Option<String> = row.try_get(5)?;
    let outcome: Value = outcome.map_or(Ok(Value::Null), |text| serde_json::from_str(&text))?;
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let claims = outcome["judgement"]["claims"].as_array().into_iter().flatten();
    let verdicts = claims.filter_map(|claim| claim["verdict"].as_str().map(str::to_owned));
    let unsettled = outcome["settlement"]["unsettled"].as_array().into_iter().flatten();
    Ok(RecordedRun {
        run: row.try_get(0)?,
        test: row.try_get(1)?,
        accepted_at: number(2)?,
        ended_at: ended.map(u64::try_from).transpose()?,
        verdict: row.try_get(4)?,
        claims: verdicts.collect(),
        // A reason is a word, or an object whose key is the word.
        unsettled: unsettled
            .filter_map(|reason| match reason {
                Value::Object(fields) => fields.keys().next().cloned(),
                reason => reason.as_str().map(str::to_owned),
            })
            .collect(),
        no_answer: outcome["answer"]["noAnswer"]["kind"].as_str().map(str::to_owned),
        reasons: texts(&outcome["reasons"]),
        owners: number(6)?,
        is_attempted: row.try_get(7)?,
        key: row.try_get(8)?,
        final_verdicts: number(9)?,
        judged_at: number(10)?,
    })
}
