//! What hosts send must be what the page says of itself.

use oom_ledger_e2e::Result;
use std::path::Path;

#[test]
fn the_notes_for_hosts_carry_the_policy_of_the_page() -> Result {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("public/index.html"))?;
    let policy = page
        .split("Content-Security-Policy\"")
        .nth(1)
        .and_then(|rest| rest.split("content=\"").nth(1))
        .and_then(|rest| rest.split('"').next())
        .ok_or("the page has no policy")?;
    for wanted in ["default-src 'self'", "script-src 'self' 'wasm-unsafe-eval'", "style-src 'self'"] {
        assert!(policy.split(';').any(|rule| rule.trim() == wanted), "{wanted} is not in {policy}");
    }
    for loose in ["'unsafe-inline'", "'unsafe-eval'", "*", "http", "data:", "blob:"] {
        assert!(!policy.split([' ', ';']).any(|word| word == loose), "{loose} is in {policy}");
    }
    for file in ["deploy/nginx.conf", "deploy/_headers"] {
        let text = std::fs::read_to_string(root.join(file))?;
        let expected = format!("{}; frame-ancestors 'none'", policy.trim_end_matches(';'));
        assert!(text.contains(&expected), "{file} does not send: {expected}");
    }
    Ok(())
}
