//! Decides which failed logins get a row in the audit log.
//!
//! Any client may request the end of a login that never began, as often as a connection allows. So the rows of failed logins
//! are bounded, per address and in total, and the next row states how many were omitted. Every successful login has a row:
//! it needs a person that the identity provider knows. Deliberately absent: refusing logins. A bound on rows must not become
//! a way to lock others out.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use drivers::connections;

use super::rate_limit::RateLimiter;

/// The maximum number of rows a minute for one address, or one IPv6 network.
const BY_ADDRESS_MAX: u32 = 5;
/// The maximum number of rows a minute for all addresses.
const ALL_MAX: u32 = 30;
const MINUTE: Duration = Duration::from_secs(60);

/// The counters of failed logins.
#[derive(Debug)]
pub(crate) struct LoginFailures {
    by_address: RateLimiter<IpAddr>,
    all: RateLimiter<()>,
    /// The number of failed logins without a row since the last row.
    omitted: AtomicU64,
}

impl Default for LoginFailures {
    fn default() -> Self {
        Self {
            by_address: RateLimiter::within(MINUTE, BY_ADDRESS_MAX),
            all: RateLimiter::within(MINUTE, ALL_MAX),
            omitted: AtomicU64::new(0),
        }
    }
}

impl LoginFailures {
    /// Counts a failed login from an address. If it gets a row, returns how many failed logins before it got none.
    pub(crate) fn count(&self, address: IpAddr) -> Option<u64> {
        let is_noted =
            self.by_address.count(connections::peer(address)).is_ok() && self.all.count(()).is_ok();
        match is_noted {
            true => Some(self.omitted.swap(0, Ordering::Relaxed)),
            false => {
                self.omitted.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::time::advance;

    use super::{ALL_MAX, BY_ADDRESS_MAX, LoginFailures, MINUTE};

    fn address(last: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + last).into()
    }

    #[tokio::test(start_paused = true)]
    async fn rows_of_failed_logins_are_bounded_by_address_and_in_all() {
        let failures = LoginFailures::default();
        let noted = |last: u32| failures.count(address(last)).is_some();
        assert_eq!((0..100).filter(|_| noted(1)).count() as u32, BY_ADDRESS_MAX);
        assert_eq!(failures.count(address(2)), Some(95), "the next row states the rest");
        let of_others = (3..1000).filter(|last| noted(*last)).count() as u32;
        assert_eq!(of_others, ALL_MAX - BY_ADDRESS_MAX - 1);
        advance(MINUTE / ALL_MAX).await;
        assert_eq!(failures.count(address(2000)), Some(997 - u64::from(of_others)));
        advance(MINUTE).await;
        assert_eq!(failures.count(address(1)), Some(0));
    }
}
