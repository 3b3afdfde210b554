//! Charts are drawn sharply, follow every input in the same frame, and can be read without eyes or mouse.

use oom_ledger_e2e::{Page, Result, View, with_page};
use serde_json::Value;
use thirtyfour::Key;

const CHARTS: [&str; 3] = ["chart-tokens", "chart-batch", "chart-plane"];

/// Colours that a canvas shows, and its size in device pixels per CSS pixel.
async fn canvas(page: &Page, id: &str) -> Result<(u64, f64)> {
    page.get(id).await?;
    let script = format!(
        "const c = document.querySelector('[data-testid={id}]');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const seen = new Set();
        for (let i = 0; i < d.length; i += 4) seen.add((d[i] << 16) | (d[i + 1] << 8) | d[i + 2]);
        return [seen.size, c.width / c.getBoundingClientRect().width]"
    );
    let found = page.js(&script).await?;
    Ok((found[0].as_u64().unwrap_or(0), found[1].as_f64().unwrap_or(0.0)))
}

#[tokio::test]
async fn every_chart_is_drawn_in_device_pixels() -> Result {
    with_page("charts-sharp", View { ratio: 2.0, ..View::DESK }, async |page| {
        for id in CHARTS {
            let (colours, ratio) = canvas(page, id).await?;
            assert!(colours > 4, "{id} shows {colours} colours");
            assert!((ratio - 2.0).abs() < 0.02, "{id} has {ratio} device pixels for one of the page");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_input_reaches_the_charts_in_the_same_frame() -> Result {
    with_page("charts-frame", View::DESK, async |page| {
        page.get("chart-plane").await?;
        // The next frame's callbacks run before it is painted; what is there then is what gets shown.
        let script = "const done = arguments[arguments.length - 1];
            const pictures = () => ['chart-tokens', 'chart-batch', 'chart-plane'].map((id) =>
                document.querySelector(`[data-testid=${id}]`).toDataURL());
            const select = document.querySelector('[data-testid=gpu-select]');
            requestAnimationFrame(() => {
                const before = pictures();
                const start = performance.now();
                select.value = 'l4';
                select.dispatchEvent(new Event('input', { bubbles: true }));
                select.dispatchEvent(new Event('change', { bubbles: true }));
                requestAnimationFrame(() => {
                    const took = performance.now() - start;
                    done([took, ...pictures().map((p, i) => p !== before[i])]);
                });
            });";
        let found: Value = page.driver().execute_async(script, Vec::new()).await?.convert()?;
        for (i, id) in CHARTS.iter().enumerate() {
            assert_eq!(found[i + 1], Value::Bool(true), "{id} still shows the old answer: {found}");
        }
        println!("one input, the answer and three charts: {} ms", found[0]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_chart_is_read_by_keys_and_as_a_table() -> Result {
    with_page("charts-keys", View::DESK, async |page| {
        for id in CHARTS {
            let chart = page.get(id).await?;
            let label = chart.attr("aria-label").await?.unwrap_or_default();
            let described = chart.attr("aria-labelledby").await?.unwrap_or_default();
            assert!(!label.is_empty() || !described.is_empty(), "{id} has a name");
        }
        let text = "return document.body.innerText";
        page.js("document.querySelector('[data-testid=chart-tokens]').focus()").await?;
        page.driver().action_chain().send_keys(Key::Right).perform().await?;
        let first = page.js(text).await?;
        page.driver().action_chain().send_keys(Key::Right).perform().await?;
        page.until("a second reading", async || Ok(page.js(text).await? != first)).await?;
        let tables = page.js("return document.querySelectorAll('table').length").await?;
        assert!(tables.as_u64().unwrap_or(0) >= 3, "a table beside each chart: {tables}");
        Ok(())
    })
    .await
}
