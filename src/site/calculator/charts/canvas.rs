//! A canvas in device pixels, and what every chart needs around it.

use crate::browser;
use crate::prefs::Prefs;
use crate::words::now;
use leptos::html;
use leptos::prelude::*;
use oom_ledger_core::plot::{Frame, Look, NotDrawn, Words, palette};
use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, IntoDrawingArea};
use plotters_canvas::CanvasBackend;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;

/// The face of all chart text.
const FACE: &str = "system-ui, sans-serif";

/// Width and height of the canvas as laid out; changes when the page does.
pub fn size_of(canvas: NodeRef<html::Canvas>) -> RwSignal<(f64, f64)> {
    let size = RwSignal::new((0.0, 0.0));
    Effect::new(move || {
        let Some(element) = canvas.get() else { return };
        let follow = {
            let element = element.clone();
            Closure::<dyn FnMut()>::new(move || {
                let rect = element.get_bounding_client_rect();
                if size.get_untracked() != (rect.width(), rect.height()) {
                    size.set((rect.width(), rect.height()));
                }
            })
        };
        if let Ok(observer) = web_sys::ResizeObserver::new(follow.as_ref().unchecked_ref()) {
            observer.observe(&element);
            on_cleanup({
                let observer = send_wrapper(observer);
                move || observer.0.disconnect()
            });
        }
        // Lives as long as the observer, which the browser drops with the element.
        follow.forget();
    });
    size
}

/// The page has one thread; Leptos asks clean-ups to be `Send`.
struct OneThread<T>(send::SendWrapper<T>);

mod send {
    pub use leptos::__reexports::send_wrapper::SendWrapper;
}

fn send_wrapper<T>(value: T) -> OneThread<T> {
    OneThread(send::SendWrapper::new(value))
}

/// Keys of the words on a chart.
pub struct Keys {
    /// Under the horizontal axis.
    pub x: &'static str,
    /// Beside the vertical axis.
    pub y: &'static str,
    /// By the crossing point or frontier.
    pub crossing: &'static str,
}

/// Draws into `canvas` with `draw`, in the theme and language of now; tracks both, and the size.
pub fn draw(
    canvas: &web_sys::HtmlCanvasElement,
    size: (f64, f64),
    keys: &Keys,
    draw: impl FnOnce(&DrawingArea<CanvasBackend, Shift>, &Look<'_>) -> Result<Frame, NotDrawn>,
) -> Frame {
    let prefs = expect_context::<Prefs>();
    let ratio = browser::device_pixel_ratio();
    let theme = if prefs.dark.get() { palette::DARK } else { palette::LIGHT };
    let texts = [keys.x, keys.y, "site.device_total", "site.budget", keys.crossing, "site.here"].map(now);
    let words = Words {
        x: &texts[0],
        y: &texts[1],
        device: &texts[2],
        budget: &texts[3],
        crossing: &texts[4],
        here: &texts[5],
    };
    let (width, height) = size;
    if width < 40.0 || height < 40.0 {
        return Frame::default();
    }
    canvas.set_width((width * ratio).round() as u32);
    canvas.set_height((height * ratio).round() as u32);
    let Some(backend) = CanvasBackend::with_canvas_object(canvas.clone()) else { return Frame::default() };
    let look = Look { theme, ratio, font: FACE, words };
    draw(&backend.into_drawing_area(), &look).unwrap_or_else(|error| {
        leptos::logging::error!("{error}");
        Frame::default()
    })
}

/// Where the pointer is, in device pixels of the canvas.
pub fn pointer(event: &web_sys::PointerEvent) -> (f64, f64) {
    let ratio = browser::device_pixel_ratio();
    (f64::from(event.offset_x()) * ratio, f64::from(event.offset_y()) * ratio)
}
