//! Taking an answer elsewhere, and bringing a config here.

use oom_ledger_e2e::{Page, Result, View, with_page};

/// Clicks `id` and gives what the page put on the clipboard. A headless browser grants none, so the test stands in.
async fn copied(page: &Page, id: &str) -> Result<String> {
    page.js(
        "Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText: (text) => {
            window.copied = text; return Promise.resolve(); } } }); window.copied = ''",
    )
    .await?;
    page.click(id).await?;
    page.until("something copied", async || Ok(page.js("return window.copied").await? != "")).await?;
    Ok(page.js("return window.copied").await?.as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn an_answer_is_copied_as_markdown() -> Result {
    with_page("markdown", View::DESK, async |page| {
        let text = copied(page, "copy-markdown").await?;
        assert!(text.starts_with("## OOM Ledger"), "{text}");
        for part in ["| weights |", "GiB", "#calculator/1."] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_copied_link_brings_the_answer_back() -> Result {
    with_page("copied-link", View::DESK, async |page| {
        let first = page.text("verdict").await?;
        page.choose("gpu-select", "l4").await?;
        let verdict = page.changed("verdict", &first).await?;
        let link = copied(page, "copy-link").await?;
        let rest = link.strip_prefix(page.site()).unwrap_or_default().to_owned();
        assert!(!rest.is_empty(), "{link} is not of {}", page.site());
        page.open(&rest).await?;
        assert_eq!(page.text("verdict").await?, verdict);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_a_clipboard_the_text_is_shown() -> Result {
    with_page("no-clipboard", View::DESK, async |page| {
        page.js("Object.defineProperty(navigator, 'clipboard', { configurable: true, value: undefined })")
            .await?;
        page.click("copy-markdown").await?;
        let shown = "const t = document.querySelector('.actions textarea'); return t ? t.value : ''";
        page.until("the text", async || {
            Ok(page.js(shown).await?.as_str().is_some_and(|t| t.starts_with("## OOM Ledger")))
        })
        .await
    })
    .await
}

#[tokio::test]
async fn a_link_of_a_newer_version_is_explained() -> Result {
    with_page("newer", View::DESK, async |page| {
        page.open("#calculator/9.eNpVzV0OQDAAA-C79HkkQ4Rd").await?;
        let said = page.text("error-summary").await?;
        assert!(said.contains('9'), "names the version: {said}");
        assert!(page.text("verdict").await?.contains("GiB"), "the page still answers");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_dropped_config_takes_the_place_of_the_preset() -> Result {
    with_page("dropped", View::DESK, async |page| {
        let first = page.text("verdict").await?;
        let script = r#"
            const config = JSON.stringify({ architectures: ["LlamaForCausalLM"], model_type: "llama",
                hidden_size: 2048, intermediate_size: 5632, num_hidden_layers: 22, num_attention_heads: 32,
                num_key_value_heads: 4, vocab_size: 32000, max_position_embeddings: 2048 });
            const data = new DataTransfer();
            data.items.add(new File([config], "config.json", { type: "application/json" }));
            const zone = document.querySelector("[data-testid=config-drop]");
            zone.closest("details").open = true;
            zone.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));"#;
        page.js(script).await?;
        page.changed("verdict", &first).await?;
        // 1,100,048,384 parameters of two bytes, and the rotary tables.
        let weights = page.text("ledger-row-weights").await?;
        assert!(weights.contains("2.05 GiB"), "{weights}");
        Ok(())
    })
    .await
}
