//! The training half of the page.

use oom_ledger_e2e::{Page, Result, View, with_page};

async fn train(page: &Page) -> Result<String> {
    let first = page.text("verdict").await?;
    page.click("job-train").await?;
    page.changed("verdict", &first).await
}

#[tokio::test]
async fn a_step_is_shown_phase_by_phase_and_comes_back_by_its_address() -> Result {
    with_page("training", View::DESK, async |page| {
        let verdict = train(page).await?;
        for id in [
            "phase-bars",
            "ledger-row-gradients",
            "ledger-row-optimizer_states",
            "chart-tokens",
            "chart-batch",
        ] {
            let there =
                page.js(&format!("return document.querySelector('[data-testid={id}]') !== null")).await?;
            assert!(there == true, "no {id}");
        }
        // No option of a serving engine is left on the form.
        let serving = page.js("return document.querySelector('[id^=field-job-serve]') === null").await?;
        assert!(serving == true);
        page.until("the address", async || {
            Ok(page
                .js("return location.hash")
                .await?
                .as_str()
                .is_some_and(|h| h.starts_with("#calculator/1.")))
        })
        .await?;
        let address = page.js("return location.hash").await?.as_str().unwrap_or_default().to_owned();
        page.open(&address).await?;
        assert_eq!(page.text("verdict").await?, verdict);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn recomputation_frees_what_is_saved() -> Result {
    with_page("recompute", View::DESK, async |page| {
        train(page).await?;
        let row = page.text("ledger-row-saved_activations").await?;
        page.js("const s = document.getElementById('field-job-train-checkpointing'); s.value = 'full';
             s.dispatchEvent(new Event('change', { bubbles: true }))")
            .await?;
        page.changed("ledger-row-saved_activations", &row).await?;
        Ok(())
    })
    .await
}
