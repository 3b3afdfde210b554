//! What stands before a message on its line.

/// A line taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen<'a> {
    /// What is left.
    pub(crate) rest: &'a str,
    /// Rank.
    pub(crate) rank: Option<u32>,
    /// Time as a number that sorts: year, month, day, hour, minute, second, thousandth.
    pub(crate) time: Option<u64>,
}

/// Takes prefixes off until none is left.
pub(crate) fn strip(line: &str) -> Seen<'_> {
    let mut seen = Seen { rest: line, rank: None, time: None };
    // No real line has more than a dozen; the bound keeps hostile ones cheap.
    for _ in 0..12 {
        let rest = seen.rest.trim_start();
        let taken = quote(rest)
            .or_else(|| bracket(rest, &mut seen))
            .or_else(|| time(rest, &mut seen))
            .or_else(|| level(rest))
            .or_else(|| source(rest))
            .or_else(|| compose(rest))
            .or_else(|| stream(rest))
            .or_else(|| syslog(rest));
        match taken {
            Some(next) => seen.rest = next,
            None => break,
        }
    }
    seen
}

/// Quoted text: `> `, and the `| ` that wraps tables of traceback renderers.
fn quote(text: &str) -> Option<&str> {
    text.strip_prefix("> ").or_else(|| text.strip_prefix("│ ")).or_else(|| text.strip_prefix("\u{1}"))
}

fn number_after(text: &str, marker: &str) -> Option<u32> {
    let rest = text.get(text.find(marker)? + marker.len()..)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.get(..digits)?.parse().ok()
}

/// `[rank0]:`, `[2025-01-01 10:00:00 TP0]`, `(EngineCore_DP0 pid=1)`, `[core.py:708]`, `[TensorRT-LLM][INFO]`,
/// `[  12.345678]`, `[1,0]<stderr>:`.
fn bracket<'a>(text: &'a str, seen: &mut Seen<'a>) -> Option<&'a str> {
    let first = text.bytes().next()?;
    let close = match first {
        b'[' => ']',
        b'(' => ')',
        b'<' => '>',
        _ => return None,
    };
    let end = text.find(close)?;
    let inside = text.get(1..end)?;
    if inside.len() > 96 || !is_tag(inside, first) {
        return None;
    }
    let rank = ["rank", "Rank ", "TP", "default", "RANK "]
        .iter()
        .find_map(|m| number_after(inside, m))
        .or_else(|| mpirun(inside))
        .or_else(|| number_after(inside, "rank="));
    seen.rank = seen.rank.or(rank);
    if seen.time.is_none() {
        seen.time = stamp(inside).map(|(t, _)| t);
    }
    let rest = text.get(end + 1..)?;
    Some(rest.strip_prefix(':').unwrap_or(rest))
}

fn mpirun(inside: &str) -> Option<u32> {
    let (job, rank) = inside.split_once(',')?;
    job.parse::<u32>().ok()?;
    rank.parse().ok()
}

/// Whether the text in a bracket is a tag of a logger and not part of a message.
fn is_tag(inside: &str, open: u8) -> bool {
    let trimmed = inside.trim();
    if open == b'<' {
        return matches!(trimmed, "stderr" | "stdout") || trimmed.bytes().all(|b| b.is_ascii_digit());
    }
    if open == b'(' {
        return trimmed.contains("pid=") || trimmed.starts_with("TP") || trimmed.contains("rank=");
    }
    let words = [
        "rank",
        "Rank ",
        "TensorRT-LLM",
        "TRT-LLM",
        "INFO",
        "WARN",
        "ERROR",
        "DEBUG",
        "default",
        "TP",
        "DP",
        "PP",
        "I",
        "W",
        "E",
        "RANK ",
    ];
    stamp(trimmed).is_some()
        || mpirun(trimmed).is_some()
        || trimmed.parse::<f64>().is_ok()
        || trimmed.contains(".py:")
        || trimmed.contains(".cpp:")
        || trimmed.contains(".cc:")
        || words.iter().any(|w| trimmed.starts_with(w)) && !trimmed.contains("HAMI")
        || trimmed.contains("CUDACachingAllocator")
}

