//! Low-priority threads: they compute for long, while other threads serve requests.

/// The increment of the `nice` value of a low-priority thread: it gets a third of the CPU share of a normal one.
#[cfg(target_os = "linux")]
const NICE_MORE: i32 = 5;
/// The maximum `nice` value.
#[cfg(target_os = "linux")]
const NICE_MAX: i32 = 19;

/// Lowers the priority of this thread within the process, for the rest of its life. Only Linux has priorities of single
/// threads; on other systems all threads are equal.
pub fn give_way() {
    #[cfg(target_os = "linux")]
    {
        thread_local! {
            static HAS_GIVEN_WAY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        if !HAS_GIVEN_WAY.replace(true) {
            // Added to the value that the process was started with. If it is not permitted, the thread keeps its priority.
            if let Ok(nice) = rustix::process::getpriority_process(None) {
                rustix::process::setpriority_process(None, (nice + NICE_MORE).min(NICE_MAX)).ok();
            }
        }
    }
}
