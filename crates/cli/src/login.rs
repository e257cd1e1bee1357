//! `login`: stores a token for a server, after the server has reported the identity of the token.

use std::io::{self, BufRead, Read};

use model::Secret;
use server::config::Environment;

use crate::{
    args::{self, LoginArgs},
    exit::Exit,
    profiles::{self, PROFILE, ServerProfile},
    remote,
    terminal::Terminal,
};

/// The upper bound for the input, in bytes.
const TYPED_MAX: u64 = 4096;

pub(crate) async fn login(
    args: &LoginArgs,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let token = match &args.identity.token {
        Some(token) => token.clone(),
        None => typed(terminal)?,
    };
    let profile = args.identity.profile.as_deref().unwrap_or(PROFILE);
    // The new profile need not exist yet.
    let asked =
        args::Identity { token: Some(token.clone()), profile: None, ca: args.identity.ca.clone() };
    let known = profiles::known(args.server.as_deref(), &asked, environment);
    let known = known.map_err(|error| terminal.refuse(&error))?;
    let known = ServerProfile { token: Some(token.clone()), ..known };
    let me = remote::me(&known).await.map_err(|error| terminal.refuse(&error))?;
    let kept = profiles::keep(profile, &known.url, &token, environment);
    let kept = kept.map_err(|error| terminal.refuse(&error))?;
    terminal.result(&format!(
        "{} knows you as `{}`, {}; kept as profile `{profile}` in {}",
        known.url,
        me.name,
        me.role,
        kept.display()
    ));
    Ok(Exit::Passed)
}

fn typed(terminal: &Terminal) -> Result<Secret, Exit> {
    terminal.line("the token, then Enter (or give it by QUALITYTRACE_TOKEN):");
    let mut line = String::new();
    let read = io::stdin().lock().take(TYPED_MAX).read_line(&mut line);
    match (read, line.trim()) {
        (Ok(_), token) if !token.is_empty() => Ok(Secret::new(token)),
        _ => {
            terminal.line("error: no token: give it by `--token`, QUALITYTRACE_TOKEN or stdin");
            Err(Exit::Refused)
        }
    }
}
