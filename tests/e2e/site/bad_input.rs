//! Bad input gets a sentence that helps, and what was typed stays.

use oom_ledger_e2e::{Page, Result, View, with_page};

/// Pastes `text` as a config and gives what the page says; the text must still be there.
async fn said_of(page: &Page, text: &str) -> Result<String> {
    // Behind a summary line until it is wanted.
    page.js("document.querySelector('[data-testid=config-text]').closest('details').open = true").await?;
    page.paste("config-text", text).await?;
    let said = page.text("error-summary").await?;
    let kept = page.value("config-text").await?;
    assert!(kept == text, "what was typed stays ({} of {} bytes did)", kept.len(), text.len());
    Ok(said)
}

#[tokio::test]
async fn configs_that_are_none() -> Result {
    with_page("bad-config", View::DESK, async |page| {
        let said = said_of(page, "{\"model_type\": \"llama\", ").await?;
        assert!(said.contains("JSON"), "{said}");
        let said = said_of(
            page,
            "{\"architectures\": [\"ResNetForImageClassification\"], \"model_type\": \"resnet\"}",
        );
        let said = said.await?;
        assert!(said.contains("resnet") || said.contains("ResNet"), "names what was given: {said}");
        let said = said_of(page, "[1, 2, 3]").await?;
        assert!(said.len() > 30, "{said}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_config_of_five_megabytes() -> Result {
    with_page("big-config", View::DESK, async |page| {
        let rows: Vec<String> = (0..230_000).map(|i| format!("\"id_{i}\": \"LABEL_{i}\"")).collect();
        let text = format!("{{\"model_type\": \"resnet\", \"id2label\": {{{}}}}}", rows.join(","));
        assert!(text.len() > 5_000_000, "{}", text.len());
        let said = said_of(page, &text).await?;
        assert!(said.len() > 30, "{said}");
        assert!(said.len() < 2_000, "not the whole document again");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn sizes_that_cannot_be() -> Result {
    with_page("bad-sizes", View::DESK, async |page| {
        for text in ["0", "-5", "99999999999999999999999", "eighty", "1e999"] {
            page.fill("gpu-bytes", text).await?;
            page.get("error-summary").await?;
            assert_eq!(page.value("gpu-bytes").await?, text);
        }
        page.fill("gpu-bytes", "24 GiB").await?;
        page.until("the error to go", async || Ok(!page.has("error-summary").await?)).await?;
        assert!(page.text("verdict").await?.contains("GiB"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_file_too_large_is_named_and_one_beside_the_place_for_it_is_kept_out() -> Result {
    with_page("bad-file", View::DESK, async |page| {
        let verdict = page.text("verdict").await?;
        let script = r#"
            const dropped = (target, file) => {
                const data = new DataTransfer();
                data.items.add(file);
                const event = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data });
                target.dispatchEvent(event);
                return event.defaultPrevented;
            };
            const large = new File([new Uint8Array(33 << 20)], "model.json");
            const zone = document.querySelector("[data-testid=config-drop]");
            dropped(zone, large);
            return dropped(document.querySelector("footer"), new File(["{}"], "config.json"));"#;
        assert_eq!(page.js(script).await?, true, "the browser would have opened the file");
        let said = page.text("error-summary").await?;
        assert!(said.contains("model.json") && said.contains("32.0 MiB"), "{said}");
        assert_eq!(page.text("verdict").await?, verdict, "the form is as it was");
        Ok(())
    })
    .await
}
