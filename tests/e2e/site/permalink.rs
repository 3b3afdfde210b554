//! The address holds the whole job.

use oom_ledger_e2e::{Result, View, with_page};

#[tokio::test]
async fn an_address_brings_the_same_answer_back() -> Result {
    with_page("permalink", View::DESK, async |page| {
        let first = page.text("verdict").await?;
        page.choose("gpu-select", "l4").await?;
        let changed = page.changed("verdict", &first).await?;
        let address = page.rest().await?;
        assert!(address.contains('#') || address.contains('?'), "the address holds nothing: {address}");

        page.open(&address).await?;
        assert_eq!(page.text("verdict").await?, changed);
        assert_eq!(page.value("gpu-select").await?, "l4");
        assert_eq!(page.rest().await?, address, "reading an address must not rewrite it");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn back_and_forward_walk_through_the_answers() -> Result {
    with_page("back", View::DESK, async |page| {
        let first = page.text("verdict").await?;
        page.choose("gpu-select", "l4").await?;
        let second = page.changed("verdict", &first).await?;
        page.driver().back().await?;
        assert_eq!(page.changed("verdict", &second).await?, first);
        assert_eq!(page.value("gpu-select").await?, "h100-80gb");
        page.driver().forward().await?;
        assert_eq!(page.changed("verdict", &first).await?, second);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_address_cut_in_half_is_explained() -> Result {
    with_page("cut", View::DESK, async |page| {
        let first = page.text("verdict").await?;
        page.choose("gpu-select", "l4").await?;
        page.changed("verdict", &first).await?;
        let address = page.rest().await?;
        let cut: String = address.chars().take(address.chars().count() / 2).collect();
        page.open(&cut).await?;
        let said = page.text("error-summary").await?;
        assert!(said.len() > 30, "a sentence that helps: {said}");
        assert_eq!(page.rest().await?, cut, "what was given stays");
        // And the page still works.
        page.choose("gpu-select", "a100-80gb").await?;
        assert!(page.text("verdict").await?.contains("GiB"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn back_returns_to_the_calculator_reached_by_a_link() -> Result {
    with_page("back-nav", View::DESK, async |page| {
        let first = page.text("verdict").await?;
        page.find("nav a:nth-child(2)").await?.click().await?;
        page.until("another page", async || Ok(!page.has("verdict").await?)).await?;
        assert!(!page.driver().title().await?.is_empty());
        let other = page.driver().title().await?;
        page.find("nav a:nth-child(1)").await?.click().await?;
        assert_eq!(page.text("verdict").await?, first);
        assert_ne!(page.driver().title().await?, other, "each page has a title of its own");
        page.choose("gpu-select", "l4").await?;
        let second = page.changed("verdict", &first).await?;
        page.driver().back().await?;
        assert_eq!(page.changed("verdict", &second).await?, first);
        assert_eq!(page.value("gpu-select").await?, "h100-80gb");
        Ok(())
    })
    .await
}
