//! What could be changed, and that one click changes it.

use oom_ledger_e2e::{Page, Result, View, with_page};

async fn shown(page: &Page, selector: &str) -> Result<bool> {
    Ok(page.js(&format!("return document.querySelector('{selector}') !== null")).await? == true)
}

#[tokio::test]
async fn a_lever_is_applied_by_a_click() -> Result {
    with_page("advice", View::DESK, async |page| {
        assert!(!shown(page, "[data-testid=advice]").await?, "advice where nothing is missing");
        let first = page.text("verdict").await?;
        page.choose("gpu-select", "rtx-3060-12gb").await?;
        page.changed("verdict", &first).await?;
        page.until("advice", async || shown(page, "[data-testid=advice] tr.enough button").await).await?;
        let before = page.text("verdict").await?;
        let lever = page
            .js("return document.querySelector('[data-testid=advice] tr.enough code').textContent")
            .await?;
        page.js("document.querySelector('[data-testid=advice] tr.enough button').click()").await?;
        let after = page.changed("verdict", &before).await?;
        assert!(!after.starts_with("does not fit"), "{lever}: {after}");
        // Back undoes it, as one step.
        page.js("history.back()").await?;
        page.until("the job as it was", async || Ok(page.text("verdict").await? == before)).await
    })
    .await
}
