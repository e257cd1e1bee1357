//! `nats`: the bus over which several servers share spans.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use bus::{Login, STREAM_SLOTS, StreamLimits};
use model::Secret;
use source::{Diagnostics, Fields, Item};

/// The bus over which several servers share spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nats {
    /// The URLs of its nodes.
    pub servers: Vec<String>,
    /// How this server authenticates.
    pub login: Login,
    /// A file with the certificates of the authorities to trust.
    pub ca: Option<PathBuf>,
    /// The beginning of all subjects and names of streams.
    pub prefix: String,
    /// The bounds of a stream.
    pub limits: StreamLimits,
    /// Whether NATS writes to disk before it acknowledges.
    pub is_synced: bool,
}

/// All slots, in streams.
const STREAMS_MAX: u16 = u16::MAX / STREAM_SLOTS;

pub(super) fn read(root: &mut Fields<'_>, found: &Diagnostics) -> Option<Nats> {
    const BYTES: RangeInclusive<u64> = 1 << 20..=1 << 50;
    const AGE: RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(86_400);
    let mut fields = root.table("nats")?;
    let servers = fields.require("endpoint").and_then(|item| servers(&item));
    let login = login(&mut fields, found);
    let bytes_max = fields.take("maxBytes").and_then(|item| item.size(BYTES)).unwrap_or(1 << 30);
    let age_max = fields.take("maxAge").and_then(|item| age(&item, &AGE));
    let prefix = fields.take("prefix").and_then(|item| prefix(&item));
    let ca = fields.string("ca").map(PathBuf::from);
    let streams = fields.integer("streams", 1..=STREAMS_MAX).unwrap_or(1);
    let replicas = fields.integer("replicas", 1..=5).unwrap_or(3);
    let is_synced = fields.boolean("synced").unwrap_or(false);
    fields.finish();
    Some(Nats {
        servers: servers?,
        login,
        ca,
        prefix: prefix.unwrap_or_else(|| "qualitytrace".to_owned()),
        limits: StreamLimits {
            bytes_max: i64::try_from(bytes_max).unwrap_or(i64::MAX),
            age_max: age_max.unwrap_or(Duration::from_secs(900)),
            replicas,
            streams,
        },
        is_synced,
    })
}

/// Parses the URLs of the nodes, separated by commas.
fn servers(item: &Item<'_>) -> Option<Vec<String>> {
    let text = item.string()?;
    let urls: Vec<_> = text.split(',').map(|url| url.trim().to_owned()).collect();
    let is_nats = |url: &String| {
        let scheme = ["nats://", "tls://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        // A password in a URL would be in logs.
        scheme.is_some_and(|rest| !rest.is_empty() && !rest.contains('@'))
    };
    if !urls.iter().all(is_nats) {
        item.misfit(
            "URLs such as `nats://nats-1:4222,nats://nats-2:4222`, without a password, which has a key of its own",
        );
        return None;
    }
    Some(urls)
}

fn prefix(item: &Item<'_>) -> Option<String> {
    let text = item.string()?;
    let is_word = !text.is_empty()
        && text.len() <= 32
        && text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-');
    if !is_word {
        item.misfit("up to 32 lower-case letters, digits and hyphens");
    }
    is_word.then(|| text.to_owned())
}

fn age(item: &Item<'_>, range: &RangeInclusive<Duration>) -> Option<Duration> {
    let age = item.duration()?;
    let fits = range.contains(&age);
    if !fits {
        item.misfit(&format!("a duration from {:?} to {:?}", range.start(), range.end()));
    }
    fits.then_some(age)
}

/// Parses the login: at most one of its forms.
fn login(fields: &mut Fields<'_>, found: &Diagnostics) -> Login {
    let (user, password) = (fields.take("user"), fields.take("password"));
    let (nkey, credentials) = (fields.take("nkey"), fields.take("credentials"));
    let given = [user.as_ref(), nkey.as_ref(), credentials.as_ref()];
    if let [_, second, ..] = given.into_iter().flatten().collect::<Vec<_>>().as_slice() {
        let words = "a second way to log in to NATS";
        let help = "choose one: `user` with `password`, `nkey` or `credentials`";
        found.push(found.error(second.head(), words).help(help));
    }
    let secret = |item: &Item<'_>| item.string().map(Secret::new);
    match (user, password) {
        (Some(name), Some(password)) => {
            let (name, password) = (name.string(), secret(&password));
            if let (Some(name), Some(password)) = (name, password) {
                return Login::User { name: name.to_owned(), password };
            }
        }
        (Some(alone), None) => {
            found.push(found.error(alone.head(), "`nats.user` needs `nats.password` beside it"));
        }
        (None, Some(alone)) => {
            found.push(found.error(alone.head(), "`nats.password` needs `nats.user` beside it"));
        }
        (None, None) => {}
    }
    if let Some(seed) = nkey.as_ref().and_then(secret) {
        return Login::NKey(seed);
    }
    let path = credentials.and_then(|item| item.string().map(PathBuf::from));
    path.map_or(Login::Anonymous, Login::Credentials)
}
