//! The short forms of `cargo xtask prove upgrade` and `prove release-upgrade`, and servers that are too old.

use std::path::Path;

use anyhow::{Context, Result};
use bench::{
    parts::{Database, Server},
    table,
    upgrade::{self, UpgradeLoad, Versions, next_version_beside},
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_upgraded_one_after_the_other_and_nothing_is_lost() -> Result<()> {
    let old = Path::new(BINARY);
    let new = next_version_beside(old)?;
    let load = UpgradeLoad { runs_per_second: 3, seconds: 0, nodes: 1 };
    let upgraded = upgrade::play(Versions { old, new: &new }, load).await?;
    let table = table::render("upgrade", &upgraded.rows());
    assert!(upgraded.is_right(), "{table}\n{:#?}", upgraded.reasons);
    assert!(upgraded.accepted > 30 && upgraded.replaced.len() == 6, "{table}");
    Ok(())
}

/// The short form of `cargo xtask prove release-upgrade`, whose old version is the last release.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_read_by_the_next_version_and_again_by_this_one() -> Result<()> {
    let this = Path::new(BINARY);
    let upgraded = upgrade::release::play(this, &next_version_beside(this)?).await?;
    let table = table::render("release-upgrade", &upgraded.rows());
    assert!(upgraded.is_right(), "{table}\n{upgraded:#?}");
    assert!(upgraded.rolled_back.is_some() && upgraded.read > 100, "{table}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_migrated_while_it_is_read_and_written() -> Result<()> {
    let migrated = upgrade::migrate(20_000).await?;
    let table = table::render("migration", &migrated.rows());
    assert!(migrated.is_right() && migrated.statements > 100, "{table}");
    assert!(migrated.open[0] > 1000 && !migrated.excluded.is_zero(), "{table}");
    Ok(())
}

/// The next version starts, and this one after it; once a later one is required, this one ends with the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_too_old_ends_with_the_reason() -> Result<()> {
    let database = Database::create("too_old").await?;
    let configuration = database.section()?;
    let start =
        async |binary: &Path| Server::start_with(binary, &configuration, "127.0.0.1:0").await;
    let new = start(&next_version_beside(Path::new(BINARY))?).await?;
    new.terminate().await?.context("it ended in order")?;
    let old = start(Path::new(BINARY)).await?;
    // A migration that this version would misread waits until its servers have ended.
    let require = "select require_schema(9999)";
    let error = database.execute(require).await.expect_err("it waits");
    assert!(
        error.to_string().contains("once the servers of older versions have ended"),
        "{error:#}"
    );
    old.terminate().await?.context("it ended in order")?;
    database.execute(require).await?;
    let refused = start(Path::new(BINARY)).await.expect_err("refused").to_string();
    for words in
        ["exit status: 2", "this version is too old for the database", "require migration 9999"]
    {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    database.remove().await
}
