//! Threads that give way: what they compute takes long, and others answer.

/// How much is added to the `nice` value of a thread that gives way: it has a third of the share of one that does not.
#[cfg(target_os = "linux")]
const NICE_MORE: i32 = 5;
/// The greatest `nice` value.
#[cfg(target_os = "linux")]
const NICE_MAX: i32 = 19;

/// Lets other threads of this process go first, from now on and for as long as this thread lives. Priorities of single threads are
/// Linux's; elsewhere all are equal.
pub fn give_way() {
    #[cfg(target_os = "linux")]
    {
        thread_local! {
            static HAS_GIVEN_WAY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        if !HAS_GIVEN_WAY.replace(true) {
            // Added to what the process was started with. Where it is not allowed, the thread computes as any other.
            if let Ok(nice) = rustix::process::getpriority_process(None) {
                rustix::process::setpriority_process(None, (nice + NICE_MORE).min(NICE_MAX)).ok();
            }
        }
    }
}
