//! Starts what a test needs and ends it again.

use crate::{Page, Result, problem, watch};
use oom_ledger_serve::Server;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::task::Poll;
use thirtyfour::common::capabilities::chromium::ChromiumLikeCapabilities;
use thirtyfour::{DesiredCapabilities, LoggingPrefsLogLevel, WebDriver};

/// The site is served below a path, as it would be on a shared host, so that an absolute address breaks.
const PREFIX: &str = "/some/where/";

/// How the page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Width of the window in CSS pixels.
    pub width: u32,
    /// Height of the window in CSS pixels.
    pub height: u32,
    /// Device pixels per CSS pixel.
    pub ratio: f64,
    /// Whether the system asks for dark.
    pub dark: bool,
}

impl View {
    /// A laptop.
    pub const DESK: View = View { width: 1280, height: 800, ratio: 1.0, dark: false };
    /// A phone.
    pub const PHONE: View = View { width: 390, height: 844, ratio: 2.0, dark: false };

    /// The same in a system that asks for dark.
    pub const fn dark(self) -> View {
        View { dark: true, ..self }
    }
}

/// A chromedriver process with one Chromium.
#[derive(Debug)]
pub struct Browser {
    driver: WebDriver,
    _process: Chromedriver,
    site: String,
}

impl Browser {
    /// Serves `dist/`, starts chromedriver on a free port and opens a window.
    ///
    /// Errors: no built site, no chromedriver, no Chromium.
    pub async fn start() -> Result<Browser> {
        let dist = std::env::var_os("OOM_LEDGER_DIST")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist"), PathBuf::from);
        let server = Server::bind(&dist, PREFIX, [0])?;
        let site = format!("http://{}{PREFIX}", server.address()?);
        std::thread::spawn(move || server.run());

        let (process, port) = chromedriver()?;
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), capabilities()?).await?;
        Ok(Browser { driver, _process: process, site })
    }

    /// A view on the site's page, not loaded yet.
    ///
    /// Errors: the browser is gone.
    pub async fn page(&self, view: View) -> Result<Page> {
        let page = Page::new(self.driver.clone(), self.site.clone(), view);
        page.size(view.height).await?;
        let scheme = if view.dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.driver.cdp().send_raw("Emulation.setEmulatedMedia", media).await?;
        Ok(page)
    }

    /// Closes the window and ends chromedriver.
    ///
    /// Errors: the browser is gone already.
    pub async fn stop(self) -> Result {
        Ok(self.driver.quit().await?)
    }
}

/// The process; ended when dropped, so that a failing test leaves none behind.
#[derive(Debug)]
struct Chromedriver(Child);

impl Drop for Chromedriver {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts chromedriver and reads from its first lines which port it chose.
fn chromedriver() -> Result<(Chromedriver, u16)> {
    let program = std::env::var_os("CHROMEDRIVER").unwrap_or_else(|| "chromedriver".into());
    let mut process = Command::new(program)
        .args(["--port=0", "--log-level=SEVERE"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| {
            problem(format!("chromedriver does not start ({e}); `.ci/tools.sh test` installs it"))
        })?;
    let output = process.stdout.take().ok_or_else(|| problem("chromedriver has no output"))?;
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next().transpose()? {
        if let Some(port) = line.strip_prefix("ChromeDriver was started successfully on port ") {
            let port = port.trim_end_matches('.').parse()?;
            // Read on, so that the pipe never fills.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok((Chromedriver(process), port));
        }
    }
    Err(problem("chromedriver ended before it named its port"))
}

fn capabilities() -> Result<thirtyfour::ChromeCapabilities> {
    let mut capabilities = DesiredCapabilities::chrome();
    for argument in [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--lang=en-US",
        // A request to any other host fails at once, and is still seen by the log.
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    ] {
        capabilities.add_arg(argument)?;
    }
    capabilities.set_logging_prefs("browser".to_owned(), LoggingPrefsLogLevel::All)?;
    capabilities.set_logging_prefs("performance".to_owned(), LoggingPrefsLogLevel::All)?;
    Ok(capabilities)
}

/// A failed assertion as an error: the window must be closed in order before the test ends.
async fn caught(test: impl Future<Output = Result>) -> Result {
    let mut test = pin!(test);
    std::future::poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| test.as_mut().poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(problem("an assertion failed, see above"))))
    })
    .await
}

/// Opens the page in `view`, runs `test` on it, then checks what holds after every test: nothing on the
/// console, no request to another origin. On failure leaves a picture in `target/e2e/<name>.png`.
///
/// Errors: what the test found, or what these checks found.
pub async fn with_page(name: &str, view: View, test: impl AsyncFn(&Page) -> Result) -> Result {
    let browser = Browser::start().await?;
    let page = browser.page(view).await?;
    let mut outcome = async {
        page.open("").await?;
        caught(test(&page)).await
    }
    .await;
    if outcome.is_ok() {
        outcome = watch::quiet(&page).await;
    }
    if outcome.is_err() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/e2e");
        std::fs::create_dir_all(&folder)?;
        page.picture(&folder.join(format!("{name}.png"))).await?;
    }
    browser.stop().await?;
    outcome
}
