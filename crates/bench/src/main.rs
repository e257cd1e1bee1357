//! `cargo xtask bench NAME`: prints a table, and as its last line JSON.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    // A process of its own for each of what the layout bench compares.
    if let Some(kind) = name.strip_prefix("layout:") {
        return match bench::layout::fill(kind) {
            Ok(bytes) => {
                say(&bytes.to_string());
                ExitCode::SUCCESS
            }
            Err(_) => ExitCode::FAILURE,
        };
    }
    let measured = match name.as_str() {
        "layout" => bench::layout::measure().await,
        "thread" => bench::thread::measure().await,
        _ => Err(anyhow::anyhow!("there is no bench `{name}`; there are: layout, thread")),
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
