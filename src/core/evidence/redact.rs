//! Masks what a text says about people and machines before it is copied on.

use serde::Serialize;

/// A text without personal details, and what was masked in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Redacted {
    /// The text.
    pub text: String,
    /// What was masked, each kind with how often: `user`, `host`, `path`, `pid`, `ip`, `uuid`, `secret`.
    pub masked: Vec<(&'static str, u64)>,
}

impl Redacted {
    fn mask(&mut self, kind: &'static str, with: &str) {
        self.text.push_str(with);
        match self.masked.iter_mut().find(|(k, _)| *k == kind) {
            Some((_, n)) => *n += 1,
            None => self.masked.push((kind, 1)),
        }
    }
}

/// `text` with host names, user names, process ids, addresses, paths, UUIDs and access tokens masked; figures, model
/// names and the file names of tracebacks stay.
///
/// ```
/// use oom_ledger_core::evidence::redact;
/// let masked = redact("(EngineCore pid=812) File \"/home/ann/job/train.py\", line 7");
/// assert_eq!(masked.text, "(EngineCore pid=<pid>) File \"<path>/train.py\", line 7");
/// ```
pub fn redact(text: &str) -> Redacted {
    let mut out = Redacted::default();
    for line in text.split_inclusive('\n') {
        let rest = host_prefix(line, &mut out);
        words(rest, &mut out);
    }
    out
}

/// Marks between words; a path, an address or a UUID has none of them.
fn is_mark(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '<' | '>' | '=')
}

fn words(line: &str, out: &mut Redacted) {
    let mut before = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find(is_mark).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        one(word, &before, out);
        let mark = tail.chars().next().map_or(0, char::len_utf8);
        let (mark, next) = tail.split_at(mark);
        out.text.push_str(mark);
        if !word.is_empty() {
            word.clone_into(&mut before);
        }
        rest = next;
    }
}

/// Words before a process id.
const PID: &[&str] = &["pid", "Process", "process", "PID", "pid:", "PID:", "tid", "ppid"];

fn one(word: &str, before: &str, out: &mut Redacted) {
    let core = word.trim_end_matches(['.', ':', '!', '?']);
    let tail = word.get(core.len()..).unwrap_or_default();
    let digits = !core.is_empty() && core.bytes().all(|b| b.is_ascii_digit());
    if digits && PID.contains(&before) {
        out.mask("pid", "<pid>");
    } else if secret(core) {
        out.mask("secret", "<secret>");
    } else if let Some(at) = uuid(core) {
        out.text.push_str(core.get(..at).unwrap_or_default());
        out.mask("uuid", "<uuid>");
    } else if is_path(core) {
        path(core, out);
    } else if let Some((user, host)) = core.split_once('@').filter(|(u, h)| name(u) && name(h)) {
        let _ = (user, host);
        out.mask("user", "<user>@<host>");
    } else if !address(core, before, out) && !colons(core, out) {
        out.text.push_str(core);
    }
    out.text.push_str(tail);
}

fn name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

/// Access tokens of hubs and clouds, by their fixed beginnings.
fn secret(word: &str) -> bool {
    const STARTS: &[&str] =
        &["hf_", "sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "AKIA", "nvapi-", "wandb_"];
    word.len() >= 20 && name(word) && STARTS.iter().any(|s| word.starts_with(s))
}

/// Where the UUID starts that ends a word: `GPU-1b2c…`, `MIG-…`, bare.
fn uuid(word: &str) -> Option<usize> {
    let start = word.len().checked_sub(36)?;
    let tail = word.get(start..)?;
    let dashes = [8, 13, 18, 23];
    let hex =
        tail.char_indices().all(|(i, c)| if dashes.contains(&i) { c == '-' } else { c.is_ascii_hexdigit() });
    hex.then_some(start)
}

fn is_path(word: &str) -> bool {
    let unix = word.starts_with('/') && word.matches('/').count() >= 2 && !word.starts_with("//");
    let home = word.starts_with("~/");
    let windows =
        word.get(1..3) == Some(":\\") && word.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    unix || home || windows || word.starts_with("\\\\")
}

/// Only the end of a path stays: below the packages of Python where it is one of them, else the last part.
fn path(word: &str, out: &mut Redacted) {
    for packages in ["site-packages/", "dist-packages/"] {
        if let Some(at) = word.find(packages) {
            out.mask("path", "<path>/");
            out.text.push_str(word.get(at + packages.len()..).unwrap_or_default());
            return;
        }
    }
    let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
    out.mask("path", "<path>");
    // A last part without an ending may be a user's or a machine's name.
    if last.contains('.') {
        out.text.push('/');
        out.text.push_str(last);
    }
}

/// An IPv4 address, alone or with a port; four numbers that a version has are none.
fn address(word: &str, before: &str, out: &mut Redacted) -> bool {
    let (host, port) = word.split_once(':').unwrap_or((word, ""));
    let host = host.rsplit('/').next().unwrap_or(host);
    let parts: Vec<&str> = host.split('.').collect();
    let numbers = parts.len() == 4 && parts.iter().all(|p| p.parse::<u8>().is_ok());
    let version = before.to_ascii_lowercase().contains("version") || parts.first() == Some(&"0");
    let known = matches!(host, "127.0.0.1" | "0.0.0.0");
    if !numbers || version || known {
        return false;
    }
    let start = word.find(host).unwrap_or(0);
    out.text.push_str(word.get(..start).unwrap_or_default());
    out.mask("ip", "<ip>");
    if !port.is_empty() {
        out.text.push(':');
        out.text.push_str(port);
    }
    true
}

/// `host:pid:tid` as NCCL begins its lines.
fn colons(word: &str, out: &mut Redacted) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    let [host, pid, tid] = parts.as_slice() else { return false };
    let number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let named = host.bytes().any(|b| b.is_ascii_alphabetic()) && name(host) && !host.contains(".py");
    if !(named && number(pid) && number(tid)) {
        return false;
    }
    out.mask("host", "<host>");
    out.mask("pid", ":<pid>:<pid>");
    true
}

