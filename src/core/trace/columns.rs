//! Column names: what nvidia-smi and people's own scripts call things.

use super::cell::{Unit, unit};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Time stamp.
    Time,
    /// Card index.
    Index,
    /// A script's own card number.
    Gpu,
    /// Card uuid.
    Uuid,
    /// PCI bus id.
    Bus,
    /// Product name.
    Name,
    /// Process id.
    Pid,
    /// Memory in use; bytes of a bare number.
    Used(u64),
    /// Memory in use, per cent of the card.
    Share,
    /// Memory total.
    Total(u64),
    /// Memory free.
    Free(u64),
    /// Known to be no memory in use, or unknown.
    Other,
}

const MIB: u64 = 1 << 20;

/// The name in lower case without its unit, and the unit of `name [MiB]`, `name (MiB)`, `name_mib`, `name%`.
pub fn split(name: &str) -> (String, Unit) {
    let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '#')).to_lowercase();
    for (open, close) in [('[', ']'), ('(', ')')] {
        if let Some(at) = name.rfind(open)
            && name.ends_with(close)
        {
            let inside = unit(&name[at + 1..name.len() - 1]);
            if inside != Unit::Other {
                return (name[..at].trim_end().to_owned(), inside);
            }
        }
    }
    if let Some(head) = name.strip_suffix('%') {
        return (head.trim_end().to_owned(), Unit::Percent);
    }
    let ends = [
        ("_mib", MIB),
        ("_mb", MIB),
        ("_gib", 1 << 30),
        ("_gb", 1 << 30),
        ("_kib", 1024),
        ("_kb", 1024),
        ("_bytes", 1),
    ];
    for (end, bytes) in ends {
        if let Some(head) = name.strip_suffix(end) {
            return (head.to_owned(), Unit::Bytes(bytes));
        }
    }
    for end in ["_percent", "_pct", "_perc"] {
        if let Some(head) = name.strip_suffix(end) {
            return (head.to_owned(), Unit::Percent);
        }
    }
    (name, Unit::None)
}

/// What the column `name` holds.
pub fn column(name: &str) -> Column {
    let (head, unit) = split(name);
    let head: String =
        head.chars().map(|c| if matches!(c, '.' | ' ' | '-' | '/') { '_' } else { c }).collect();
    let bytes = match unit {
        Unit::Bytes(bytes) => bytes,
        _ => MIB,
    };
    match head.as_str() {
        "timestamp" | "time" | "date" | "datetime" | "ts" | "elapsed_sec" | "elapsed" | "elapsed_s"
        | "time_s" | "time_sec" | "query_time" | "_timestamp" | "timestampus" | "timestamp_us"
        | "relative_time" | "seconds" | "wall_time" | "date_time" | "unix_time" | "epoch" => {
            return Column::Time;
        }
        "_runtime" => return Column::Other,
        "index" | "gpu_index" | "index_gpu" | "gpu_id" | "gpuid" | "gpu_idx" | "device_index" | "idx" => {
            return Column::Index;
        }
        "gpu" | "device" | "card" | "gpu_num" | "device_id" => return Column::Gpu,
        "uuid" | "gpu_uuid" => return Column::Uuid,
        "pci_bus_id" | "gpu_bus_id" | "bus_id" => return Column::Bus,
        "name" | "gpu_name" | "device_name" | "model" => return Column::Name,
        "pid" => return Column::Pid,
        "memoryallocatedbytes" => return Column::Used(1),
        "memoryallocated" => return Column::Share,
        _ => {}
    }
    if head.starts_with("relative_time") {
        return Column::Time;
    }
    let has = |word: &str| head.contains(word);
    let memory = has("mem") || has("vram") || has("fb");
    let never = [
        "util",
        "clock",
        "temp",
        "protected",
        "bar1",
        "retired",
        "remap",
        "ecc",
        "bandwidth",
        "_bw",
        "max_",
        "peak",
        "min_",
        "host",
        "cpu",
        "sys",
        "virt",
        "swap",
        "delta",
        "junction",
        "power",
        "process_mem",
        "rss",
    ];
    if head == "ram" || head.starts_with("ram_") || never.iter().any(|word| has(word)) {
        return Column::Other;
    }
    if matches!(head.as_str(), "used" | "memory" | "mem" | "vram") {
        return if unit == Unit::Percent {
            Column::Share
        } else if head == "used" || unit != Unit::None || head == "vram" {
            Column::Used(bytes)
        } else {
            Column::Other
        };
    }
    if matches!(head.as_str(), "fbusd" | "fb_used") {
        return Column::Used(MIB);
    }
    if matches!(head.as_str(), "total" | "fbttl") {
        return if matches!(unit, Unit::Bytes(_)) || head == "fbttl" {
            Column::Total(bytes)
        } else {
            Column::Other
        };
    }
    if matches!(head.as_str(), "free" | "fbfre") {
        return if matches!(unit, Unit::Bytes(_)) || head == "fbfre" {
            Column::Free(bytes)
        } else {
            Column::Other
        };
    }
    if !memory || has("reserved") {
        return Column::Other;
    }
    if has("percent") || has("pct") || unit == Unit::Percent {
        return if has("used") || has("usage") || head == "memory" || has("alloc") {
            Column::Share
        } else {
            Column::Other
        };
    }
    if has("total") && !has("used") {
        Column::Total(bytes)
    } else if has("free") || has("avail") {
        Column::Free(bytes)
    } else if has("used")
        || has("usage")
        || has("alloc")
        || has("_use")
        || (matches!(unit, Unit::Bytes(_))
            && ["gpu_memory", "gpu_mem", "vram", "memory"].contains(&head.as_str()))
    {
        Column::Used(bytes)
    } else {
        Column::Other
    }
}

/// Whether the name is one of nvidia-smi's own: with its dots, and its unit in brackets.
pub fn is_nvidia(name: &str) -> bool {
    let name = name.trim();
    name.ends_with("[MiB]")
        && (name.starts_with("memory.")
            || name.starts_with("used_gpu_memory")
            || name.starts_with("used_memory"))
        || name.ends_with("[%]") && name.starts_with("utilization.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_field() {
        for name in [
            "memory.used [MiB]",
            "memory.used",
            "gpu_memory_used",
            "mem_used_mb",
            "mem_used_mib",
            "VRAM_Usage",
            "used_MB",
            "Memory Used (MiB)",
            "Memory Used (Dedicated) [MB]",
            "used_gpu_memory [MiB]",
            "vram_used_mb",
            "memory_used_mb",
        ] {
            assert_eq!(column(name), Column::Used(MIB), "{name}");
        }
        for name in [
            "utilization.memory [%]",
            "clocks.current.memory [MHz]",
            "protected_memory.used [MiB]",
            "temperature.memory",
            "mem_util%",
            "mem",
            "power.draw [W]",
            "gpu_memory_utilization",
            "memory.reserved [MiB]",
            "Accuracy",
        ] {
            assert_eq!(column(name), Column::Other, "{name}");
        }
        assert_eq!(column("memory.total [MiB]"), Column::Total(MIB));
        assert_eq!(column("memory.free [MiB]"), Column::Free(MIB));
        assert_eq!(column("VRAM Total Used Memory (B)"), Column::Used(1));
        assert_eq!(column("VRAM Total Memory (B)"), Column::Total(1));
        assert_eq!(column("memory_percent"), Column::Share);
        assert_eq!(column("mem_used_gib"), Column::Used(1 << 30));
        assert_eq!(column("index_gpu"), Column::Index);
    }
}