/// A time at the start: ISO, with commas, klog's `I0101 10:00:00.000000 123 file.cc:12]`.
fn time<'a>(text: &'a str, seen: &mut Seen<'a>) -> Option<&'a str> {
    if let Some(rest) = klog(text) {
        return Some(rest);
    }
    let (time, length) = stamp(text)?;
    seen.time = seen.time.or(Some(time));
    let rest = text.get(length..)?;
    Some(rest.trim_start_matches([':', '-', ' ', '|', ';']))
}

fn klog(text: &str) -> Option<&str> {
    let mut bytes = text.bytes();
    let level = matches!(bytes.next()?, b'I' | b'W' | b'E' | b'F');
    let digits = text.get(1..5)?.bytes().all(|b| b.is_ascii_digit());
    if !level || !digits || text.as_bytes().get(5) != Some(&b' ') {
        return None;
    }
    let end = text.find(']').filter(|e| *e < 120)?;
    text.get(end + 1..)
}

/// A time stamp at the start of `text` and its length.
fn stamp(text: &str) -> Option<(u64, usize)> {
    let bytes = text.as_bytes();
    let mut parts: Vec<u64> = Vec::with_capacity(8);
    let mut at = 0;
    while at < bytes.len() && parts.len() < 7 {
        let digits = bytes.get(at..)?.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 || digits > 9 {
            break;
        }
        parts.push(text.get(at..at + digits)?.parse().ok()?);
        at += digits;
        match bytes.get(at) {
            Some(b'-' | b'/' | b':' | b'.' | b',' | b'T') => at += 1,
            // A blank separates date and time only: a digit and a colon must follow.
            Some(b' ') if parts.len() <= 3 && bytes.get(at + 3) == Some(&b':') => at += 1,
            _ => break,
        }
    }
    while bytes.get(at).is_some_and(|b| matches!(b, b'Z' | b'+') || b.is_ascii_digit()) && at < 40 {
        at += 1;
    }
    // `10:00:00`, `01-02 10:00:00`, `2025-01-02 10:00:00`, each with or without parts of a second.
    let colons = text.get(..at)?.bytes().filter(|b| *b == b':').count();
    if colons < 2 || parts.len() < 3 {
        return None;
    }
    let fraction = text.get(..at)?.bytes().any(|b| b == b'.' || b == b',');
    let head = parts.get(..parts.len() - usize::from(fraction))?;
    let mut fields = [0u64; 6];
    for (field, part) in fields.iter_mut().rev().zip(head.iter().rev()) {
        *field = (*part).min(9_999);
    }
    let [year, month, day, hour, minute, second] = fields;
    Some((((((year * 100 + month) * 100 + day) * 100 + hour) * 100 + minute) * 100 + second, at))
}

/// A level and, after it, a source: `INFO 01-01 00:00:00 llm_engine.py:72]`, `WARNING:`, `[I]`.
fn level(text: &str) -> Option<&str> {
    const LEVELS: &[&str] = &["INFO", "WARNING", "WARN", "ERROR", "DEBUG", "CRITICAL", "FATAL"];
    let name = LEVELS.iter().find(|l| text.starts_with(**l))?;
    let rest = text.get(name.len()..)?;
    if !rest.starts_with([':', ' ', '\t', ']']) {
        return None;
    }
    Some(rest.trim_start_matches([':', ' ', '\t', ']']))
}

/// `file.py:72] ` as vLLM's first format has it, after the time.
fn source(text: &str) -> Option<&str> {
    let end = text.find(']').filter(|e| *e < 80)?;
    let head = text.get(..end)?;
    let file =
        head.contains(".py:") && head.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:/".contains(&b));
    file.then(|| text.get(end + 1..)).flatten()
}

/// `service-1  | `: what docker compose puts before a line.
fn compose(text: &str) -> Option<&str> {
    let (name, rest) = text.split_once('|')?;
    let trimmed = name.trim_end();
    let word = !trimmed.is_empty()
        && trimmed.len() < 64
        && trimmed.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/'))
        && trimmed.bytes().any(|b| b.is_ascii_alphabetic())
        && name.ends_with(' ');
    word.then_some(rest)
}

