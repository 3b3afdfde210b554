//! The answer is there at once, follows every input, and shows its working.

use oom_ledger_e2e::{Result, View, with_page};

#[tokio::test]
async fn the_first_page_answers_for_llama_on_vllm() -> Result {
    with_page("first", View::DESK, async |page| {
        let text = page.text("verdict").await?;
        assert!(text.contains("GiB"), "the verdict names bytes: {text}");
        assert!(page.value("model-search").await?.contains("Llama 3.1 8B"));
        assert_eq!(page.value("engine-select").await?, "vllm");
        assert_eq!(page.value("gpu-select").await?, "h100-80gb");
        // What vLLM itself prints for it ("Model loading took 14.99 GiB").
        let weights = page.text("ledger-row-weights").await?;
        assert!(weights.contains("14.99 GiB"), "{weights}");
        assert!(page.has("ledger-row-kv_cache").await?);
        Ok(())
    })
    .await
}
