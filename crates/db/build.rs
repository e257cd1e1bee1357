//! Tells cargo that the migrations are part of this crate: `sqlx::migrate!` reads a folder that it would not watch.

fn main() {
    println!("cargo::rerun-if-changed=migrations");
}
