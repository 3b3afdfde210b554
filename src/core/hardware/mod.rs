//! Layer 1: the devices, with the bytes their driver reports.

mod gpus;

pub use gpus::{GPUS, Gpu, Vendor, gpu};

/// A device as the accounting sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Row of the table, where one was picked.
    pub gpu: Option<&'static Gpu>,
    /// Device total: bytes as the driver reports them to a process (`cudaMemGetInfo` total).
    pub total_bytes: u64,
    /// Devices of this kind in use.
    pub count: u64,
    /// Bytes that other processes hold on the fullest device.
    pub other_processes_bytes: u64,
}
