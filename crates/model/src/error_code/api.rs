//! Pages of errors that a server responds with.
#![expect(non_upper_case_globals, reason = "each page has the name of its code")]

use super::{ErrorPage, page};

pub(super) const InvalidRequest: ErrorPage = page(
    "The request is invalid: a parameter, a header or the body.",
    "A value has another form than the API describes, or a field has a name that it does not know.",
    "Correct what the message names; the API page has the form of each value.",
);
pub(super) const InvalidDocument: ErrorPage = page(
    "A document is invalid.",
    "A key, a selector, an assertion or a value in it is wrong. The message shows each one at its line.",
    "Correct the lines that are shown, and read them again with `qualitytrace check FILE`, which sends nothing.",
);
pub(super) const TooLarge: ErrorPage = page(
    "The request, or its response, is larger than a limit.",
    "The body has more bytes than `server.limits.bodyBytes`, or a trace or list has more than a response may have.",
    "Send less at once: fewer documents, a shorter period. For larger bodies raise `server.limits.bodyBytes`.",
);
pub(super) const RequestTimeout: ErrorPage = page(
    "The request did not arrive in time.",
    "The connection was slow or stopped while the body was sent.",
    "Send it again; if it repeats, look at the network and the proxies between caller and server.",
);
pub(super) const MethodNotAllowed: ErrorPage = page(
    "The path does not support the method.",
    "A request was sent with, say, `POST` where the API has `PUT`.",
    "Use a method of the header `Allow`; the API page lists each path with its methods.",
);
pub(super) const NotAcceptable: ErrorPage = page(
    "The server has no representation that `Accept` allows.",
    "The header `Accept` names only media types that this path does not have.",
    "Leave out `Accept`, or name a media type that the API page lists for the path.",
);
pub(super) const NotFound: ErrorPage = page(
    "What was named does not exist.",
    "The id is wrong, the document or run was deleted or its retention is over, or it is in another project.",
    "List what exists with `qualitytrace list KIND` or `qualitytrace runs list`, and name the project with `--project`.",
);
pub(super) const Conflict: ErrorPage = page(
    "What was named is in a state that forbids this.",
    "It exists already, has ended, or another request changed it first.",
    "Read its state again with `get` or `runs view`, and decide anew.",
);
pub(super) const VersionChanged: ErrorPage = page(
    "The document has another version than the request expects.",
    "It was stored again since it was read: by another person or pipeline.",
    "Read it again, apply the change to the new version, and send that with its version.",
);
pub(super) const KeyUsed: ErrorPage = page(
    "The `Idempotency-Key` belongs to another request.",
    "A key stands for one start of a run, with one test, one version and one set of variables.",
    "Give each new start a key of its own; repeat a key only with the same body.",
);
pub(super) const RunActive: ErrorPage = page(
    "The run has not ended.",
    "A report, a shape or a second judgement needs the verdict.",
    "Wait for it with `qualitytrace runs watch RUN`, and repeat the request then.",
);
pub(super) const Unauthenticated: ErrorPage = page(
    "The request has no valid token or session.",
    "No token was sent, or it was revoked, has expired or belongs to another server.",
    "Get a token from an administrator, and store it with `qualitytrace login`, or give it as `QUALITYTRACE_TOKEN`.",
);
pub(super) const Forbidden: ErrorPage = page(
    "The caller may not do this.",
    "The token's role has fewer rights than the operation needs, or the token does not include the project.",
    "See the rights with `qualitytrace whoami`, and request a token with the role that the message names.",
);
pub(super) const CrossOrigin: ErrorPage = page(
    "The request comes from a web page of another origin, or names another host.",
    "Where access is off, a server accepts requests of its own page and of programs only.",
    "Open the page by the server's own address, or turn access on with `server.auth.mode: on`.",
);
pub(super) const RateLimited: ErrorPage = page(
    "The caller or the project exceeded its rate limit.",
    "More requests a second were sent than `server.limits.requestsPerSecond` allows, or too many invalid tokens.",
    "Wait for the time in `Retry-After`; start runs together with `run --server`, or raise the limit.",
);
pub(super) const Overloaded: ErrorPage = page(
    "The server has as much of this work as it accepts.",
    "Runs wait for workers up to `server.limits.queuedRuns`, or all readers are taken.",
    "Repeat it after `Retry-After`. If it stays, add workers or raise `workers.runs`.",
);
pub(super) const TelemetryBlocked: ErrorPage = page(
    "An exporter cannot deliver the server's own telemetry, so that no new runs are accepted.",
    "The exporter's buffer is full, and it is configured to lose nothing.",
    "Look at `qualitytrace status` for the exporter, and bring its collector back, or give it a larger buffer.",
);
pub(super) const NotReady: ErrorPage = page(
    "The server is not ready.",
    "It starts, stops, or cannot reach its database or NATS.",
    "See why with `qualitytrace status`, and repeat the request when it is ready.",
);
pub(super) const Unavailable: ErrorPage = page(
    "A system that is needed cannot be reached or failed.",
    "The database, NATS, an identity provider or a trace store does not respond as it should.",
    "Mend what the message names, and repeat the command; it may succeed then without any change.",
);
pub(super) const SecretKeyMissing: ErrorPage = page(
    "A document may hold secrets, and there is no key to encrypt them.",
    "`secrets.keys` is empty, so that the server stores no variable sets and no stores with credentials.",
    "Add a key to `secrets.keys`: a name, a colon, and 64 hexadecimal digits such as `openssl rand -hex 32` prints.",
);
pub(super) const SecretKeyLost: ErrorPage = page(
    "A document was encrypted with a key that the configuration does not have.",
    "A key was removed from `secrets.keys` while documents still need it.",
    "Add that key again behind the first; remove it once all documents have been stored anew.",
);
pub(super) const Internal: ErrorPage = page(
    "The program has an error of its own.",
    "Something happened that its authors thought impossible.",
    "Report it with the message and the log around it. A repeated request may succeed.",
);
