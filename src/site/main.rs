//! The OOM Ledger page. The only package that names leptos or web_sys; every figure comes from the core.

mod address;
mod answer;
mod app;
mod browser;
mod calculator;
mod form;
mod pages;
mod prefs;
mod words;

fn main() {
    console_error_panic_hook::set_once();
    leptos::mount::mount_to_body(app::App);
    browser::register_service_worker();
}
