//! axe-core, run inside the page.

use crate::{Page, Result, problem};
use serde_json::Value;
use std::path::PathBuf;

/// Rules that the page breaks, each with the elements concerned; empty is the aim.
///
/// Errors: axe-core is not installed (`.ci/tools.sh test`), or it does not run.
pub async fn violations(page: &Page) -> Result<Vec<String>> {
    let tools = std::env::var_os("OOM_LEDGER_TOOLS").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/oom-ledger/tools"));
    let tools = tools.or_else(home).ok_or_else(|| problem("no folder of tools"))?;
    let path = tools.join("npm/node_modules/axe-core/axe.min.js");
    let source = std::fs::read_to_string(&path)
        .map_err(|e| problem(format!("{}: {e}; `.ci/tools.sh test` installs it", path.display())))?;
    page.driver().execute(source, Vec::new()).await?;
    let run = "const done = arguments[arguments.length - 1];
        axe.run(document, {resultTypes: ['violations']}).then(
            (r) => done({ passes: r.passes.length, found: r.violations.map((v) =>
                v.id + ' (' + v.impact + '): ' + v.help + '\\n    ' +
                v.nodes.map((n) => n.target.join(' ') + '  ' + n.failureSummary.replace(/\\s+/g, ' '))
                    .join('\\n    ')) }),
            (e) => done({ error: String(e) }));";
    let answer: Value = page.driver().execute_async(run, Vec::new()).await?.convert()?;
    if answer["passes"].as_u64().unwrap_or(0) == 0 {
        return Err(problem(format!("axe checked nothing: {answer}")));
    }
    let found = answer["found"].as_array().cloned().unwrap_or_default();
    Ok(found.iter().map(|v| v.as_str().unwrap_or_default().to_owned()).collect())
}
