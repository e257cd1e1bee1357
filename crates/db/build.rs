//! Makes cargo rebuild this crate when a migration changes: cargo does not watch the folders that `sqlx::migrate!` reads.

fn main() {
    println!("cargo::rerun-if-changed=migrations");
    println!("cargo::rerun-if-changed=next-version");
}
