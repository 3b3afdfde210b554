//! The answer as rows, before a language or a layout is chosen: page, command line and Markdown show these.

use super::{Job, Resolved, Scenario, WorkingLine};
use crate::engines::engine;
use crate::memory::{Part, PhaseId, Provenance, RankShare, Residency, Term, TermId, Verdict, highest};
use crate::model::preset;
use crate::plan::{Estimate, Suggestions, option_limits};
use crate::text::{Lang, text};
use crate::units::{Bytes, Message, Problem, bytes_human, bytes_signed, count};

/// The answer to one Scenario, as rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The answer.
    pub verdict: Verdict,
    /// The answer as one sentence, with headroom and its range.
    pub sentence: Message,
    /// The engine's own refusal, where it would not start.
    pub refusal: Option<Message>,
    /// Terms, those with no bytes left out.
    pub rows: Vec<ReportRow>,
    /// Phases in time order.
    pub phases: Vec<PhaseRow>,
    /// Parameters, KV figures: text key and value.
    pub facts: Vec<(&'static str, String)>,
    /// Largest settings that fit.
    pub limits: Vec<LimitRow>,
    /// Assumptions, replaced terms, waste.
    pub warnings: Vec<Message>,
    /// Every rank, where there is more than one.
    pub ranks: Vec<RankShare>,
    /// What the process keeps in host memory.
    pub host: Vec<ReportRow>,
    /// What options can be set to, as text key and value.
    pub options: Vec<(&'static str, String)>,
    /// What could be changed, where that was asked.
    pub suggestions: Option<Suggestions>,
}

/// One term.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportRow {
    /// What for; `term.<id>` is its text.
    pub id: TermId,
    /// Point estimate.
    pub bytes: u64,
    /// Low end of the range.
    pub low: u64,
    /// High end of the range.
    pub high: u64,
    /// Share of the device total, 0 to 1 and above.
    pub share: f64,
    /// How long.
    pub residency: Residency,
    /// Phases it is alive in.
    pub phases: Vec<PhaseId>,
    /// Where from; `provenance.<id>` is its text.
    pub provenance: Provenance,
    /// The source; empty where the figure follows from shapes.
    pub source: &'static str,
    /// The working as a line.
    pub working: WorkingLine,
    /// The lines of a sum; a label may be a text key.
    pub parts: Vec<Part>,
}

impl ReportRow {
    fn new(term: &Term, total: u64) -> ReportRow {
        ReportRow {
            id: term.id,
            bytes: term.bytes,
            low: term.low,
            high: term.high,
            share: if total == 0 { 0.0 } else { term.bytes as f64 / total as f64 },
            residency: term.residency,
            phases: term.phases.clone(),
            provenance: term.provenance,
            source: term.source,
            working: WorkingLine::new(&term.working),
            parts: term.working.parts.clone(),
        }
    }

    /// What for, in words: with its phases where `rows` holds another row of the same kind.
    pub fn name(&self, lang: Lang, rows: &[ReportRow]) -> String {
        let name = text(lang, &format!("term.{}", self.id.id())).to_owned();
        if rows.iter().filter(|row| row.id == self.id).count() < 2 {
            return name;
        }
        let phase = |p: &PhaseId| text(lang, &format!("phase.{}", p.id())).to_owned();
        let phases: Vec<_> = self.phases.iter().map(phase).collect();
        format!("{name} ({})", phases.join(", "))
    }

    /// The range for people; `None` where the figure is a single point.
    pub fn range(&self) -> Option<String> {
        range(self.low, self.high)
    }
}

/// `low … high`, or nothing where both are one.
fn range(low: u64, high: u64) -> Option<String> {
    (low != high).then(|| format!("{} … {}", bytes_human(Bytes(low)), bytes_human(Bytes(high))))
}

/// One phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseRow {
    /// Which; `phase.<id>` is its text.
    pub id: PhaseId,
    /// Everything on the device.
    pub peak_bytes: u64,
    /// What the framework's allocator hands out.
    pub allocated_bytes: u64,
    /// It is the highest.
    pub highest: bool,
}

