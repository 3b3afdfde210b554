//! What must hold after every test, from what the browser itself recorded.

use crate::{Page, Result, problem};
use serde_json::Value;

/// Fails when the console holds a warning or an error, or when anything was asked of another origin.
pub(crate) async fn quiet(page: &Page) -> Result {
    let console = page.driver().get_log("browser").await?;
    let loud: Vec<String> = console
        .iter()
        .filter(|entry| matches!(entry.level.as_str(), "SEVERE" | "WARNING"))
        .map(|entry| format!("{}: {}", entry.level, entry.message))
        .collect();
    if !loud.is_empty() {
        return Err(problem(format!("the console is not clean:\n{}", loud.join("\n"))));
    }
    let asked = requests(page).await?;
    if !asked.iter().any(|url| url.contains("_bg.wasm")) {
        return Err(problem(format!(
            "the record of requests misses the wasm file, so it proves nothing: {asked:?}"
        )));
    }
    let foreign: Vec<&String> = asked.iter().filter(|url| !url.starts_with(page.site())).collect();
    if !foreign.is_empty() {
        return Err(problem(format!("requests outside {}: {foreign:?}", page.site())));
    }
    Ok(())
}

/// Every address that the page asked for, by any means.
async fn requests(page: &Page) -> Result<Vec<String>> {
    let mut urls = Vec::new();
    for entry in page.driver().get_log("performance").await? {
        let event: Value = serde_json::from_str(&entry.message)?;
        let params = &event["message"]["params"];
        let url = match event["message"]["method"].as_str() {
            Some("Network.requestWillBeSent") => &params["request"]["url"],
            Some("Network.webSocketCreated" | "Network.webTransportCreated") => &params["url"],
            _ => continue,
        };
        let url = url.as_str().unwrap_or_default();
        // `data:` and `blob:` stay inside the tab; the driver's own blank page is not ours.
        if !["data:", "blob:", "about:", "chrome:"].iter().any(|own| url.starts_with(own)) {
            urls.push(url.to_owned());
        }
    }
    Ok(urls)
}
