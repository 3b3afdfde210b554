//! What follows from printed figures, where all that it takes is printed.

use super::fact::Evidence;
use serde_json::{Map, Value, json};

impl Evidence {
    /// Figures that follow from those of one message: held by others, outside the allocator, missing, unallocated.
    ///
    /// `derived.other` = total − free − this process; `derived.non_torch` = this process − allocated − unallocated
    /// (allocated counts private pools); `derived.shortfall` = asked − free, where more was asked than was free;
    /// `derived.unallocated_share` = unallocated / (allocated + unallocated).
    pub fn derived(&self) -> Vec<(&'static str, Value)> {
        let bytes = |key: &str| self.bytes(key);
        let mut map = Map::new();
        let mut put = |name: &str, value: Option<i64>| {
            if let Some(value) = value.filter(|v| *v >= 0) {
                map.insert(name.to_owned(), json!(value));
            }
        };
        let (total, free, own) = (bytes("total_capacity"), bytes("free"), bytes("this_process"));
        let (allocated, unallocated) = (bytes("allocated_by_pytorch"), bytes("reserved_unallocated"));
        let less = |a: Option<i64>, b: Option<i64>| Some(a?.saturating_sub(b?));
        put("other", less(less(total, free), own));
        put("non_torch", less(less(own, allocated), unallocated));
        put("shortfall", less(bytes("tried_to_allocate"), free));
        if let (Some(a), Some(u)) = (allocated, unallocated)
            && a.saturating_add(u) > 0
        {
            let share = u as f64 / a.saturating_add(u) as f64;
            map.insert("unallocated_share".to_owned(), json!((share * 1e4).round() / 1e4));
        }
        if let (Some(tried), Some(total)) = (bytes("tried_to_allocate"), total) {
            map.insert("request_exceeds_device".to_owned(), json!(tried > total));
        }
        if map.is_empty() { Vec::new() } else { vec![("derived", Value::Object(map))] }
    }
}
