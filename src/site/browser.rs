//! The browser, in the few words the page needs. Nothing here fails loudly: a browser without storage or
//! clipboard still shows the answer.

use gloo::storage::{LocalStorage, Storage};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;

/// What was kept under `key`.
pub fn kept(key: &str) -> Option<String> {
    LocalStorage::get(format!("oom-ledger.{key}")).ok()
}

/// Keeps `value` under `key`; a browser that forbids storage forgets it.
pub fn keep(key: &str, value: &str) {
    let _ = LocalStorage::set(format!("oom-ledger.{key}"), value);
}

/// Sets an attribute of the root element.
pub fn set_root(name: &str, value: &str) {
    if let Some(root) = document().document_element() {
        let _ = root.set_attribute(name, value);
    }
}

/// Whether the browser's first language is Chinese.
pub fn prefers_chinese() -> bool {
    window().navigator().language().is_some_and(|tag| tag.to_ascii_lowercase().starts_with("zh"))
}

/// Whether the system wants dark, followed.
pub fn system_dark() -> RwSignal<bool> {
    media("(prefers-color-scheme: dark)")
}

/// Whether the window is wide enough for two columns (as `calculator.css` has it), followed.
pub fn wide() -> RwSignal<bool> {
    media("(min-width: 60.01rem)")
}

fn media(query: &str) -> RwSignal<bool> {
    let query = window().match_media(query).ok().flatten();
    let signal = RwSignal::new(query.as_ref().is_some_and(web_sys::MediaQueryList::matches));
    if let Some(query) = query {
        let follow = Closure::<dyn Fn(web_sys::MediaQueryListEvent)>::new(
            move |event: web_sys::MediaQueryListEvent| signal.set(event.matches()),
        );
        query.set_onchange(Some(follow.as_ref().unchecked_ref()));
        // Lives as long as the page.
        follow.forget();
    }
    signal
}

/// Device pixels of one CSS pixel.
pub fn device_pixel_ratio() -> f64 {
    window().device_pixel_ratio().max(1.0)
}

/// The fragment of the address, without `#`.
pub fn fragment() -> String {
    window().location().hash().unwrap_or_default().trim_start_matches('#').to_owned()
}

/// Puts `fragment` into the address, as a new step of history or in place of this one; whether the browser did.
pub fn set_fragment(fragment: &str, new_step: bool) -> bool {
    let Ok(history) = window().history() else { return false };
    let address = format!("#{fragment}");
    let none = wasm_bindgen::JsValue::NULL;
    let done = if new_step {
        history.push_state_with_url(&none, "", Some(&address))
    } else {
        history.replace_state_with_url(&none, "", Some(&address))
    };
    done.is_ok()
}

/// The whole address.
pub fn address() -> String {
    window().location().href().unwrap_or_default()
}

/// Calls `act` on every step through history and every edit of the fragment.
pub fn on_address(act: impl Fn() + Clone + 'static) {
    let other = act.clone();
    let _ = window_event_listener(leptos::ev::popstate, move |_| act());
    let _ = window_event_listener(leptos::ev::hashchange, move |_| other());
}

/// Puts `text` on the clipboard; `done` hears whether it got there.
pub fn copy(text: &str, done: impl Fn(bool) + 'static) {
    let clipboard = js_sys::Reflect::get(&window().navigator(), &"clipboard".into());
    let usable = clipboard.is_ok_and(|c| !c.is_undefined() && !c.is_null());
    if !usable {
        done(false);
        return;
    }
    let promise = window().navigator().clipboard().write_text(text);
    leptos::task::spawn_local(async move {
        done(wasm_bindgen_futures::JsFuture::from(promise).await.is_ok());
    });
}

/// Lets the page work without a network after the first visit; a browser that has none of it goes without.
pub fn register_service_worker() {
    let navigator = window().navigator();
    let there = js_sys::Reflect::has(&navigator, &"serviceWorker".into()).unwrap_or(false);
    if there && window().is_secure_context() {
        let registered = navigator.service_worker().register("service-worker.js");
        leptos::task::spawn_local(async move {
            let _ = wasm_bindgen_futures::JsFuture::from(registered).await;
        });
    }
}

/// Moves the focus to the element of that id, unfolding what it lies in.
pub fn focus(id: &str) {
    let mut around = document().get_element_by_id(id);
    while let Some(element) = around {
        if element.tag_name().eq_ignore_ascii_case("details") {
            let _ = element.set_attribute("open", "");
        }
        around = element.parent_element();
    }
    if let Some(element) = document().get_element_by_id(id)
        && let Ok(element) = element.dyn_into::<web_sys::HtmlElement>()
    {
        let _ = element.focus();
    }
}

/// Keeps a file that is let go beside the place for it from being opened instead of the page.
pub fn keep_dropped_files_out() {
    let refuse = |event: web_sys::DragEvent| event.prevent_default();
    let _ = window_event_listener(leptos::ev::dragover, refuse);
    let _ = window_event_listener(leptos::ev::drop, refuse);
}

/// Scrolls the element of that id into view, no further than it takes.
pub fn show(id: &str) {
    if let Some(element) = document().get_element_by_id(id) {
        let options = web_sys::ScrollIntoViewOptions::new();
        options.set_block(web_sys::ScrollLogicalPosition::Nearest);
        element.scroll_into_view_with_scroll_into_view_options(&options);
    }
}

/// Runs `work` and leaves its time in the browser's own record (`performance.getEntriesByName`), where the
/// developer tools and the browser tests read it.
pub fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let Some(performance) = window().performance() else { return work() };
    let start = performance.now();
    let done = work();
    let options = js_sys::Object::new();
    let _ = js_sys::Reflect::set(&options, &"start".into(), &start.into());
    let _ = js_sys::Reflect::set(&options, &"end".into(), &performance.now().into());
    let measure = js_sys::Reflect::get(&performance, &"measure".into()).ok();
    if let Some(measure) = measure.and_then(|m| m.dyn_into::<js_sys::Function>().ok()) {
        let _ = measure.call2(&performance, &format!("oom-ledger.{name}").into(), &options);
    }
    done
}
