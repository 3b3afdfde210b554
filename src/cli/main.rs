//! The `oom-ledger` command.
fn main() {}
