//! Memory of a process outside its tensors: context, library workspaces, communication. Rules of thumb with
//! the band that was observed; the `calib` probes named below replace them by a measurement.

use super::{PhaseId, Provenance, Residency, Term, TermId, Working};

const MIB: u64 = 1 << 20;

/// A figure that no shape gives: the value taken, the band observed, how often, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Value taken, in bytes.
    pub point: u64,
    /// Smallest value observed.
    pub low: u64,
    /// Largest value observed.
    pub high: u64,
    /// Observations behind the band.
    pub samples: u64,
    /// Where they were read.
    pub source: &'static str,
}

impl Observed {
    /// The figure as a resident row of the ledger.
    ///
    /// Formula: observed value, low and high end of the band.
    /// Accuracy: the band.
    /// Source: that of the figure.
    ///
    /// Example:
    /// ```
    /// use oom_ledger_core::memory::{Provenance, TermId, context::context_overhead};
    /// let term = context_overhead(Some(90)).term(TermId::ContextOverhead);
    /// assert_eq!(term.provenance, Provenance::RuleOfThumb);
    /// ```
    pub fn term(self, id: TermId) -> Term {
        Term {
            id,
            bytes: self.point,
            low: self.low,
            high: self.high,
            residency: Residency::Resident,
            phases: PhaseId::ALL.to_vec(),
            provenance: Provenance::RuleOfThumb,
            source: self.source,
            working: Working::new("observed", self.point)
                .with("low", self.low, "B")
                .with("high", self.high, "B")
                .with("n", self.samples, "observations"),
        }
    }
}

const NONE: Observed =
    Observed { point: 0, low: 0, high: 0, samples: 0, source: "a single process exchanges nothing" };

/// Bytes that a PyTorch process takes on a device before its first tensor: CUDA context and loaded kernels,
/// as `total - free` of an otherwise idle device shows them.
///
/// `arch` is the compute capability times ten; `None` where it is not known. The context grows with the number
/// of multiprocessors, and with the kernels loaded: all of them under `CUDA_MODULE_LOADING=EAGER` (the high
/// end of Ampere), only those used under lazy loading (default since CUDA 12.2).
///
/// Formula: observed value by architecture.
/// Accuracy: the band, 0.20 to 0.92 GiB over 11 observations; `calib` probe `context` re-measures it.
/// Source: start-up lines `free/total` of vLLM 0.11 on H100 (0.61 GiB, n = 5) and of 0.10 on a 178 GiB Blackwell
/// (0.70 GiB, vllm-project/vllm#21489); PyTorch 2.1 on A100 lazy 0.47, eager 0.92, 1.13 eager 0.90 GiB
/// (stas00/ml-engineering, training/performance); out-of-memory messages on a 15.56 GiB card (0.20 GiB) and on
/// a 31.36 GiB card (0.60 GiB, both this process less PyTorch).
///
/// Example:
/// ```
/// use oom_ledger_core::memory::context::context_overhead;
/// let hopper = context_overhead(Some(90));
/// assert!(hopper.low < hopper.point && hopper.point < hopper.high);
/// ```
pub fn context_overhead(arch: Option<u32>) -> Observed {
    const SOURCE: &str = "vLLM start-up lines (H100 0.61 GiB n=5, Blackwell 0.70 GiB), stas00/ml-engineering (A100 0.47 lazy, 0.92 eager), CUDA OOM messages (0.20, 0.60 GiB)";
    let at = |point, low, high, samples| Observed {
        point: point * MIB,
        low: low * MIB,
        high: high * MIB,
        samples,
        source: SOURCE,
    };
    match arch {
        // Data-centre Blackwell: 148 multiprocessors.
        Some(100..=109) => at(717, 481, 942, 1),
        // Hopper: 132.
        Some(90..=99) => at(625, 481, 942, 5),
        // A100: 108; the high end is eager loading.
        Some(80) => at(481, 450, 942, 3),
        // GeForce Blackwell.
        Some(120..=129) => at(614, 208, 942, 1),
        // Smaller and older chips have been seen between the two ends; the middle is taken.
        _ => at(400, 208, 942, 11),
    }
}

