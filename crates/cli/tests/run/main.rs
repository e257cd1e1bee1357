//! `qualitytrace run` as its user meets it: the built binary, real processes, real sockets.

mod command;
mod ends;
mod flags;
mod learned;
mod overtaken;
mod refusals;
mod reports;
mod retries;
mod stand;
mod suites;
mod watch;
