//! The site in a real browser: `make test` builds it first.

mod access;
mod advice;
mod answer;
mod bad_input;
mod charts;
mod files;
mod headers;
mod looks;
mod permalink;
mod share;
mod training;
