//! Every kind of trigger, with the same behaviours.

use std::{collections::BTreeMap, sync::atomic::Ordering, time::Duration};

use drivers::trigger::Triggers;
use model::{Answer, HttpRequest, Propagator, Request, Tls, Verify};

use crate::{
    certificates::{Authority, Flaw},
    firing::{TRACE, get, triggers},
    proxy::Proxy,
    server::Server,
};

/// The behaviour of the triggered system.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    /// It responds with the request that it received.
    Tells,
    /// It does not respond.
    Stalls,
    /// It responds with more than the limit.
    Overflows,
}

/// A kind of trigger.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) triggers: Triggers,
    kind: Kind,
}

enum Kind {
    Http(Http),
    #[cfg(unix)]
    Exec(exec::Exec),
    TraceId,
}

struct Http {
    server: Server,
    url: String,
    tls: Tls,
    _proxy: Option<Proxy>,
}

/// The path to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Road {
    Direct,
    Proxied,
}

impl Way {
    /// Returns all kinds.
    pub(crate) async fn all() -> Vec<Self> {
        let authority = Authority::make("ours");
        vec![
            Self::http("http", None, Road::Direct).await,
            Self::http("https", Some((&authority, "http/1.1")), Road::Direct).await,
            Self::http("https, HTTP/2", Some((&authority, "h2")), Road::Direct).await,
            Self::http("http, passed on", None, Road::Proxied).await,
            Self::http("https, by tunnel", Some((&authority, "http/1.1")), Road::Proxied).await,
            Self::http("HTTP/2, by tunnel", Some((&authority, "h2")), Road::Proxied).await,
            #[cfg(unix)]
            exec::way("exec, words"),
            #[cfg(unix)]
            exec::way("exec, line"),
            Self { name: "traceid", triggers: triggers(&[]), kind: Kind::TraceId },
        ]
    }

    async fn http(name: &'static str, tls: Option<(&Authority, &str)>, road: Road) -> Self {
        // This name does not exist: only a proxy can resolve it.
        let host = if road == Road::Proxied { "shop.test" } else { "localhost" };
        let (server, scheme) = match tls {
            None => (Server::plain().await, "http"),
            Some((authority, protocol)) => {
                let shown = authority.sign(host, Flaw::None).server(&[protocol], None);
                (Server::tls(shown).await, "https")
            }
        };
        let proxy = match road {
            Road::Direct => None,
            Road::Proxied => Some(Proxy::start(None, None).await),
        };
        let address = proxy.as_ref().map(|proxy| proxy.address.to_string()).unwrap_or_default();
        let verify = tls.map_or(Verify::System, |(authority, _)| Verify::Ca(authority.pem()));
        let url = server.url(scheme, host, "");
        let tls = Tls { verify, ..Tls::default() };
        let kind = Kind::Http(Http { server, url, tls, _proxy: proxy });
        Self { name, triggers: triggers(&[("ALL_PROXY", &address)]), kind }
    }

    /// Whether it fires anything at all.
    pub(crate) fn fires(&self) -> bool {
        !matches!(self.kind, Kind::TraceId)
    }

    pub(crate) fn request(&self, does: Does, timeout: Duration, forms: &[Propagator]) -> Request {
        match &self.kind {
            Kind::Http(http) => Request::Http(HttpRequest {
                timeout,
                propagation: forms.to_vec(),
                tls: http.tls.clone(),
                ..get(&format!("{}{}", http.url, path(does)))
            }),
            #[cfg(unix)]
            Kind::Exec(exec) => exec.request(does, timeout, forms),
            Kind::TraceId => Request::TraceId(TRACE.parse().expect("an id")),
        }
    }

    /// Returns how often it was fired.
    pub(crate) fn fired(&self) -> usize {
        match &self.kind {
            Kind::Http(http) => http.server.requests().len(),
            #[cfg(unix)]
            Kind::Exec(exec) => exec.groups().len(),
            Kind::TraceId => 0,
        }
    }

    /// Returns the number of remaining connections or processes.
    pub(crate) fn alive(&self) -> usize {
        match &self.kind {
            Kind::Http(http) => http.server.seen.open.load(Ordering::SeqCst),
            #[cfg(unix)]
            Kind::Exec(exec) => exec.alive(),
            Kind::TraceId => 0,
        }
    }

    /// Returns the headers that the system received, with names in lower case.
    pub(crate) fn told(&self, answer: &Answer) -> BTreeMap<String, String> {
        let (text, joint) = match answer {
            Answer::Response(response) => (response.body.as_bytes(), ": "),
            Answer::Exit(exit) => (exit.stdout.as_bytes(), "="),
            answer => panic!("{}: {answer:?}", self.name),
        };
        let text = String::from_utf8_lossy(text);
        let pairs = text.lines().filter_map(|line| line.split_once(joint));
        let named = |name: &str| name.to_ascii_lowercase().replace('_', "-");
        pairs.map(|(name, value)| (named(name), value.to_owned())).collect()
    }
}

fn path(does: Does) -> &'static str {
    match does {
        Does::Tells => "/tells",
        Does::Stalls => "/stalls",
        Does::Overflows => "/overflows",
    }
}

#[cfg(unix)]
mod exec {
    use std::{fs, time::Duration};

    use model::{Command, ExecRequest, Propagator, Request};
    use rustix::process::{Pid, test_kill_process_group};

    use super::{Does, Kind, Way};
    use crate::firing::triggers;

    /// Programs that write their process group into the folder where they run.
    pub(super) struct Exec {
        folder: tempfile::TempDir,
        is_line: bool,
    }

    pub(super) fn way(name: &'static str) -> Way {
        let folder = tempfile::tempdir().expect("a folder");
        let kind = Kind::Exec(Exec { folder, is_line: name.ends_with("line") });
        Way { name, triggers: triggers(&[("PATH", "/usr/bin:/bin")]), kind }
    }

    impl Exec {
        pub(super) fn request(
            &self,
            does: Does,
            timeout: Duration,
            forms: &[Propagator],
        ) -> Request {
            let then = match does {
                Does::Tells => "env",
                Does::Stalls => "sleep 1000 & sleep 1000",
                Does::Overflows => "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done",
            };
            let line = format!("echo $$ >> groups; {then}");
            let command = match self.is_line {
                true => Command::Line(line),
                false => Command::Words {
                    program: "sh".to_owned(),
                    arguments: vec!["-c".to_owned(), line],
                },
            };
            Request::Exec(ExecRequest {
                command,
                env: Vec::new(),
                workdir: Some(self.folder.path().display().to_string()),
                timeout,
                propagation: forms.to_vec(),
            })
        }

        pub(super) fn groups(&self) -> Vec<Pid> {
            let written = fs::read_to_string(self.folder.path().join("groups")).unwrap_or_default();
            let group = |line: &str| Pid::from_raw(line.parse().expect("a number")).expect("not 0");
            written.lines().map(group).collect()
        }

        pub(super) fn alive(&self) -> usize {
            let groups = self.groups().into_iter();
            groups.filter(|group| test_kill_process_group(*group).is_ok()).count()
        }
    }
}