/// Growth of memory outside PyTorch's allocator between the start of an engine and the end of its profile run,
/// in bytes: what vLLM prints as non-torch memory. The context itself is there before and is not part of it.
///
/// Formula: observed value by architecture, plus [`communication`] for `world` ranks.
/// Accuracy: one rank 0.03 to 0.14 GiB over 14 start-ups of vLLM 0.7 and later (0.35 to 1.79 GiB before 0.6.6, which
/// counted neighbours and context too); `calib` probe `libraries` re-measures it.
/// Source: start-up logs: H100 0.13 to 0.14 GiB (n = 7), A100 0.09, RTX 4090 0.08, Blackwell 0.07, T4 0.03 to 0.05
/// (n = 3).
///
/// Example:
/// ```
/// use oom_ledger_core::memory::context::non_torch_growth;
/// assert!(non_torch_growth(Some(90), 2).point > non_torch_growth(Some(90), 1).point);
/// ```
pub fn non_torch_growth(arch: Option<u32>, world: u64) -> Observed {
    const SOURCE: &str = "vLLM start-up logs, non-torch memory: H100 0.13-0.14 GiB (n=7; 0.54-0.55 at two ranks), A100 0.09, RTX 4090 0.08, B200 0.07, T4 0.03-0.05 (n=3)";
    let (point, samples) = match arch {
        Some(75) => (31, 3),
        Some(80) => (92, 1),
        Some(90..=99) => (134, 7),
        Some(100..=109) => (72, 1),
        _ => (82, 14),
    };
    let across = communication(world);
    Observed {
        point: point * MIB + across.point,
        low: 31 * MIB + across.low,
        high: 144 * MIB + across.high,
        samples,
        source: SOURCE,
    }
}

/// Bytes that collectives hold on one device for a group of `world` ranks: NCCL channels and, in serving engines,
/// the buffers of the custom all-reduce.
///
/// Formula: observed value by number of ranks; 0 for one.
/// Accuracy: the band, 0.17 to 1.45 GiB; depends on links and NCCL version; `calib` probe `nccl` re-measures it.
/// Source: vLLM 0.11 on two H100: 0.41 GiB over one (n = 2); on two RTX 4090 without peer access 0.17 GiB
/// (vllm-project/vllm#13061); AIConfigurator's table 342 MiB for 2 and 392 MiB for 4 and 8 ranks; first barrier of
/// torch.distributed on two devices 1.45 GiB (stas00/ml-engineering).
///
/// Example:
/// ```
/// use oom_ledger_core::memory::context::communication;
/// assert_eq!(communication(1).point, 0);
/// assert!(communication(8).point >= communication(2).point);
/// ```
pub fn communication(world: u64) -> Observed {
    if world <= 1 {
        return NONE;
    }
    Observed {
        point: 420 * MIB,
        low: 174 * MIB,
        high: 1485 * MIB,
        samples: 7,
        source: "vLLM non-torch memory at two ranks less one: H100 0.41 GiB (n=2), RTX 4090 0.17; AIConfigurator 342-392 MiB (2 to 8 ranks); torch.distributed first barrier 1.45 GiB",
    }
}

/// Bytes of cuBLAS workspace that PyTorch keeps for one handle and stream; part of what its allocator hands out.
///
/// Formula: 2 · 4096 KiB + 8 · 16 KiB = 8,519,680 B; 32 MiB on compute capability 9.0 and 10.0.
/// Accuracy: exact per handle and stream once a matrix product ran; the high end counts a second stream (graphs,
/// side streams); `calib` probe `cublas` re-measures it.
/// Source: `parseChosenWorkspaceSize` in aten/src/ATen/cuda/CublasHandlePool.cpp of PyTorch.
///
/// Example:
/// ```
/// use oom_ledger_core::memory::context::library_workspace;
/// assert_eq!(library_workspace(Some(80)).point, 8_519_680);
/// assert_eq!(library_workspace(Some(90)).point, 32 << 20);
/// ```
pub fn library_workspace(arch: Option<u32>) -> Observed {
    const BEFORE: u64 = 2 * 4096 * 1024 + 8 * 16 * 1024;
    const HOPPER: u64 = 32 * MIB;
    let source = "PyTorch aten/src/ATen/cuda/CublasHandlePool.cpp, default workspace per handle and stream";
    let (point, low, high) = match arch {
        Some(90 | 100) => (HOPPER, HOPPER, 2 * HOPPER),
        Some(..=89) => (BEFORE, BEFORE, 2 * BEFORE),
        // Later chips and ROCm: the default changed between releases.
        Some(_) => (BEFORE, BEFORE, 2 * HOPPER),
        None => (BEFORE, BEFORE, HOPPER),
    };
    Observed { point, low, high, samples: 0, source }
}
