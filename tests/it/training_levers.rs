//! What-if of training: every suggestion is true of the step it proposes, and what frees nothing is said to.

use super::levers::changed;
use oom_ledger_core::memory::{PhaseId, Verdict};
use oom_ledger_core::plan::Suggestions;
use oom_ledger_core::plan::levers::{Cost, Suggestion, TRAINING_LEVERS};
use oom_ledger_core::share::{Scenario, advice_json, advice_rows, field, run};
use oom_ledger_core::text::{Lang, has};
use serde_json::{Value, json};

fn advice(document: &Value) -> Suggestions {
    Scenario::from_json(document.clone()).unwrap().resolve().unwrap().suggestions().unwrap()
}

fn lever<'a>(found: &'a Suggestions, id: &str) -> &'a Suggestion {
    found.levers.iter().find(|s| s.id == id).unwrap_or_else(|| panic!("{id}: {found:?}"))
}

/// Full fine-tuning in short sequences: parameters, gradients and states are the problem.
fn states() -> Value {
    json!({"model": {"preset": "qwen2.5-7b"}, "device": {"preset": "a100-40gb"},
           "job": {"train": {"micro_batch": 2, "seq_len": 256}}})
}

/// Long sequences, scores materialised: activations are the problem.
fn activations() -> Value {
    json!({"model": {"preset": "qwen2.5-0.5b"}, "device": {"preset": "rtx-3090"},
           "job": {"train": {"micro_batch": 8, "seq_len": 2048, "attention": "eager",
                             "precision": "bf16-mixed"}}})
}

fn overflows() -> Vec<Value> {
    vec![
        states(),
        activations(),
        // Adapters: the frozen base alone nearly fills the device.
        json!({"model": {"preset": "llama-3.1-8b"}, "device": {"preset": "rtx-4090"},
               "job": {"train": {"micro_batch": 4, "lora": {"rank": 16, "targets": "all-linear"}}}}),
        // Gradients of earlier passes stay; nothing is in half precision.
        json!({"model": {"preset": "qwen2.5-0.5b"}, "device": {"total_bytes": 8_589_934_592_u64},
               "job": {"train": {"micro_batch": 6, "seq_len": 512, "precision": "fp32",
                                 "gradient_accumulation": 4, "checkpointing": "full"}}}),
        // A neighbour.
        json!({"model": {"preset": "qwen2.5-0.5b"},
               "device": {"preset": "rtx-3060-12gb", "other_processes_bytes": 8_589_934_592_u64},
               "job": {"train": {"seq_len": 1024}}}),
    ]
}

#[test]
fn what_is_called_enough_is_enough() {
    for document in overflows() {
        let found = advice(&document);
        assert!(found.missing_bytes > 0, "{document}");
        assert!(found.levers.iter().any(|s| s.enough), "{document}");
        let before = run(&Scenario::from_json(document.clone()).unwrap()).unwrap();
        let room = |e: &oom_ledger_core::plan::Estimate| {
            i64::try_from(e.device.total_bytes).unwrap() - i64::try_from(e.peak_bytes).unwrap()
        };
        assert_eq!(room(&before), -found.missing_bytes);
        for lever in &found.levers {
            let after = run(&changed(&document, &lever.set)).unwrap();
            assert_eq!(after.verdict != Verdict::DoesNotFit, lever.enough, "{document} {lever:?}");
            assert_eq!(room(&after), lever.margin_bytes, "{document} {lever:?}");
            let gained = i64::try_from(lever.frees_bytes).unwrap() - i64::try_from(lever.adds_bytes).unwrap();
            assert_eq!(gained, room(&after) - room(&before), "{lever:?}");
            let nothing = lever.frees_bytes < 2 << 20 && !lever.enough;
            assert_eq!(nothing, lever.no_effect.is_some(), "{lever:?}");
        }
        let order: Vec<_> = found.levers.iter().map(|s| (!s.enough, s.no_effect.is_some(), s.cost)).collect();
        assert!(order.is_sorted(), "{order:?}");
        if !found.together.is_empty() {
            let set: Vec<_> = found.together.iter().flat_map(|i| found.levers[*i].set.clone()).collect();
            assert_ne!(run(&changed(&document, &set)).unwrap().verdict, Verdict::DoesNotFit, "{document}");
            assert!(found.levers.iter().all(|s| !s.enough || s.cost == Cost::Hardware), "{document}");
        }
    }
}

