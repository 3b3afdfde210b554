//! For everyone: axe, keyboard, small screens.

use oom_ledger_e2e::{Page, Result, View, problem, violations, with_page};
use thirtyfour::Key;

async fn axe_in_both_languages(page: &Page) -> Result {
    for language in ["first", "second"] {
        let found = violations(page).await?;
        assert!(found.is_empty(), "in the {language} language:\n{}", found.join("\n"));
        overflow(page).await?;
        let before = page.text("verdict").await?;
        page.click("lang-toggle").await?;
        page.changed("verdict", &before).await?;
    }
    Ok(())
}

/// States that a person gets into: an answer older than the form, a search without hits, all rows and folds open.
async fn axe_in_other_states(page: &Page) -> Result {
    let clean = async |state: &str| {
        let found = violations(page).await?;
        if found.is_empty() { Ok(()) } else { Err(problem(format!("{state}:\n{}", found.join("\n")))) }
    };
    // On a phone the inputs are folded away.
    page.js("document.querySelectorAll('.inputs details, details.inputs').forEach((d) => d.open = true)")
        .await?;
    page.fill("model-search", "no such model").await?;
    clean("a search without hits").await?;
    page.fill("model-search", "qwen").await?;
    page.get("model-option").await?;
    clean("an open list of models").await?;
    page.driver().action_chain().send_keys(Key::Escape).perform().await?;
    page.fill("gpu-bytes", "eighty").await?;
    page.get("error-summary").await?;
    clean("an older answer").await?;
    page.fill("gpu-bytes", "80 GiB").await?;
    page.until("the error to go", async || Ok(!page.has("error-summary").await?)).await?;
    let open = "document.querySelectorAll('[data-testid=ledger-table] .open').forEach((b) => b.click());
        document.querySelectorAll('main details').forEach((d) => d.open = true)";
    page.js(open).await?;
    page.get("working-weights").await?;
    clean("every working and table open").await?;
    overflow(page).await
}

#[tokio::test]
async fn axe_finds_nothing_in_other_states() -> Result {
    with_page("axe-states-light", View::DESK, axe_in_other_states).await
}

#[tokio::test]
async fn axe_finds_nothing_in_other_states_on_a_dark_phone() -> Result {
    with_page("axe-states-dark", View::PHONE.dark(), axe_in_other_states).await
}

#[tokio::test]
async fn the_list_of_models_opens_on_the_one_in_use_and_follows_the_keys() -> Result {
    with_page("models", View::DESK, async |page| {
        let name = page.value("model-search").await?;
        page.click("model-search").await?;
        page.get("model-option").await?;
        assert_eq!(page.value("model-search").await?, name, "opening the list keeps the name");
        let seen = "const box = document.querySelector('#model-options').getBoundingClientRect();
            const own = document.querySelector('#model-options [aria-selected=true]');
            const at = own.getBoundingClientRect();
            return [own.innerText, at.top >= box.top - 1 && at.bottom <= box.bottom + 1]";
        // Scrolled in the frame after it was reached.
        let in_view =
            async || page.until("the option in view", async || Ok(page.js(seen).await?[1] == true)).await;
        in_view().await?;
        let first = page.js(seen).await?;
        assert!(first[0].as_str().unwrap_or_default().contains(&name), "{first}");
        for _ in 0..25 {
            page.driver().action_chain().send_keys(Key::Down).perform().await?;
        }
        in_view().await?;
        assert_ne!(page.js(seen).await?[0], first[0]);
        Ok(())
    })
    .await
}

/// Nothing is wider than the window.
async fn overflow(page: &Page) -> Result {
    let script = "const room = document.documentElement.clientWidth;
        return [document.documentElement.scrollWidth - room,
            [...document.querySelectorAll('body *')].filter((e) => {
                for (let p = e.parentElement; p; p = p.parentElement)
                    if (getComputedStyle(p).overflowX !== 'visible') return false;
                return e.getBoundingClientRect().right > room + 1;
            }).map((e) => e.outerHTML.slice(0, 100)).slice(0, 5)]";
    let found = page.js(script).await?;
    assert!(found[0].as_i64().unwrap_or(1) <= 0, "the page scrolls sideways: {found}");
    Ok(())
}

#[tokio::test]
async fn axe_finds_nothing_on_a_desk() -> Result {
    with_page("axe-desk-light", View::DESK, axe_in_both_languages).await
}

#[tokio::test]
async fn axe_finds_nothing_on_a_desk_in_the_dark() -> Result {
    with_page("axe-desk-dark", View::DESK.dark(), axe_in_both_languages).await
}

#[tokio::test]
async fn axe_finds_nothing_on_a_phone() -> Result {
    with_page("axe-phone-light", View::PHONE, axe_in_both_languages).await
}

#[tokio::test]
async fn axe_finds_nothing_on_a_phone_in_the_dark() -> Result {
    with_page("axe-phone-dark", View::PHONE.dark(), axe_in_both_languages).await
}

/// Presses Tab until the element with that test id has the focus.
async fn tab_to(page: &Page, id: &str) -> Result {
    let focused = "const e = document.activeElement; return e && e.closest('[data-testid]')
        ? e.closest('[data-testid]').dataset.testid : ''";
    for _ in 0..80 {
        page.driver().action_chain().send_keys(Key::Tab).perform().await?;
        if page.js(focused).await? == id {
            return Ok(());
        }
    }
    Err(problem(format!("Tab never reaches {id}")))
}

#[tokio::test]
async fn the_keyboard_alone_is_enough() -> Result {
    with_page("keyboard", View::DESK, async |page| {
        let first = page.text("verdict").await?;
        let keys = async |text: &str| page.driver().action_chain().send_keys(text).perform().await;
        tab_to(page, "model-search").await?;
        page.driver()
            .action_chain()
            .key_down(Key::Control)
            .send_keys("a")
            .key_up(Key::Control)
            .perform()
            .await?;
        keys("qwen2.5 7b").await?;
        page.get("model-option").await?;
        page.driver().action_chain().send_keys(Key::Enter).perform().await?;
        let second = page.changed("verdict", &first).await?;
        assert!(page.value("model-search").await?.contains("Qwen2.5 7B"));

        tab_to(page, "gpu-select").await?;
        page.driver().action_chain().send_keys(Key::Down).perform().await?;
        page.changed("verdict", &second).await?;

        tab_to(page, "ledger-row-weights").await?;
        page.driver().action_chain().send_keys(Key::Enter).perform().await?;
        assert!(page.get("working-weights").await?.is_displayed().await?);
        Ok(())
    })
    .await
}
