//! Secrets that steps of a suite pass on: sealed with the run that has them as outputs, and with the run that is started with
//! them.
//!
//! Without secret keys the database stores their names and not their values: a step that needs such a value reports that.

use std::collections::BTreeMap;

use model::RunId;

use crate::{
    Db, DbError,
    answer::UNSEALED,
    lease::owned,
    run::{json, read},
};

/// Secrets by name; none where there was no key to seal the value with.
pub type SecretValues = BTreeMap<String, Option<String>>;

impl Db {
    /// Stores the secret outputs of a run, before its verdict.
    pub async fn keep_outputs(
        &self,
        run: RunId,
        epoch: i64,
        outputs: &SecretValues,
    ) -> Result<(), DbError> {
        let sealed = self.seal_values(run, "outputs", outputs)?;
        let written = sqlx::query!(
            "update open_runs set outputs_sealed = $3 where id = $1 and epoch = $2",
            run.as_uuid(),
            epoch,
            sealed,
        )
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        owned(run, epoch, written.rows_affected() > 0)
    }

    pub(crate) fn seal_values(
        &self,
        run: RunId,
        what: &'static str,
        values: &SecretValues,
    ) -> Result<Vec<u8>, DbError> {
        let (text, place) = (json(run, what, values)?, place(run, what));
        let sealed = self.secrets.seal_bytes(text.as_bytes(), &place, || described(run, what))?;
        let names = || values.keys().map(|name| (name.clone(), None)).collect::<SecretValues>();
        sealed.map_or_else(
            || Ok([&[UNSEALED][..], json(run, what, &names())?.as_bytes()].concat()),
            Ok,
        )
    }

    pub(crate) fn open_values(
        &self,
        run: RunId,
        what: &'static str,
        sealed: Option<Vec<u8>>,
    ) -> Result<SecretValues, DbError> {
        let Some(sealed) = sealed else { return Ok(SecretValues::new()) };
        let text = match sealed.split_first() {
            Some((&UNSEALED, text)) => text.to_vec(),
            _ => {
                let opened =
                    self.secrets.open_bytes(&sealed, &place(run, what), || described(run, what))?;
                opened.ok_or_else(|| {
                    let why = "the key that sealed them is not among `secrets.keys`";
                    DbError::corrupt(described(run, what), why)
                })?
            }
        };
        read(run, serde_json::from_slice(&text))
    }
}

fn place(run: RunId, what: &str) -> Vec<u8> {
    format!("run/{run}/{what}").into_bytes()
}

fn described(run: RunId, what: &str) -> String {
    format!("the secret {what} of run `{run}`")
}
