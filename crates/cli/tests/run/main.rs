//! `qualitytrace run` as a user runs it: the built binary, real processes, real sockets.

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