/// One limit.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitRow {
    /// Text key of its name.
    pub key: &'static str,
    /// The largest value that fits; 0: not even one.
    pub value: u64,
    /// The term that stops the next.
    pub stopped_by: Option<TermId>,
}

impl Report {
    /// The rows of the answer to `scenario`.
    ///
    /// ```no_run
    /// use oom_ledger_core::share::{Report, Scenario};
    /// use oom_ledger_core::text::{Lang, message};
    /// let text = r#"{"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb"}}"#;
    /// let report = Report::of(&Scenario::from_json_str(text).unwrap()).unwrap();
    /// println!("{}", message(Lang::En, &report.sentence));
    /// ```
    ///
    /// Errors: those of [`super::run`].
    pub fn of(scenario: &Scenario) -> Result<Report, Problem> {
        let resolved = scenario.resolve()?;
        Ok(Report::new(scenario, &resolved, &resolved.estimate()?))
    }

    /// The rows of `answer`, which was computed from `resolved`, which is `scenario` looked up.
    pub fn new(scenario: &Scenario, resolved: &Resolved, answer: &Estimate) -> Report {
        let total = answer.device.total_bytes;
        let highest = answer.phases.iter().map(|p| p.peak_bytes).max();
        Report {
            verdict: answer.verdict,
            sentence: sentence(scenario, resolved, answer),
            refusal: answer.refusal.clone(),
            rows: answer
                .terms
                .iter()
                .filter(|term| term.high > 0 && telling(answer, term))
                .map(|term| ReportRow::new(term, total))
                .collect(),
            phases: answer
                .phases
                .iter()
                .map(|p| PhaseRow {
                    id: p.id,
                    peak_bytes: p.peak_bytes,
                    allocated_bytes: p.allocated_bytes,
                    highest: Some(p.peak_bytes) == highest,
                })
                .collect(),
            facts: facts(answer),
            limits: limits(answer),
            warnings: answer.warnings.clone(),
            ranks: answer.ranks.clone(),
            host: answer.host.iter().filter(|t| t.high > 0).map(|term| ReportRow::new(term, 0)).collect(),
            options: options(resolved),
            suggestions: None,
        }
    }

    /// The same, with what could be changed.
    pub fn with_suggestions(mut self, resolved: &Resolved) -> Report {
        self.suggestions = resolved.suggestions();
        self
    }
}

/// Whether a term is the one to show of those that differ in size from phase to phase: the one alive at the
/// highest peak, else the largest.
fn telling(answer: &Estimate, term: &Term) -> bool {
    let Some(top) = highest(&answer.phases) else { return true };
    let mut same = answer.terms.iter().filter(|t| t.id == term.id);
    let shown = same.clone().find(|t| t.phases.contains(&top)).or_else(|| same.next());
    shown == Some(term)
}

