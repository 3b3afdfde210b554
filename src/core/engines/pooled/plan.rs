//! What an engine with a reserved pool says about a job, summed up into a ledger or asked at many points.

use super::{SERVING, Span, phase, product, row};
use crate::engines::{Point, Stop, Surface};
use crate::memory::{
    DeviceBudget, KvSummary, Ledger, Phase, PhaseId, Range, Residency, Term, TermId, Verdict, Working, sum,
};
use crate::units::{Bytes, Message, Problem};

/// A row, and whether its range moves the peak: what a row inside the static share takes more, the pool gets less.
pub(in crate::engines) struct Row {
    pub(in crate::engines) term: Term,
    pub(in crate::engines) moves: bool,
}

/// Memory that grows with the sequences whose next token is chosen.
#[derive(Clone, Copy, Debug)]
pub(in crate::engines) struct Sampler {
    /// V, as stored.
    pub(in crate::engines) vocabulary: u64,
    /// Bytes per sequence and vocabulary entry.
    pub(in crate::engines) per_logit: Span,
    /// Where the bytes per entry were read.
    pub(in crate::engines) source: &'static str,
}

impl Sampler {
    fn at(self, rows: u64) -> Span {
        let of = |c: u64| product(&[rows, self.vocabulary, c]);
        Span { point: of(self.per_logit.point), low: of(self.per_logit.low), high: of(self.per_logit.high) }
    }

    fn term(self, rows: u64) -> Term {
        let working = Working::new("B · V · c", 0)
            .with("B", rows, "sequences")
            .with("V", self.vocabulary, "entries")
            .with("c", self.per_logit.point, "B/entry");
        let term = row(TermId::Sampling, self.at(rows), Residency::Transient, &[PhaseId::Sampling], working);
        Term { source: self.source, ..term }
    }
}

/// A second pool, of which a sequence keeps a window only.
#[derive(Clone, Copy, Debug)]
pub(in crate::engines) struct Window {
    /// Tokens that the pool holds; with every cost at its high end.
    pub(in crate::engines) tokens: u64,
    pub(in crate::engines) worst_tokens: u64,
    /// Most tokens that one sequence keeps of it.
    pub(in crate::engines) kept: u64,
    /// Bytes of one of its tokens.
    pub(in crate::engines) token_bytes: u64,
}

/// What the pool holds, and what forbids a load whatever the memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::engines) struct Pool {
    /// Tokens that the pool of one group holds; with every cost at its high end.
    pub(in crate::engines) tokens: u64,
    pub(in crate::engines) worst_tokens: u64,
    /// Tokens of a block: a sequence takes whole blocks.
    pub(in crate::engines) block: u64,
    /// Bytes of a token.
    pub(in crate::engines) token_bytes: u64,
    pub(in crate::engines) window: Option<Window>,
    /// Bytes of the recurrent states of one sequence.
    pub(in crate::engines) state_bytes: u64,
    /// Groups of ranks with a pool each, over which sequences are spread.
    pub(in crate::engines) groups: u64,
    /// Sequences that run at once in all; with every cost at its high end.
    pub(in crate::engines) seats: u64,
    pub(in crate::engines) worst_seats: u64,
    /// Fewer sequences run than the option allows, since the pool is small.
    pub(in crate::engines) few_seats: bool,
    /// Longest request.
    pub(in crate::engines) longest: u64,
    /// The engine's own names of the two options.
    pub(in crate::engines) seats_option: &'static str,
    pub(in crate::engines) length_option: &'static str,
}

impl Pool {
    /// Tokens that a request takes of the pool, in whole blocks.
    fn taken(&self, tokens: u64) -> u64 {
        tokens.div_ceil(self.block.max(1)).saturating_mul(self.block.max(1))
    }

    /// Sequences of the fullest group.
    fn share(&self, sequences: u64) -> u64 {
        sequences.div_ceil(self.groups.max(1))
    }

