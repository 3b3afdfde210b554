//! The page as a person meets it: find by `data-testid`, click, type, read.

use crate::{Result, View, problem};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use thirtyfour::{By, WebDriver, WebElement};

/// Longest wait for something to appear. Generous: a loaded machine compiles wasm slowly.
const PATIENCE: Duration = Duration::from_secs(20);

/// The one window.
#[derive(Debug)]
pub struct Page {
    driver: WebDriver,
    site: String,
    view: View,
}

impl Page {
    pub(crate) fn new(driver: WebDriver, site: String, view: View) -> Page {
        Page { driver, site, view }
    }

    /// The driver, for what this type does not cover.
    pub fn driver(&self) -> &WebDriver {
        &self.driver
    }

    /// Address under which the site is served.
    pub fn site(&self) -> &str {
        &self.site
    }

    /// Loads `rest` of the site's address from scratch and waits for the verdict.
    ///
    /// Errors: the page does not start.
    pub async fn open(&self, rest: &str) -> Result {
        // From an empty page, because a change of the fragment alone would not load anything.
        self.driver.goto("about:blank").await?;
        self.driver.goto(format!("{}{rest}", self.site)).await?;
        self.ready().await
    }

    /// Waits until the page shows a verdict or says what is wrong.
    ///
    /// Errors: it shows neither.
    pub async fn ready(&self) -> Result {
        let shown = "return !!document.querySelector('[data-testid=verdict], [data-testid=error-summary]')";
        self.until("a verdict", async || Ok(self.js(shown).await? == Value::Bool(true))).await
    }

    /// The element with that test id, waiting for it.
    ///
    /// Errors: it does not appear.
    pub async fn get(&self, id: &str) -> Result<WebElement> {
        self.find(&format!("[data-testid=\"{id}\"]")).await
    }

    /// The first element of a selector, waiting for it.
    ///
    /// Errors: it does not appear.
    pub async fn find(&self, selector: &str) -> Result<WebElement> {
        let start = Instant::now();
        loop {
            match self.driver.find(By::Css(selector)).await {
                Ok(element) => return Ok(element),
                Err(_) if start.elapsed() < PATIENCE => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(e) => return Err(problem(format!("no {selector} on the page: {e}"))),
            }
        }
    }

    /// Whether an element with that test id is on the page now.
    ///
    /// Errors: the browser is gone.
    pub async fn has(&self, id: &str) -> Result<bool> {
        Ok(!self.driver.find_all(By::Css(format!("[data-testid=\"{id}\"]"))).await?.is_empty())
    }

    /// The visible text of an element.
    ///
    /// Errors: it does not appear.
    pub async fn text(&self, id: &str) -> Result<String> {
        Ok(self.get(id).await?.text().await?)
    }

    /// Clicks.
    ///
    /// Errors: it does not appear, or something lies over it.
    pub async fn click(&self, id: &str) -> Result {
        Ok(self.get(id).await?.click().await?)
    }

    /// Puts `text` in place of what a field holds, by keys, as a person does.
    ///
    /// Errors: it does not appear, or takes no keys.
    pub async fn fill(&self, id: &str, text: &str) -> Result {
        let field = self.get(id).await?;
        field.click().await?;
        field.send_keys(thirtyfour::Key::Control + "a").await?;
        field.send_keys(thirtyfour::Key::Delete + "").await?;
        Ok(field.send_keys(text).await?)
    }

    /// Puts a long text into a field at once, as a paste does.
    ///
    /// Errors: it does not appear.
    pub async fn paste(&self, id: &str, text: &str) -> Result {
        let field = self.get(id).await?;
        let script = "const [field, text] = arguments; field.focus(); field.select();
            document.execCommand('insertText', false, text);";
        self.driver.execute(script, vec![field.to_json()?, Value::from(text)]).await?;
        Ok(())
    }

    /// What a field holds.
    ///
    /// Errors: it does not appear.
    pub async fn value(&self, id: &str) -> Result<String> {
        Ok(self.get(id).await?.prop("value").await?.unwrap_or_default())
    }

    /// Chooses the option of that value.
    ///
    /// Errors: there is none.
    pub async fn choose(&self, id: &str, value: &str) -> Result {
        self.get(id).await?;
        Ok(self.find(&format!("[data-testid=\"{id}\"] option[value=\"{value}\"]")).await?.click().await?)
    }

    /// Waits until the text of an element differs from `before`, and gives the new one.
    ///
    /// Errors: it stays.
    pub async fn changed(&self, id: &str, before: &str) -> Result<String> {
        self.until(&format!("{id} to change from {before:?}"), async || Ok(self.text(id).await? != before))
            .await?;
        self.text(id).await
    }

    /// Runs a script and gives what it returns.
    ///
    /// Errors: it throws.
    pub async fn js(&self, script: &str) -> Result<Value> {
        Ok(self.driver.execute(script, Vec::new()).await?.json().clone())
    }

    /// Waits for a condition.
    ///
    /// Errors: names `what` did not come.
    pub async fn until(&self, what: &str, condition: impl AsyncFn() -> Result<bool>) -> Result {
        let start = Instant::now();
        while !condition().await? {
            if start.elapsed() > PATIENCE {
                return Err(problem(format!("waited in vain for {what}")));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// The part of the address behind the site's own.
    ///
    /// Errors: the browser is gone.
    pub async fn rest(&self) -> Result<String> {
        let url = self.js("return location.href").await?;
        Ok(url.as_str().and_then(|u| u.strip_prefix(&self.site)).unwrap_or_default().to_owned())
    }

    /// Makes the window `height` CSS pixels high, all else as the view says.
    pub(crate) async fn size(&self, height: u32) -> Result {
        let View { width, ratio, .. } = self.view;
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": ratio, "mobile": width < 600,
        });
        self.driver.cdp().send_raw("Emulation.setDeviceMetricsOverride", metrics).await?;
        Ok(())
    }

    /// Saves what the window shows.
    ///
    /// Errors: the file cannot be written.
    pub async fn picture(&self, path: &Path) -> Result {
        Ok(self.driver.screenshot(path).await?)
    }

    /// Saves the page from top to bottom.
    ///
    /// Errors: the file cannot be written.
    pub async fn whole_picture(&self, path: &Path) -> Result {
        let height = self.js("return document.documentElement.scrollHeight").await?.as_u64().unwrap_or(0);
        self.size(u32::try_from(height)?.clamp(self.view.height, 12_000)).await?;
        // Charts draw again in the new size.
        tokio::time::sleep(Duration::from_millis(400)).await;
        let saved = self.picture(path).await;
        self.size(self.view.height).await?;
        saved
    }
}
