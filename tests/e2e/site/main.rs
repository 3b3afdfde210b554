//! The site in a real browser: `make test` builds it first.

mod answer;
