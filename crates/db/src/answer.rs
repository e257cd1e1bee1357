//! Storage of responses and large outcomes: compressed where they are large. A response is sealed until the verdict is stored.
//!
//! Both are encoded and decoded as a stream: as JSON a body may be six times as large, and no buffer holds that. Without secret
//! keys a response is stored unsealed.

use std::io::{self, BufReader, BufWriter, Write};

use model::{Answer, Outcome, Overtaken, Progress, Project, RunId};
use serde::{Serialize, de::DeserializeOwned};
use sqlx::types::Json;

use crate::{
    Db, DbError, RunLease,
    run::{json, read},
    trace::{LEVEL, aside},
};

/// The largest body, in bytes, that is written uncompressed into its row.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// The first byte of a response that is not sealed; bytes that [`crate::SecretKeys`] sealed begin with another one.
pub(crate) const UNSEALED: u8 = 0;
/// The encoding of a response: plain JSON, or compressed JSON.
const JSON: u8 = 0;
const ZSTD: u8 = 1;

/// An outcome in the form in which it is written to the database.
pub(crate) struct StoredOutcome {
    /// The complete outcome, or the outcome without its response.
    pub(crate) json: String,
    /// The complete outcome, compressed, where `json` lacks the response.
    pub(crate) zstd: Option<Vec<u8>>,
}

impl StoredOutcome {
    pub(crate) async fn of(run: RunId, outcome: &Outcome) -> Result<Self, DbError> {
        if !is_large(outcome.answer.as_ref()) {
            return Ok(Self { json: json(run, "outcome", outcome)?, zstd: None });
        }
        let whole = outcome.clone();
        let rest = Outcome { answer: None, ..outcome.clone() };
        let zstd = aside(move || compress(&whole)).await;
        let zstd = zstd.map_err(|error| unwritable(run, "outcome", &error))?;
        Ok(Self { json: json(run, "outcome", &rest)?, zstd: Some(zstd) })
    }
}

/// Decodes the outcome of a row.
pub(crate) async fn outcome(
    run: RunId,
    json: Option<String>,
    zstd: Option<Vec<u8>>,
) -> Result<Option<Outcome>, DbError> {
    match (zstd, json) {
        (Some(zstd), _) => {
            let outcome = aside(move || decompress(&zstd)).await;
            Ok(Some(read(run, outcome)?))
        }
        (None, json) => json.map(|json| read(run, serde_json::from_str(&json))).transpose(),
    }
}

impl Db {
    /// Returns the complete outcome of a run: its response may have many megabytes.
    pub async fn outcome(&self, project: &Project, run: RunId) -> Result<Option<Outcome>, DbError> {
        let row = sqlx::query!(
            "select outcome::text as outcome, outcome_zstd, overtaken as \"overtaken: Json<Overtaken>\"
             from runs where project = $1 and id = $2",
            project.as_str(),
            run.as_uuid(),
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let Some(row) = row else { return Ok(None) };
        let outcome = outcome(run, row.outcome, row.outcome_zstd).await?;
        let overtaken = row.overtaken.map(|Json(overtaken)| overtaken);
        Ok(outcome.map(|outcome| Outcome { overtaken, ..outcome }))
    }

    /// Returns how far an earlier owner of a run came, with the response that it recorded.
    pub async fn progress(&self, taken: &RunLease) -> Result<Progress, DbError> {
        let Some(attempt) = taken.progress.attempt().filter(|_| taken.answer_bytes.is_some())
        else {
            return Ok(taken.progress.clone());
        };
        let run = taken.run_id;
        let row = sqlx::query!(
            "select answer_sealed from open_runs where id = $1 and epoch = $2",
            run.as_uuid(),
            taken.epoch,
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(error))?
        .ok_or(DbError::Fenced { run, epoch: taken.epoch })?;
        match row.answer_sealed {
            Some(sealed) => Ok(Progress::Answered(attempt, self.open_answer(run, sealed).await?)),
            None => Ok(taken.progress.clone()),
        }
    }

    /// Encodes a response in the form that is sealed. The same response always has the same form.
    pub(crate) async fn answer_form(
        &self,
        run: RunId,
        answer: &Answer,
    ) -> Result<Vec<u8>, DbError> {
        if !is_large(Some(answer)) {
            return Ok([&[JSON][..], json(run, "answer", answer)?.as_bytes()].concat());
        }
        let answer = answer.clone();
        let form = move || Ok([&[ZSTD][..], &compress(&answer)?].concat());
        aside(form).await.map_err(|error| unwritable(run, "answer", &error))
    }

    pub(crate) fn seal_answer(&self, run: RunId, form: &[u8]) -> Result<Vec<u8>, DbError> {
        let sealed = self.secrets.seal_bytes(form, &place(run), || what(run))?;
        Ok(sealed.unwrap_or_else(|| [&[UNSEALED][..], form].concat()))
    }

    /// Returns the form that was sealed.
    pub(crate) fn open_form(&self, run: RunId, sealed: &[u8]) -> Result<Vec<u8>, DbError> {
        match sealed.split_first() {
            Some((&UNSEALED, form)) => Ok(form.to_vec()),
            _ => self.secrets.open_bytes(sealed, &place(run), || what(run))?.ok_or_else(|| {
                let why = "the key that sealed it is not among `secrets.keys`";
                DbError::corrupt(what(run), why)
            }),
        }
    }

    async fn open_answer(&self, run: RunId, sealed: Vec<u8>) -> Result<Answer, DbError> {
        let form = self.open_form(run, &sealed)?;
        match form.split_first() {
            Some((&JSON, json)) => read(run, serde_json::from_slice(json)),
            Some((&ZSTD, _)) => read(run, aside(move || decompress(&form[1..])).await),
            _ => Err(DbError::corrupt(what(run), "it is neither JSON nor compressed")),
        }
    }
}

fn is_large(answer: Option<&Answer>) -> bool {
    answer.is_some_and(|answer| answer.body_len() > SMALL_BYTES_MAX)
}

/// The associated data under which a response is sealed.
fn place(run: RunId) -> Vec<u8> {
    format!("run/{run}/answer").into_bytes()
}

fn what(run: RunId) -> String {
    format!("the answer of run `{run}`")
}

fn unwritable(run: RunId, what: &'static str, error: &io::Error) -> DbError {
    DbError::Unwritable { run, what, reason: error.to_string() }
}

fn compress(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut packed = BufWriter::new(zstd::Encoder::new(Vec::new(), LEVEL)?);
    serde_json::to_writer(&mut packed, value)?;
    packed.flush()?;
    packed.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

fn decompress<T: DeserializeOwned>(packed: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_reader(BufReader::new(zstd::Decoder::with_buffer(packed)?))?)
}