/// The verdict with its figures.
fn sentence(scenario: &Scenario, resolved: &Resolved, answer: &Estimate) -> Message {
    let engine = match &scenario.job {
        Job::Serve(serve) => {
            engine(&serve.engine).map_or_else(|_| serve.engine.clone(), |e| e.name().to_owned())
        }
        Job::Train(_) => "transformers".to_owned(),
    };
    let model = scenario.model.preset.as_deref().and_then(preset).map(|p| p.name.to_owned());
    let device = &resolved.device;
    let device_name =
        device.gpu.map_or_else(|| bytes_human(Bytes(device.total_bytes)), |g| g.name.to_owned());
    let total = i128::from(answer.device.total_bytes);
    let left = |peak: u64| total - i128::from(peak);
    let id = match answer.verdict {
        Verdict::Fits => "report.fits",
        // The device holds even the high end: then it is the pool that may come out too small.
        Verdict::Tight if left(answer.peak_high) >= 0 => "report.tight_pool",
        Verdict::Tight => "report.tight",
        Verdict::DoesNotFit if left(answer.peak_bytes) < 0 => "report.over_total",
        Verdict::DoesNotFit if answer.refusal.is_some() => "report.refused",
        Verdict::DoesNotFit => "report.does_not_fit",
    };
    let high = highest(&answer.phases).map(|id| format!("phase.{}", id.id()));
    Message::new(id)
        .with("model", model.unwrap_or_else(|| resolved.model.name.clone()))
        .with("engine", engine)
        .with("count", device.count)
        .with("device", device_name)
        .with("peak", Bytes(answer.peak_bytes))
        .with("peak_range", range(answer.peak_low, answer.peak_high).unwrap_or_else(|| "±0".to_owned()))
        .with("total", Bytes(answer.device.total_bytes))
        .with("budget", Bytes(answer.device.budget_bytes))
        .with("headroom", bytes_signed(left(answer.peak_bytes)))
        .with("low", bytes_signed(left(answer.peak_high)))
        .with("high", bytes_signed(left(answer.peak_low)))
        .with("over", bytes_signed(-left(answer.peak_bytes)))
        .with("phase", high.unwrap_or_default())
}

fn facts(answer: &Estimate) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("report.parameters", count(answer.parameters)),
        ("report.device_total", bytes_human(Bytes(answer.device.total_bytes))),
        ("report.budget", bytes_human(Bytes(answer.device.budget_bytes))),
    ];
    let Some(kv) = &answer.kv else { return facts };
    let whole = |key, n: u64| (n > 0).then(|| (key, count(n)));
    let per_token = Bytes(kv.bytes_per_token.max(0.0).round() as u64);
    facts.extend(
        [
            (per_token.0 > 0).then(|| ("report.kv_per_token", bytes_human(per_token))),
            whole("report.kv_block_tokens", kv.block_tokens),
            (kv.block_bytes > 0).then(|| ("report.kv_block_bytes", bytes_human(Bytes(kv.block_bytes)))),
            whole("report.kv_blocks", kv.blocks),
            whole("report.kv_tokens", kv.tokens),
            whole("report.kv_token_line", if kv.token_line == kv.tokens { 0 } else { kv.token_line }),
            (kv.max_concurrency > 0.0)
                .then(|| ("report.kv_concurrency", format!("{:.2}", kv.max_concurrency))),
        ]
        .into_iter()
        .flatten(),
    );
    facts
}

/// Limits of options, for people.
fn options(resolved: &Resolved) -> Vec<(&'static str, String)> {
    if resolved.train.is_some() {
        return Vec::new();
    }
    let Ok(engine) = engine(&resolved.serve.engine) else { return Vec::new() };
    let found = option_limits(engine, &resolved.inputs());
    let name = |field: &str| match field {
        "mem_fraction_static" => "option.mem_fraction_static",
        "free_gpu_memory_fraction" => "option.free_gpu_memory_fraction",
        _ => "option.gpu_memory_utilization",
    };
    let batched = found.max_num_batched_tokens.map(|n| ("report.limit_max_num_batched_tokens", count(n)));
    let share = found.share.map(|s| (name(s.field), format!("{:.3} … {:.3}", s.low, s.high)));
    batched.into_iter().chain(share).collect()
}

fn limits(answer: &Estimate) -> Vec<LimitRow> {
    let limits = &answer.limits;
    [
        ("max_model_len", "report.limit_max_model_len", limits.max_model_len),
        ("max_sequences", "report.limit_max_sequences", limits.max_sequences),
        ("max_new_tokens", "report.limit_max_new_tokens", limits.max_new_tokens),
        ("max_micro_batch", "report.limit_max_micro_batch", limits.max_micro_batch),
    ]
    .into_iter()
    .filter_map(|(field, key, value)| {
        let stopped_by = limits.stopped_by.iter().find(|(name, _)| *name == field).map(|(_, term)| *term);
        Some(LimitRow { key, value: value?, stopped_by })
    })
    .collect()
}
