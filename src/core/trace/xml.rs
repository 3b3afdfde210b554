//! `nvidia-smi -q -x`: one document, or the many that a loop writes one after the other.

use super::cell::memory;
use super::importers::Input;
use super::rows::{Card, Rows};
use super::stamp;
use crate::units::Message;
use quick_xml::Reader;
use quick_xml::events::Event;

/// Whether the root element occurs.
pub fn sniff(input: &Input) -> bool {
    input.head().contains("<nvidia_smi_log")
}

/// Reads the documents. What is no well-formed XML ends its document, not the file.
pub fn read(input: &Input) -> Result<Rows, Message> {
    let mut rows = Rows::default();
    let mut from = 0;
    while let Some(start) = input.text[from..].find("<nvidia_smi_log").map(|at| from + at) {
        let end =
            input.text[start..].find("</nvidia_smi_log>").map(|at| start + at + "</nvidia_smi_log>".len());
        let line = |at: usize| u32::try_from(input.text[..at].matches('\n').count() + 1).unwrap_or(u32::MAX);
        rows.round += 1;
        let whole = document(&input.text[start..end.unwrap_or(input.text.len())], line(start), &mut rows);
        if end.is_none() || !whole {
            rows.warn(line(start), Message::new("trace.cut_document"));
        }
        from = end.unwrap_or(input.text.len());
    }
    Ok(rows)
}

/// One document; whether it was whole.
fn document(text: &str, line: u32, rows: &mut Rows) -> bool {
    let mut reader = Reader::from_str(text);
    let mut path: Vec<String> = Vec::new();
    let (mut time, mut card) = (None, Card::default());
    let (mut used, mut total, mut free) = (None, None, None);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
                if name == "gpu" {
                    card = Card::default();
                    let id = tag.attributes().flatten().find(|a| a.key.as_ref() == b"id");
                    card.bus = id.map(|a| String::from_utf8_lossy(&a.value).into_owned()).unwrap_or_default();
                } else if name == "fb_memory_usage" {
                    (used, total, free) = (None, None, None);
                }
                path.push(name);
                if path.len() > 64 {
                    return false;
                }
            }
            Ok(Event::Text(content)) => {
                let content = String::from_utf8_lossy(&content).trim().to_owned();
                let parts: Vec<&str> = path.iter().map(String::as_str).collect();
                let amount = || memory(&content, 1 << 20, false);
                match parts.as_slice() {
                    [.., "timestamp"] => time = time.or_else(|| stamp::long_date(&content)),
                    [_, "gpu", "product_name"] => card.name.clone_from(&content),
                    [_, "gpu", "uuid"] => card.uuid.clone_from(&content),
                    [.., "mig_device", "gpu_instance_id"] => card.part = format!("GI {content}"),
                    [.., "mig_device", "compute_instance_id"] => {
                        card.part =
                            format!("{} CI {content}", card.part.split(" CI").next().unwrap_or_default());
                    }
                    [.., "fb_memory_usage", "used"] => used = amount(),
                    [.., "fb_memory_usage", "total"] => total = amount(),
                    [.., "fb_memory_usage", "free"] => free = amount(),
                    _ => {}
                }
            }
            Ok(Event::End(_)) => match path.pop().as_deref() {
                Some("fb_memory_usage") => {
                    if let Some(used) = used {
                        rows.push(line, time, &card, used, total, free);
                    }
                }
                Some("mig_device") => card.part.clear(),
                None => return false,
                _ => {}
            },
            Ok(Event::Eof) => return path.is_empty(),
            Err(_) => return false,
            Ok(_) => {}
        }
    }
}