    fn holds(&self, sequences: u64, tokens: u64, pool: u64, window: Option<u64>) -> bool {
        let sequences = self.share(sequences);
        let kept = |w: &Window| tokens.min(w.kept).saturating_mul(sequences);
        self.taken(tokens).saturating_mul(sequences) <= pool
            && self.window.as_ref().zip(window).is_none_or(|(w, has)| kept(w) <= has)
    }

    /// What stands in the way of `sequences` sequences of `tokens` tokens each.
    fn stop(&self, sequences: u64, tokens: u64) -> Option<Stop> {
        if tokens > self.longest {
            Some(Stop::Option)
        } else if sequences > self.seats {
            Some(if self.few_seats { Stop::Pool } else { Stop::Option })
        } else if self.holds(sequences, tokens, self.tokens, self.window.map(|w| w.tokens)) {
            None
        } else {
            Some(Stop::Pool)
        }
    }

    fn fits_at_worst(&self, sequences: u64, tokens: u64) -> bool {
        sequences <= self.worst_seats
            && self.holds(sequences, tokens, self.worst_tokens, self.window.map(|w| w.worst_tokens))
    }

    fn bytes(&self, sequences: u64, tokens: u64) -> u64 {
        let window = self.window.map_or(0, |w| product(&[tokens.min(w.kept), w.token_bytes]));
        let each = product(&[self.taken(tokens), self.token_bytes]).saturating_add(window);
        each.saturating_add(self.state_bytes).saturating_mul(self.share(sequences))
    }

    fn warning(&self, engine: &'static str, sequences: u64, tokens: u64) -> Option<Message> {
        self.stop(sequences, tokens)?;
        let message = |id| Message::new(id).with("engine", engine).with("tokens", tokens);
        if tokens > self.longest {
            let message = message("pooled.request_too_long").with("longest", self.longest);
            return Some(message.with("option", self.length_option));
        }
        let message = |id| message(id).with("sequences", sequences);
        if sequences > self.seats {
            let message = message("pooled.more_than_seats").with("seats", self.seats);
            return Some(message.with("option", self.seats_option));
        }
        let by_window = |w: Window| w.tokens / tokens.min(w.kept).max(1);
        let at_once = self.tokens / self.taken(tokens).max(1);
        let at_once = at_once.min(self.window.map_or(u64::MAX, by_window)).saturating_mul(self.groups);
        Some(message("pooled.load_waits").with("pool", self.tokens).with("at_once", at_once))
    }
}

/// Sums of a phase without the sampler.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    bytes: u64,
    less: u64,
    more: u64,
}

/// A job answered but for its load.
pub(in crate::engines) struct Plan {
    /// The engine's name.
    pub(in crate::engines) engine: &'static str,
    /// Device total.
    pub(in crate::engines) total: u64,
    /// What the engine allows itself.
    pub(in crate::engines) budget: u64,
    /// Rows, largest meaning first, without the sampler's.
    pub(in crate::engines) rows: Vec<Row>,
    pub(in crate::engines) sampler: Option<Sampler>,
    pub(in crate::engines) pool: Pool,
    pub(in crate::engines) kv: KvSummary,
    /// Why it would not start, and whether that is the device or the pool.
    pub(in crate::engines) refusal: Option<(Message, Stop)>,
    /// Whether it would refuse with every cost at the high end of its range.
    pub(in crate::engines) refuses_at_worst: bool,
    /// A printed pool proves that it did start.
    pub(in crate::engines) printed: bool,
    pub(in crate::engines) warnings: Vec<Message>,
    /// Key of the sentence for a peak above the device total.
    pub(in crate::engines) over_device: &'static str,
}

/// Peak with its range.
#[derive(Clone, Copy, Debug)]
struct Peak {
    point: u64,
    low: u64,
    high: u64,
}

impl Plan {
    fn sums(&self) -> [Sums; 5] {
        let mut sums = [Sums::default(); 5];
        for (sum, id) in sums.iter_mut().zip(SERVING) {
            for Row { term, moves } in self.rows.iter().filter(|r| r.term.phases.contains(id)) {
                sum.bytes = sum.bytes.saturating_add(term.bytes);
                if *moves {
                    sum.less = sum.less.saturating_add(term.bytes - term.low);
                    sum.more = sum.more.saturating_add(term.high - term.bytes);
                }
            }
        }
        sums
    }