/// Where states are the problem, what saves activations frees nothing, and the phase is named.
#[test]
fn zeros_are_told() {
    let found = advice(&states());
    for id in ["micro_batch", "checkpointing", "train_attention"] {
        let zero = lever(&found, id);
        assert_eq!(zero.no_effect, Some(PhaseId::OptimizerStep), "{zero:?}");
        // The token ids of one sequence: the caller holds them through the step.
        assert_eq!(zero.frees_bytes, if id == "micro_batch" { 256 * 8 } else { 0 });
        assert!(!zero.enough);
    }
    assert!(lever(&found, "optimizer_8bit").frees_bytes > 0);
    assert!(found.levers.iter().all(|s| s.id != "train_loss"), "{found:?}");
    let last = advice_rows(Lang::En, &found).pop().unwrap();
    assert!(last.after.contains("the peak is in optimizer step"), "{last:?}");
    let json = advice_json(Lang::En, &found);
    let row = json["levers"].as_array().unwrap().iter().find(|l| l["id"] == "checkpointing").unwrap();
    assert_eq!(row["no_effect"], "optimizer_step");
    assert!(row["reason"].as_str().unwrap().contains("no effect"), "{row}");
    // With one sequence at a time, accumulation alone.
    let mut one = states();
    one["job"]["train"]["micro_batch"] = json!(1);
    let found = advice(&one);
    assert_eq!(lever(&found, "more_accumulation").frees_bytes, 0);
    assert!(found.levers.iter().all(|s| s.id != "micro_batch"));
    // Where activations are the problem none of these is a zero.
    let found = advice(&activations());
    for id in ["micro_batch", "checkpointing", "train_attention"] {
        assert!(lever(&found, id).frees_bytes > 0 && lever(&found, id).no_effect.is_none());
    }
}

/// The batch of an optimizer step stays what it was, and no larger micro-batch that divides it would fit.
#[test]
fn a_smaller_micro_batch_keeps_the_batch() {
    let document = json!({"model": {"preset": "qwen2.5-0.5b"}, "device": {"preset": "rtx-3090"},
        "job": {"train": {"micro_batch": 12, "seq_len": 2048, "gradient_accumulation": 2}}});
    let found = advice(&document);
    let smaller = lever(&found, "micro_batch");
    let (micro, passes) = (smaller.set[0].1.as_u64().unwrap(), smaller.set[1].1.as_u64().unwrap());
    assert_eq!(micro * passes, 24);
    assert!(smaller.enough);
    for larger in [2_u64, 3, 4, 6].into_iter().filter(|n| *n > micro) {
        let set = [
            ("job.train.micro_batch", json!(larger)),
            ("job.train.gradient_accumulation", json!(24 / larger)),
        ];
        assert_eq!(run(&changed(&document, &set)).unwrap().verdict, Verdict::DoesNotFit, "{larger}");
    }
}

/// What costs no accuracy stands before what does.
#[test]
fn no_accuracy_loss_comes_first() {
    let found = advice(&activations());
    let enough: Vec<_> = found.levers.iter().filter(|s| s.enough).collect();
    let first = enough.iter().position(|s| s.cost >= Cost::Accuracy).unwrap_or(enough.len());
    assert!(first > 0 && enough[first..].iter().all(|s| s.cost >= Cost::Accuracy), "{enough:?}");
}

#[test]
fn nothing_is_said_where_it_fits() {
    let found = advice(&json!({"model": {"preset": "qwen2.5-0.5b"}, "device": {"preset": "h100-80gb"},
        "job": {"train": {"seq_len": 512}}}));
    assert!(found.missing_bytes < 0 && found.levers.is_empty() && found.together.is_empty());
}

#[test]
fn every_lever_has_a_field_and_texts() {
    for lever in TRAINING_LEVERS {
        assert!(field(lever.field).is_some(), "{}", lever.field);
        assert!(has(&format!("lever.{}", lever.id)), "{}", lever.id);
        assert!(has(&format!("lever.{}.cost", lever.id)), "{}", lever.id);
    }
}
