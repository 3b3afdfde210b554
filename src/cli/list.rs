//! `oom-ledger list`.

use crate::args::List;
use crate::{Failure, output};
use oom_ledger_core::engines::ENGINES;
use oom_ledger_core::hardware::GPUS;
use oom_ledger_core::model::{PRESETS, Quantization};
use oom_ledger_core::share::{Kind, field, paths};
use oom_ledger_core::units::{Bytes, bytes_human, count};

/// Writes a list: the id first on each line, columns apart by tabs, ready for `cut` and `column`.
pub fn run(what: List) -> Result<(), Failure> {
    let lines: Vec<String> = match what {
        List::Models => {
            PRESETS.iter().map(|p| format!("{}\t{}\t{}", p.id, count(p.parameters), p.name)).collect()
        }
        List::Gpus => GPUS
            .iter()
            .map(|g| format!("{}\t{}\t{}", g.id, bytes_human(Bytes(g.total_bytes)), g.name))
            .collect(),
        List::Engines => ENGINES
            .iter()
            .map(|e| {
                let options: Vec<_> = e.options().iter().map(|o| o.flag).collect();
                format!("{}\t{}\t{}", e.id(), e.name(), options.join(" "))
            })
            .collect(),
        List::Quantizations => {
            let gguf = oom_ledger_core::memory::weights::gguf_types().map(|name| format!("gguf:{name}"));
            Quantization::NAMED.iter().map(|(id, _)| (*id).to_owned()).chain(gguf).collect()
        }
        List::Fields => paths()
            .iter()
            .map(|path| format!("{path}\t{}", field(path).map(Kind::accepted).unwrap_or_default()))
            .collect(),
    };
    output::stdout((lines.join("\n") + "\n").as_bytes())
}