    fn peak(&self, sums: &[Sums; 5], sequences: u64) -> Peak {
        let mut peak = Peak { point: 0, low: 0, high: 0 };
        for (sum, id) in sums.iter().zip(SERVING) {
            let sampled = match self.sampler {
                Some(s) if *id == PhaseId::Sampling => s.at(self.pool.share(sequences.min(self.pool.seats))),
                _ => Span::default(),
            };
            let point = sum.bytes.saturating_add(sampled.point);
            let less = sum.less.saturating_add(sampled.point - sampled.low);
            let more = sum.more.saturating_add(sampled.high - sampled.point);
            peak.point = peak.point.max(point);
            peak.low = peak.low.max(point.saturating_sub(less));
            peak.high = peak.high.max(point.saturating_add(more));
        }
        peak
    }

    /// Whether the device cannot hold a peak. A printed pool proves that the engine did start: then rules of thumb
    /// alone refuse nothing, and only a low end above the total does.
    fn impossible(&self, peak: Peak) -> bool {
        let least = if self.printed { peak.low } else { peak.point };
        least > self.total
    }

    /// The ledger for `sequences` sequences of `tokens` tokens each.
    ///
    /// Errors: bytes that overflow.
    pub(in crate::engines) fn ledger(self, sequences: u64, tokens: u64) -> Result<Ledger, Problem> {
        let peak = self.peak(&self.sums(), sequences);
        let impossible = self.impossible(peak);
        let stop = self.pool.stop(sequences, tokens);
        let verdict = if self.refusal.is_some() || impossible || stop.is_some() {
            Verdict::DoesNotFit
        } else if self.refuses_at_worst
            || peak.high > self.total
            || !self.pool.fits_at_worst(sequences, tokens)
        {
            Verdict::Tight
        } else {
            Verdict::Fits
        };
        let mut warnings = self.warnings;
        // An engine that does not start serves no load: its refusal is all there is to say.
        if self.refusal.is_none() {
            warnings.extend(self.pool.warning(self.engine, sequences, tokens));
            if peak.point > self.total {
                let over = Message::new(self.over_device).with("over", Bytes(peak.point - self.total));
                warnings.push(over.with("total", Bytes(self.total)));
            }
        }
        let mut terms: Vec<Term> = self.rows.into_iter().map(|r| r.term).collect();
        terms.extend(self.sampler.map(|s| s.term(self.pool.share(sequences.min(self.pool.seats)))));
        sum(&terms)?;
        let phases: Vec<Phase> = SERVING.iter().map(|id| phase(*id, &terms)).collect();
        Ok(Ledger {
            terms,
            phases,
            device: DeviceBudget { total_bytes: self.total, budget_bytes: self.budget },
            kv: Some(self.kv),
            peak: Range { low: peak.low, high: peak.high },
            peak_bytes: peak.point,
            verdict,
            refusal: self.refusal.map(|(message, _)| message),
            warnings,
            ranks: Vec::new(),
            host: Vec::new(),
        })
    }

    /// The surface of the job.
    pub(in crate::engines) fn surface(self) -> Box<dyn Surface> {
        Box::new(PlanSurface { sums: self.sums(), plan: self })
    }
}

struct PlanSurface {
    plan: Plan,
    sums: [Sums; 5],
}

impl Surface for PlanSurface {
    fn at(&self, sequences: u64, prompt: u64, new: u64) -> Point {
        let (plan, tokens) = (&self.plan, prompt.saturating_add(new));
        let peak = plan.peak(&self.sums, sequences);
        let refused = plan.refusal.as_ref().map(|(_, stop)| *stop);
        let over = plan.impossible(peak).then_some(Stop::Device);
        let stop = refused.or(over).or_else(|| plan.pool.stop(sequences, tokens));
        Point {
            peak_bytes: peak.point,
            high_bytes: peak.high,
            kv_bytes: plan.pool.bytes(sequences, tokens),
            fits: stop.is_none(),
            stop,
        }
    }
}
