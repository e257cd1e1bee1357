//! How Postgres executes the statements of the database crate, with any history: by an index, and with few pages.
//!
//! Every statement is planned as the database crate plans it: prepared, and with a generic plan, except for lists of runs: their
//! values decide which index is best. None may scan a large table sequentially. The statements about runs are also executed, each
//! in a transaction that is rolled back.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection, Row as _};

use super::statements::{self, SqlStatement};

/// The upper bound of pages that a statement may read: its rows, of which the longest list has 501, each possibly on its own
/// page, and the path to them in the index of each month.
pub(super) const PAGES_MAX: u64 = 1000;
/// The statement that looks at the last run of every test of a project, of which there are 50 here, in each recent month; and its
/// upper bound of pages.
pub(super) const OF_EVERY_TEST: (&str, u64) = ("(listed.rank, listed.id) > ($3", 50 * 40);
/// The number of rows from which a table counts as large.
const LARGE_ROWS: f32 = 2000.0;

/// Words that all lists of runs contain, and the query of one run, which goes on with another one.
const LIST: &str = "ended_at_ns, revision,";
const ONE_RUN: &str = "ended_at_ns, revision, starter,";
/// The number of such lists.
const LISTS: usize = 6;

/// Statements that are executed: words that are unique to the statement, and its values.
const CASES: &[(&str, &str)] = &[
    // Lists and filters, the rarest values too.
    ("where project = $1 and verdict = $5", "'shop', {first}, {last}, 501, 'inconclusive'"),
    ("where project = $1 and verdict = $5", "'team-3', {first}, {last}, 501, 'inconclusive'"),
    (
        "where project = $1 and test_id = $5 and verdict = $6",
        "'team-3', {first}, {last}, 501, 'test-7', 'inconclusive'",
    ),
    ("where project = $1 and id >= $2", "'shop', {first}, {last}, 501"),
    ("where project = $1 and test_id = $5 and id >=", "'shop', {first}, {last}, 501, 'test-7'"),
    ("where project = $1 and verdict = $5", "'shop', {first}, {last}, 501, 'failed'"),
    (
        "where project = $1 and test_id = $5 and verdict = $6",
        "'shop', {first}, {last}, 501, 'test-7', 'failed'",
    ),
    ("where provisional is not null and project = $1 and trace_id = $2", "'shop', {trace}, 501"),
    (
        "from unnest($2::text[]) as tests",
        "'shop', array['test-1', 'test-2', 'test-3', 'test-4', 'test-5', 'test-6', 'test-7', 'test-8'], 30",
    ),
    ("from audit where n < $1", "9000000000, 501"),
    ("from tokens where kind = 'token'", "null, 501"),
    ("from tokens where kind = 'session'", "{first}, null, 1, 501"),
    ("from tokens where issuer = $5", "{first}, null, 1, 501, 'https://id', '7'"),
    ("update tokens set seen_at_ns", "{first}, 1"),
    ("from tokens where hash = $1", "sha256('77'), 'token', 1"),
    ("kept.kind = $2 and kept.id > $3 order by", "'shop', 'test', 'test-2', 501"),
    (
        "strpos(lower(kept.id || chr(10) || versions.name), lower($3))",
        "'shop', 'test-2', 'TEST', 101",
    ),
    (OF_EVERY_TEST.0, "'shop', 'test', 0, 'test-2', 101, {recent}"),
    ("versions.version < $4 order by", "'shop', 'test', 'test-2', 9, 501"),
    // One run, one suite run.
    ("outcome_zstd is not null as \"answer_apart!\"", "'shop', {run}"),
    ("select outcome::text as outcome, outcome_zstd, overtaken", "'shop', {run}"),
    ("from events where project = $1", "'shop', {run}, 0, 1000"),
    ("select otlp_zstd from traces", "'shop', {run}"),
    ("select columns_zstd from traces", "'shop', {run}"),
    ("update traces set columns_zstd = $3", "'shop', {run}, '\\x00'"),
    ("from suite_runs where project = $1", "'shop', {suite}"),
    ("from suite_steps left join runs", "{suite}"),
    ("from idempotency_keys where", "'shop', 'key', 'a'"),
    // Writes of a run.
    (
        "vars, timeout_ms, revision, starter)",
        "'shop', {new}, 'test-1', 1, null, '{}', null, null, 'a new key', 'a', null, 'token'",
    ),
    ("Leases up to", "'worker', 10, 64, 32, 'now', 8, 4, 0, '{}'"),
    ("What a worker needs", "array[{open}], '{1}'"),
    (
        "set lease_until = now() + make_interval(secs => $3) where id = any",
        "array[{open}], '{1}', 10",
    ),
    ("update open_runs set lease_until = null from unnest", "array[{open}], '{1}'"),
    (
        "set trace_id = $3",
        "{open}, 1, decode(repeat('ab', 16), 'hex'), decode(repeat('ab', 8), 'hex'), 1, '{}', null, null",
    ),
    ("set answer_sealed = $3", "{open}, 1, '\\x00', '{}', 1"),
    ("select answer_sealed, false", "{open}, 1"),
    ("select answer_sealed from open_runs where id = $1 and epoch = $2", "{open}, 1"),
    ("update open_runs set outputs_sealed", "{open}, 1, '\\x00'"),
    ("update open_runs set provisional = $3", "{open}, 1, 'passed', array['{}', '{}']"),
    (
        "update runs set verdict = $3",
        "{open}, 1, 'passed', '{}', array['{}', '{}'], 1, '\\x00', 1, null, '\\x00'",
    ),
    ("update runs set overtaken = $3", "{run}, 1, '{}', '{}'"),
    ("update open_runs set stop_at_ns = $3 where project", "'shop', {open}, 1"),
    // Queries of the server itself.
    ("min(accepted_at_ns) as oldest from open_runs", ""),
    ("from open_runs where epoch = 0 group by project", ""),
    (") as attempted where bus_slot is not null or not $2 order by id", "100, false"),
    ("update suite_runs set epoch = epoch + 1", "'worker', 10, 8"),
    ("with suite as ( update suite_runs set stop_at_ns", "'shop', {suite}, 1"),
    ("update audit set status", "77, 200"),
    ("delete from audit where at_ns", "50"),
];

