//! GGUF: block types, file types, and which tensor of a file gets which type.

mod files;
mod placed;
mod recipe;

pub(crate) use files::FILES;
pub(crate) use placed::{FileTensor, file_tensors};
pub(super) use recipe::Recipe;
