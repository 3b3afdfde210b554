//! GGUF: block types, file types, and which tensor of a file gets which type.

mod files;
mod recipe;

pub(crate) use files::FILES;
pub(super) use recipe::Recipe;
