//! The whole Scenario in the fragment of an address.
//!
//! Version 1 is `1.` and the base64url text, without padding, of a zlib stream (RFC 1950, whose Adler-32
//! checksum tells a cut link from a whole one) of the Scenario's JSON without defaults.

use super::Scenario;
use crate::units::{Bytes, Message, Problem};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_zlib_with_limit};

/// The version written.
const VERSION: u64 = 1;
/// Longest link made, in characters. Browsers take more; mail and chat programs cut long before. Every
/// published config tried needs below 3,000.
const MAX_LINK: usize = 32_000;
/// Largest document unpacked, in bytes: a small link may claim to hold gigabytes.
const MAX_DOCUMENT: usize = 4 << 20;

impl Scenario {
    /// The Scenario as text for the fragment of an address (without `#`): letters, digits, `-`, `_` and `.`.
    ///
    /// ```
    /// use oom_ledger_core::share::Scenario;
    /// let text = r#"{"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "h100-80gb"}}"#;
    /// let scenario = Scenario::from_json_str(text).unwrap();
    /// let link = scenario.permalink().unwrap();
    /// assert!(link.starts_with("1."));
    /// assert_eq!(Scenario::from_permalink(&link), Ok(scenario));
    /// ```
    ///
    /// Errors: a config too large for any address; the Scenario document itself is then what to pass on.
    pub fn permalink(&self) -> Result<String, Problem> {
        let json = self.to_short_json().to_string();
        if json.len() > MAX_DOCUMENT {
            let message = Message::new("permalink.too_large")
                .with("given", Bytes(json.len() as u64))
                .with("accepted", Bytes(MAX_DOCUMENT as u64));
            return Err(Problem::new("model.config", message));
        }
        let packed = compress_to_vec_zlib(json.as_bytes(), 9);
        let link = format!("{VERSION}.{}", URL_SAFE_NO_PAD.encode(packed));
        if link.len() > MAX_LINK {
            let message = Message::new("permalink.too_long")
                .with("given", link.len() as u64)
                .with("accepted", MAX_LINK as u64);
            return Err(Problem::new("model.config", message));
        }
        Ok(link)
    }

    /// The Scenario in the fragment of an address; a leading `#` and what a sentence puts around an address
    /// may stay.
    ///
    /// Errors: made by a newer version, cut, damaged, or no permalink at all; each says what to do.
    pub fn from_permalink(link: &str) -> Result<Scenario, Problem> {
        let problem = |message: Message| Problem::new("", message);
        let damaged = || problem(Message::new("permalink.damaged"));
        let around = |c: char| c.is_whitespace() || "#.,;:!?()<>[]{}\"'`“”’）。，".contains(c);
        let link = link.trim_matches(around);
        let length = link.chars().count() as u64;
        let version = link.split_once('.').and_then(|(version, rest)| Some((version.parse().ok()?, rest)));
        let packed = match version {
            Some((VERSION, rest)) => rest,
            Some((given, _)) if given > VERSION => {
                let message = Message::new("permalink.newer").with("given", given).with("accepted", VERSION);
                return Err(problem(message));
            }
            // The cut may fall right behind the version.
            _ if link == "1" => return Err(problem(Message::new("permalink.cut").with("length", length))),
            _ => return Err(problem(Message::new("permalink.not_one"))),
        };
        if link.len() > 2 * MAX_LINK {
            return Err(damaged());
        }
        // One letter alone in the last group of four is a cut; the letters before it show where.
        let whole = packed.len() - usize::from(packed.len() % 4 == 1);
        let bytes = packed.get(..whole).and_then(|text| lenient().decode(text).ok()).ok_or_else(damaged)?;
        let json =
            decompress_to_vec_zlib_with_limit(&bytes, MAX_DOCUMENT).map_err(|error| match error.status {
                TINFLStatus::FailedCannotMakeProgress | TINFLStatus::NeedsMoreInput => {
                    problem(Message::new("permalink.cut").with("length", length))
                }
                _ => damaged(),
            })?;
        let text = String::from_utf8(json).map_err(|_| damaged())?;
        Scenario::from_json_str(&text)
    }
}

/// Takes a last letter whose unused bits are set, as a cut link has.
fn lenient() -> base64::engine::GeneralPurpose {
    let config = base64::engine::GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    base64::engine::GeneralPurpose::new(&base64::alphabet::URL_SAFE, config)
}
