//! `screenshots FOLDER`: the page at two widths, in both themes and both languages, for people to look at.
//! Each once from top to bottom, and once as the window first shows it (`-top`).

use oom_ledger_e2e::{Browser, Result, View};
use std::path::PathBuf;

#[tokio::main]
async fn main() -> Result {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: screenshots FOLDER")?);
    std::fs::create_dir_all(&folder)?;
    let browser = Browser::start().await?;
    for (width, view) in [("1280", View::DESK), ("390", View::PHONE)] {
        for (theme, view) in [("light", view), ("dark", view.dark())] {
            let page = browser.page(view).await?;
            page.open("").await?;
            page.js("localStorage.clear()").await?;
            page.open("").await?;
            for language in ["en", "zh"] {
                page.whole_picture(&folder.join(format!("{width}-{theme}-{language}.png"))).await?;
                page.picture(&folder.join(format!("{width}-{theme}-{language}-top.png"))).await?;
                let before = page.text("verdict").await?;
                page.click("lang-toggle").await?;
                page.changed("verdict", &before).await?;
            }
        }
    }
    browser.stop().await
}