fn is_list(statement: &SqlStatement) -> bool {
    statement.line.contains(LIST) && !statement.line.contains(ONE_RUN)
}

/// The result of one statement.
#[derive(Clone, Debug)]
pub struct StatementPlan {
    /// The words that identify it.
    pub words: String,
    /// Pages that it read.
    pub pages: u64,
    /// Its duration in milliseconds.
    pub ms: f64,
}

/// Values that exist in the history.
struct KnownValues(Vec<(&'static str, String)>);

/// Plans every statement and executes those that have a case; a bad plan is an error.
pub(super) async fn explain(connection: &mut PgConnection) -> Result<Vec<StatementPlan>> {
    let all = statements::all()?;
    let large = large(connection).await?;
    ensure!(large.iter().any(|table| table.starts_with("runs_")), "there is a history");
    run(connection, "set plan_cache_mode = force_generic_plan").await?;
    let known = KnownValues::find(connection).await?;
    let lists = all.iter().filter(|statement| is_list(statement)).count();
    ensure!(lists == LISTS, "{lists} statements are lists of runs, and not {LISTS}: see `LIST`");
    for statement in &all {
        planned(connection, statement, &large).await?;
    }
    let mut explained = Vec::new();
    for (words, values) in CASES {
        let statement = statements::with(&all, words)?;
        let (plan, ms) = carried_out(connection, statement, &known.fill(values)).await?;
        unread(&plan, &large).with_context(|| format!("{}\n{plan:#}", statement.text))?;
        let pages = pages(&plan);
        let most = if *words == OF_EVERY_TEST.0 { OF_EVERY_TEST.1 } else { PAGES_MAX };
        ensure!(pages <= most, "{pages} pages: {}\n{plan:#}", statement.text);
        explained.push(StatementPlan { words: (*words).to_owned(), pages, ms });
    }
    Ok(explained)
}

/// Plans a statement without executing it. Utility statements have no plan.
async fn planned(
    connection: &mut PgConnection,
    statement: &SqlStatement,
    large: &[String],
) -> Result<()> {
    let verbs = ["select", "insert", "update", "delete", "with", "--"];
    if !verbs.iter().any(|verb| statement.line.starts_with(verb)) {
        return Ok(());
    }
    run(connection, &format!("prepare planned as {}", statement.text)).await?;
    let count: i32 = sqlx::query_scalar(
        "select cardinality(parameter_types) from pg_prepared_statements where name = 'planned'",
    )
    .fetch_one(&mut *connection)
    .await?;
    let values = vec!["null"; usize::try_from(count)?].join(", ");
    let values = if values.is_empty() { values } else { format!("({values})") };
    let asked = format!("explain (format json) execute planned {values}");
    let plan = answer(connection, &asked).await?;
    run(connection, "deallocate planned").await?;
    unread(&plan[0]["Plan"], large).with_context(|| format!("{}\n{plan:#}", statement.text))
}

/// Returns the plan of a statement that was executed and rolled back, and its milliseconds: of the second execution, when its
/// pages are cached.
async fn carried_out(
    connection: &mut PgConnection,
    statement: &SqlStatement,
    values: &str,
) -> Result<(Value, f64)> {
    // Lists of runs have custom plans.
    let is_list = is_list(statement);
    let mode = if is_list { "force_custom_plan" } else { "force_generic_plan" };
    run(connection, &format!("set plan_cache_mode = {mode}")).await?;
    run(connection, &format!("prepare asked as {}", statement.text)).await?;
    let values = if values.is_empty() { String::new() } else { format!("({values})") };
    let asked = format!("explain (analyze, buffers, format json) execute asked {values}");
    let mut plan = Value::Null;
    for _ in 0..2 {
        run(connection, "begin").await?;
        plan = answer(connection, &asked).await.with_context(|| statement.text.clone())?;
        run(connection, "rollback").await?;
    }
    run(connection, "deallocate asked").await?;
    let ms = plan[0]["Execution Time"].as_f64().context("a time")?;
    Ok((plan[0]["Plan"].take(), ms))
}

/// Checks that a plan does not scan a large table sequentially.
fn unread(plan: &Value, large: &[String]) -> Result<()> {
    let is_scan = plan["Node Type"].as_str().is_some_and(|node| node.contains("Seq Scan"));
    let table = plan["Relation Name"].as_str().unwrap_or_default();
    ensure!(
        !is_scan || !large.iter().any(|large| large == table),
        "`{table}` is read from its begin"
    );
    for below in plan["Plans"].as_array().into_iter().flatten() {
        unread(below, large)?;
    }
    Ok(())
}

/// Returns the pages that a plan has read.
fn pages(plan: &Value) -> u64 {
    let of = |key: &str| plan[key].as_u64().unwrap_or(0);
    of("Shared Hit Blocks") + of("Shared Read Blocks")
}

impl KnownValues {
    async fn find(connection: &mut PgConnection) -> Result<Self> {
        let row = sqlx::query(
            "select
                 (select id::text from runs where project = 'shop' and verdict is not null order by id limit 1 offset 1000),
                 (select encode(trace_id, 'hex') from runs where project = 'shop' and verdict is not null
                  order by id limit 1 offset 1000),
                 (select id::text from open_runs where epoch = 1 and trace_id is null order by id limit 1),
                 (select id::text from suite_runs where project = 'shop' order by id limit 1 offset 10),
                 (select (lpad(to_hex(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint - 2592000000), 12, '0')
                     || repeat('0', 20))::uuid::text from runs where project = 'shop' order by id desc limit 1)",
        )
        .fetch_one(connection)
        .await?;
        let of = |at: usize| row.get::<String, _>(at);
        Ok(Self(vec![
            ("{run}", format!("'{}'::uuid", of(0))),
            ("{trace}", format!("'\\x{}'", of(1))),
            ("{open}", format!("'{}'::uuid", of(2))),
            ("{suite}", format!("'{}'::uuid", of(3))),
            // 30 days before the newest run: the first 48 bits are its milliseconds.
            ("{recent}", format!("'{}'::uuid", of(4))),
            ("{new}", "gen_random_uuid()".to_owned()),
            ("{first}", "'00000000-0000-0000-0000-000000000000'".to_owned()),
            ("{last}", "'ffffffff-ffff-ffff-ffff-ffffffffffff'".to_owned()),
        ]))
    }

    fn fill(&self, values: &str) -> String {
        self.0.iter().fold(values.to_owned(), |values, (name, value)| values.replace(name, value))
    }
}

/// Returns the tables that have many rows.
async fn large(connection: &mut PgConnection) -> Result<Vec<String>> {
    let tables = "select relname::text from pg_class where relkind = 'r' and reltuples >= $1";
    Ok(sqlx::query_scalar(tables).bind(LARGE_ROWS).fetch_all(connection).await?)
}

async fn run(connection: &mut PgConnection, text: &str) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(text.to_owned()))
        .execute(connection)
        .await
        .with_context(|| text.to_owned())?;
    Ok(())
}

async fn answer(connection: &mut PgConnection, text: &str) -> Result<Value> {
    let row = sqlx::raw_sql(AssertSqlSafe(text.to_owned())).fetch_one(connection).await?;
    // The simple query protocol returns text.
    Ok(serde_json::from_str(row.try_get::<&str, _>(0).or_else(|_| row.try_get_unchecked(0))?)?)
}
