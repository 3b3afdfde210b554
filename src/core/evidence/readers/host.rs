//! What kernel, container runtimes, schedulers and sharing shims say when host memory, or a share of a device, ran out.
//!
//! Sources: `mm/oom_kill.c` (`__oom_kill_process`, `dump_oom_summary`) of Linux; Kubernetes' container status;
//! Slurm's `slurmstepd`; `src/ray/raylet` and `python/ray/exceptions.py`; HAMi-core `src/allocator/allocator.c`.

use crate::evidence::fact::Figure;
use crate::evidence::found::Found;
use crate::evidence::number::Unit::{Binary, Bytes, Count, Gib, Kib, Word};
use crate::evidence::rule::{Rule, Take};
use crate::evidence::window::Window;

const KILLED: &[Take] = &[
    Take::after("total_vm", "total-vm:", Kib),
    Take::after("anon_rss", "anon-rss:", Kib),
    Take::after("shmem_rss", "shmem-rss:", Kib),
];

/// Messages.
pub(crate) const RULES: &[Rule] = &[
    Rule::new("oom-kill:constraint=")
        .kind("host_oom")
        .reach(900)
        .one_line()
        .takes(&[Take::after("constraint", "constraint=", Word), Take::after("process", ",task=", Word)]),
    Rule::new("ut of memory: Kill").kind("host_oom").reach(300).takes(KILLED).more(process),
    Rule::new("invoked oom-killer:").kind("host_oom").reach(100),
    Rule::new("oom_reaper: reaped process").reach(20),
    Rule::new("OOMKilled")
        .kind("host_oom")
        .reach(200)
        .unless(&["OOMKilled\": false", "OOMKilled\":false", "OOMKilled: false"])
        .takes(&[
            Take::after("exit_code", "Exit Code:", Count),
            Take::after("exit_code", "exitCode:", Count),
            Take::after("exit_code", "\"exitCode\":", Count),
            Take::after("exit_code", "exit code", Count),
        ]),
    Rule::new("Some of the step tasks have been OOM Killed").kind("host_oom").reach(20),
    Rule::new("oom_kill event in StepId=").kind("host_oom").reach(80),
    Rule::new("Some of your processes may have been killed by the cgroup out-of-memory handler")
        .kind("host_oom")
        .reach(20),
    Rule::new("srun: error:").needs(&["Out Of Memory"]).kind("host_oom").reach(60).one_line(),
    Rule::new("A process of this unit has been killed by the OOM killer").kind("host_oom").reach(20),
    Rule::new("Failed with result 'oom-kill'").kind("host_oom").reach(20),
    Rule::new("Signal 9 (SIGKILL) received by PID").kind("host_oom").reach(40),
    Rule::new("exited with code 137").kind("host_oom").reach(20).takes(&[Take::after(
        "exit_code",
        "with code",
        Count,
    )]),
    Rule::new("exit code 137").kind("host_oom").reach(20).takes(&[Take::after("exit_code", "code", Count)]),
    Rule::new("exit code: 137").kind("host_oom").reach(20).takes(&[Take::after("exit_code", "code:", Count)]),
    Rule::new("running low on memory").kind("ray_oom").reach(400).takes(RAY),
    Rule::new("Bus error").needs(&["insufficient shared memory (shm)"]).kind("shm_full").reach(300),
    Rule::new("insufficient shared memory (shm)").kind("shm_full").reach(40),
    Rule::new("[HAMI-core ERROR").needs(&["OOM"]).kind("hami_oom").reach(200).one_line().more(hami),
    Rule::new("std::bad_alloc").kind("host_alloc_failed").reach(40),
    Rule::new("Cannot allocate memory").kind("host_alloc_failed").reach(40),
];

const RAY: &[Take] = &[
    Take::after("host_used", "ID:", Gib),
    Take::after("host_limit", "GB /", Gib),
    Take::after("host_used", ") was", Binary),
    Take::after("host_limit", "GB /", Binary),
];

/// `Killed process 123 (python3) total-vm:…`.
fn process(window: &Window, found: &mut Found) {
    let end = window.len();
    let Some((_, at)) = window.find("process", 0, end) else { return };
    let Some((Figure::Count(_), number)) = window.figure(at, Count) else { return };
    if window.has("(", number, number + 1)
        && let Some((figure, _)) = window.figure(number + 1, Word)
    {
        found.fact(window, number, "process", figure);
    }
}

/// `Device 0 OOM {n} / {n}`: asked for and allowed, in bytes; near 2^64 the counter went below zero.
fn hami(window: &Window, found: &mut Found) {
    let Some((_, at)) = window.find("OOM", 0, window.len()) else { return };
    if let Some((Figure::Bytes(asked), end)) = window.figure(at, Bytes) {
        if asked < 1 << 50 {
            found.fact(window, at, "tried_to_allocate", Figure::Bytes(asked));
        }
        if window.has("/", end, end + 1)
            && let Some((figure, _)) = window.figure(end + 1, Bytes)
        {
            found.fact(window, end, "total_capacity", figure);
        }
    }
}