/// `stderr F `: the container runtime interface.
fn stream(text: &str) -> Option<&str> {
    ["stderr F ", "stdout F ", "stderr P ", "stdout P "].iter().find_map(|p| text.strip_prefix(p))
}

/// `Jan 01 10:00:00 host unit[123]: `: journald and syslog.
fn syslog(text: &str) -> Option<&str> {
    const MONTHS: &[&str] =
        &["Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ", "Dec "];
    MONTHS.iter().find(|m| text.starts_with(**m))?;
    let colons = text.get(..18)?.matches(':').count();
    let end = text.find("]: ").or_else(|| text.find("kernel: ").map(|k| k + 5)).filter(|e| *e < 160)?;
    (colons >= 2).then(|| text.get(end + 3..)).flatten()
}

#[cfg(test)]
mod tests {
    use super::strip;

    #[test]
    fn prefixes_come_off_and_ranks_stay() {
        for (line, rest, rank) in [
            ("[rank3]: torch.OutOfMemoryError: CUDA", "torch.OutOfMemoryError: CUDA", Some(3)),
            ("[2025-01-01 10:00:00 TP7] Load weight end.", "Load weight end.", Some(7)),
            ("[2025-01-01 10:00:00 DP0 TP2 EP2] Load", "Load", Some(2)),
            ("INFO 01-01 00:00:00 llm_engine.py:72] # GPU blocks: 7", "# GPU blocks: 7", None),
            ("INFO 08-05 00:00:00 [gpu_worker.py:276] Available", "Available", None),
            ("(EngineCore_DP0 pid=12) INFO 08-05 00:00:00 [a.py:2] Model", "Model", None),
            ("(VllmWorker rank=1 pid=12) INFO 08-05 00:00:00 [a.py:2] Model", "Model", Some(1)),
            ("(Worker_TP3 pid=12) INFO 08-05 00:00:00 [a.py:2] Model", "Model", Some(3)),
            ("(RayWorkerWrapper pid=9, ip=10.0.0.1) ERROR 01-01 00:00:00 w.py:1] Out", "Out", None),
            ("web-1  | INFO:     started", "started", None),
            ("2025-01-01T00:00:00.123456789Z stderr F torch", "torch", None),
            ("Jan 01 10:00:00 node7 kernel: Out of memory", "Out of memory", None),
            ("Jan 01 10:00:00 node7 vllm[812]: CUDA out", "CUDA out", None),
            ("[ 1234.567890] Out of memory: Killed", "Out of memory: Killed", None),
            ("[01/15/2025-10:00:00] [TRT-LLM] [I] Loaded", "Loaded", None),
            ("[TensorRT-LLM][INFO] Loaded engine size: 8 MiB", "Loaded engine size: 8 MiB", None),
            ("[1,4]<stderr>:RuntimeError", "RuntimeError", Some(4)),
            ("I0101 10:00:00.000000 123 gpu.cc:12] OOM", "OOM", None),
            ("> > CUDA out of memory", "CUDA out of memory", None),
            ("[HAMI-core ERROR (pid:1)]: Device 0", "[HAMI-core ERROR (pid:1)]: Device 0", None),
            ("(GPU 0; 7.80 GiB total capacity)", "(GPU 0; 7.80 GiB total capacity)", None),
            ("12 layers", "12 layers", None),
        ] {
            let seen = strip(line);
            assert_eq!((seen.rest.trim_start(), seen.rank), (rest, rank), "{line}");
        }
    }

    #[test]
    fn times_sort() {
        let early = strip("2025-01-01 10:00:00,100 x").time.unwrap();
        let late = strip("2025-01-01 10:00:01,100 x").time.unwrap();
        assert!(early < late);
        let early = strip("INFO 01-02 09:59:59 [a.py:1] x").time;
        assert!(early.is_none() || early < strip("INFO 01-02 10:00:00 [a.py:1] x").time);
    }
}
