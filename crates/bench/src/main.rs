//! `cargo xtask bench NAME`: prints a table, and as its last line JSON.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let measured = match name.as_str() {
        "thread" => bench::thread::measure().await,
        _ => Err(anyhow::anyhow!("there is no bench `{name}`; there is: thread")),
    };
    match measured {
        Ok(rows) => {
            say(&bench::table::render(&name, &rows));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn say(text: &str) {
    println!("{text}");
}
