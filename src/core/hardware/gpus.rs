//! The GPU table.

/// Who makes the device; decides the runtime's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// NVIDIA, CUDA.
    Nvidia,
    /// AMD, ROCm.
    Amd,
}

/// One device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Id in the Scenario document.
    pub id: &'static str,
    /// Name as people know it.
    pub name: &'static str,
    /// Maker.
    pub vendor: Vendor,
    /// CUDA compute capability times ten (90 for 9.0), or the gfx number for AMD.
    pub arch: u32,
    /// Bytes that the driver reports as the total usable by a process (`cudaMemGetInfo`).
    pub total_bytes: u64,
    /// Whole MiB that nvidia-smi (or rocm-smi) prints as total.
    pub smi_total_mib: u64,
    /// Shares its memory with the host: the operating system and other programs draw on the same bytes.
    pub unified: bool,
    /// Whether `total_bytes` was read from a log or follows from the nominal size.
    pub reported: bool,
    /// Where the figure comes from: a permanent address, or the log quoted.
    pub source: &'static str,
}

/// Every known device.
pub const GPUS: &[Gpu] = &[];

/// The device of that id.
pub fn gpu(id: &str) -> Option<&'static Gpu> {
    GPUS.iter().find(|g| g.id == id)
}
