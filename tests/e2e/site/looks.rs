//! Language, theme, and what a reload keeps.

use oom_ledger_e2e::{Page, Result, View, with_page};

fn is_chinese(text: &str) -> bool {
    text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
}

async fn background(page: &Page) -> Result<String> {
    Ok(page.js("return getComputedStyle(document.body).backgroundColor").await?.to_string())
}

#[tokio::test]
async fn the_language_changes_everywhere_and_stays() -> Result {
    with_page("language", View::DESK, async |page| {
        let english = page.text("verdict").await?;
        assert!(!is_chinese(&english), "{english}");
        page.click("lang-toggle").await?;
        assert!(is_chinese(&page.changed("verdict", &english).await?));
        let visible = page.js("return document.documentElement.lang").await?;
        assert!(visible.as_str().unwrap_or("").starts_with("zh"), "{visible}");
        assert!(is_chinese(&page.text("ledger-table").await?));

        page.driver().refresh().await?;
        page.ready().await?;
        assert!(is_chinese(&page.text("verdict").await?), "the choice is kept");
        page.click("lang-toggle").await?;
        page.until("English again", async || Ok(page.text("verdict").await? == english)).await
    })
    .await
}

#[tokio::test]
async fn the_theme_follows_the_system_and_can_be_set() -> Result {
    with_page("theme", View::DESK.dark(), async |page| {
        let dark = background(page).await?;
        let chart = "return document.querySelector('[data-testid=chart-tokens]').toDataURL()";
        let drawn_dark = page.js(chart).await?;
        let mut seen = vec![dark.clone()];
        for _ in 0..3 {
            page.click("theme-toggle").await?;
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            let now = background(page).await?;
            if now != dark && seen.len() == 1 {
                seen.push(now);
                assert_ne!(page.js(chart).await?, drawn_dark, "the chart is drawn again in the new colours");
                page.driver().refresh().await?;
                page.ready().await?;
                assert_eq!(background(page).await?, seen[1], "the choice is kept");
            }
        }
        assert_eq!(seen.len(), 2, "the switch changes the background: {seen:?}");
        Ok(())
    })
    .await
}