/// `Jan 01 10:00:00 node7 unit[812]:` and `srun: error: node7:`: the machine stands at a fixed place.
fn host_prefix<'a>(line: &'a str, out: &mut Redacted) -> &'a str {
    const MONTHS: &[&str] =
        &["Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ", "Dec "];
    let start = if MONTHS.iter().any(|m| line.starts_with(m)) && line.get(6..7) == Some(" ") {
        Some(16)
    } else {
        ["srun: error: ", "slurmstepd: error: "].iter().find(|m| line.starts_with(**m)).map(|m| m.len())
    };
    let Some((head, rest)) = start.and_then(|s| Some((line.get(..s)?, line.get(s..)?))) else { return line };
    let end = rest.find([' ', ':']).unwrap_or(0);
    let (host, rest) = rest.split_at(end);
    if !name(host) || head.starts_with("slurmstepd") && !rest.starts_with(':') {
        return line;
    }
    out.text.push_str(head);
    out.mask("host", "<host>");
    // `unit[812]:` has a process id in brackets.
    if let Some((unit, tail)) = rest.split_once('[')
        && let Some((pid, after)) = tail.split_once("]:")
        && pid.bytes().all(|b| b.is_ascii_digit())
        && unit.len() < 64
    {
        out.text.push_str(unit);
        out.text.push('[');
        out.mask("pid", "<pid>");
        out.text.push_str("]:");
        return after;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn people_and_machines_are_masked_and_figures_stay() {
        for (given, masked) in [
            ("Process 4242 has 2.50 GiB memory in use", "Process <pid> has 2.50 GiB memory in use"),
            ("Oct 21 06:12:11 node7 vllm[812]: started", "Oct 21 06:12:11 <host> vllm[<pid>]: started"),
            ("srun: error: gpu-n17: task 3: Out Of Memory", "srun: error: <host>: task 3: Out Of Memory"),
            ("node7:88:91 [0] NCCL WARN", "<host>:<pid>:<pid> [0] NCCL WARN"),
            ("(RayWorkerWrapper pid=9, ip=10.0.0.7) x", "(RayWorkerWrapper pid=<pid>, ip=<ip>) x"),
            ("vLLM API server version 0.10.1.1", "vLLM API server version 0.10.1.1"),
            ("model='meta-llama/Llama-3.1-8B'", "model='meta-llama/Llama-3.1-8B'"),
            ("File \"/opt/v/lib/python3.12/site-packages/vllm/a.py\"", "File \"<path>/vllm/a.py\""),
            ("at C:\\Users\\ann\\run.py:3", "at <path>/run.py:3"),
            ("cd /home/ann/secret", "cd <path>"),
            ("GPU-1b2c3d4e-0000-1111-2222-333344445555 ok", "GPU-<uuid> ok"),
            ("ann@node7 logged in", "<user>@<host> logged in"),
            ("HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz", "HF_TOKEN=<secret>"),
            ("tried 1.74 GiB, 23.57 GiB total (GPU 0)", "tried 1.74 GiB, 23.57 GiB total (GPU 0)"),
        ] {
            assert_eq!(redact(given).text, masked);
        }
        let masked = redact("pid=1 pid=2 /home/ann/x.py");
        assert_eq!(masked.masked, [("pid", 2), ("path", 1)]);
    }
}
