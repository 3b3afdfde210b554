//! Headers of checkpoint files: read from a prefix, checked, added up; hostile ones refused.

use super::checkpoint_bytes::{Gguf, V, safetensors};
use oom_ledger_core::model::checkpoint::{Checkpoint, FIELD, Header, Meta, Shard, read_header, together};
use oom_ledger_core::units::Problem;
use proptest::prelude::*;

/// Feeds a file as a reader of a disk would: what is asked for, and no more. Also how many bytes that took.
fn fed(name: &str, bytes: &[u8], length: u64) -> Result<(Checkpoint, usize), Problem> {
    let mut have = 0;
    loop {
        match read_header(name, &bytes[..have.min(bytes.len())], length)? {
            Header::Whole(checkpoint) => return Ok((checkpoint, have)),
            Header::Need(more) => {
                assert!(more > have as u64 && more <= length, "{more} of {length}, had {have}");
                have = more as usize;
                // The data behind the header is not looked at: zeros do.
                assert!(have <= bytes.len() + (1 << 20), "asks for {more}, header has {}", bytes.len());
            }
        }
        if have > bytes.len() {
            let mut all = bytes.to_vec();
            all.resize(have, 0);
            match read_header(name, &all, length)? {
                Header::Whole(checkpoint) => return Ok((checkpoint, have)),
                Header::Need(more) => panic!("asks for {more} beyond its header of {}", bytes.len()),
            }
        }
    }
}

fn read(name: &str, bytes: &[u8], length: u64) -> Result<Checkpoint, Problem> {
    fed(name, bytes, length).map(|(checkpoint, _)| checkpoint)
}

fn refused(name: &str, bytes: &[u8], length: u64) -> &'static str {
    let problem = read(name, bytes, length).unwrap_err();
    assert_eq!(problem.field, FIELD);
    problem.message.id
}

#[test]
fn a_safetensors_header_gives_names_shapes_and_bytes() {
    let rows = [
        ("model.embed_tokens.weight", "BF16", vec![1000, 64], 128_000),
        ("model.layers.0.mlp.up_proj.weight", "F8_E4M3", vec![128, 64], 8192),
        ("blocks", "F4", vec![3, 2], 3),
        ("scalar", "F32", vec![], 4),
        ("none", "I64", vec![0, 4], 0),
    ];
    let (header, length) = safetensors(&rows);
    let (checkpoint, had) = fed("model.safetensors", &header, length).unwrap();
    assert_eq!(had, header.len());
    assert_eq!(checkpoint.bytes().unwrap(), 128_000 + 8192 + 3 + 4);
    let names: Vec<_> = checkpoint.tensors.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, rows.iter().map(|r| r.0).collect::<Vec<_>>());
    assert_eq!(checkpoint.tensors[1].shape, [128, 64]);
    assert_eq!(checkpoint.metadata["format"], Meta::Text("pt".into()));
    assert!(checkpoint.warnings.is_empty());
    // A download that has not ended, and a file with something behind it: counted, and said.
    for (given, id) in [(length - 1, "checkpoint.data_cut"), (length + 1, "checkpoint.data_over")] {
        let checkpoint = read("model.safetensors", &header, given).unwrap();
        assert_eq!(checkpoint.warnings[0].id, id);
        assert_eq!(checkpoint.bytes().unwrap(), 136_199);
    }
}

#[test]
fn hostile_safetensors_headers_are_refused() {
    let file = |json: &str| {
        let mut out = (json.len() as u64).to_le_bytes().to_vec();
        out.extend(json.as_bytes());
        out
    };
    let entry = |rest: &str| file(&format!("{{\"w\": {{{rest}}}}}"));
    for rest in [
        r#""dtype":"BF16","shape":[2,2],"data_offsets":[0,9]"#,
        r#""dtype":"BF16","shape":[2,2],"data_offsets":[8,0]"#,
        r#""dtype":"BF16","shape":[2,2],"data_offsets":[8,16]"#,
        r#""dtype":"BF16","shape":[-2,2],"data_offsets":[0,8]"#,
        r#""dtype":"BF16","shape":[4294967296,4294967296],"data_offsets":[0,8]"#,
        r#""dtype":"BF16","shape":[2,2],"data_offsets":[0,8,9]"#,
        r#""dtype":"BF16","shape":[2,2],"data_offsets":[0,1e30]"#,
        r#""dtype":7,"shape":[2,2],"data_offsets":[0,8]"#,
        r#""shape":[2,2],"data_offsets":[0,8]"#,
        r#""dtype":"BF16","data_offsets":[0,8]"#,
    ] {
        assert_eq!(refused("w.safetensors", &entry(rest), 1 << 20), "checkpoint.tensor", "{rest}");
    }
    let overlap = r#"{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},
        "b":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}}"#;
    assert_eq!(refused("w.safetensors", &file(overlap), 1 << 20), "checkpoint.tensor");
    let edge = format!(r#"{{"a":{{"dtype":"NEW","shape":[1],"data_offsets":[0,{}]}}}}"#, u64::MAX);
    assert_eq!(refused("w.safetensors", &file(&edge), 1 << 20), "checkpoint.header_cut");
    assert_eq!(refused("w.safetensors", &file("{\"w\": "), 1 << 20), "checkpoint.header_broken");
    assert_eq!(refused("w.safetensors", &file("{\"\u{0}"), 1 << 20), "checkpoint.header_broken");
    let mut bad_name = file(r#"{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}"#);
    bad_name[10] = 0xFF;
    assert_eq!(refused("w.safetensors", &bad_name, 1 << 20), "checkpoint.header_broken");
    // Deep nesting must not overflow the stack.
    let deep = format!("{{\"w\":{}", "[".repeat(100_000));
    assert_eq!(refused("w.safetensors", &file(&deep), 1 << 20), "checkpoint.header_broken");
    // A header longer than the file, one longer than the format allows, and eight other bytes.
    assert_eq!(refused("w.safetensors", &file("{}")[..9], 9), "checkpoint.header_cut");
    assert_eq!(refused("w.safetensors", &[0xFF; 64], 64), "checkpoint.not_one");
    assert_eq!(
        refused("w.safetensors", &[5, 0, 0, 0, 0, 0, 0, 0, b'[', b'1', b']', 0, 0], 13),
        "checkpoint.not_one"
    );
    assert_eq!(refused("w.safetensors", b"", 0), "checkpoint.empty");
    assert_eq!(refused("w.safetensors", b"12", 2), "checkpoint.not_one");
    assert_eq!(refused("w.bin", b"PK\x03\x04aaaaaaaa", 12), "checkpoint.is_pickle");
    assert_eq!(
        refused("w.safetensors", b"version https://git-lfs.github.com/spec/v1\n", 43),
        "checkpoint.is_pointer"
    );
    assert_eq!(refused("w.bin", b"tjggaaaaaaaaaaaa", 16), "checkpoint.is_old_ggml");
}

#[test]
fn a_gguf_header_gives_metadata_and_tensors_in_every_version() {
    for version in 1..=3 {
        let gguf = Gguf::new(version)
            .with("general.architecture", V::Text("llama"))
            .with("llama.block_count", V::U32(2))
            .with("llama.context_length", V::U64(4096))
            .with("llama.rope.freq_base", V::F32(500_000.0))
            .with("llama.negative", V::I32(-4))
            .with("tokenizer.ggml.tokens", V::Words(70_000))
            .with("llama.attention.head_count_kv", V::Numbers(&[8, 4]))
            .with("llama.attention.sliding_window_pattern", V::Flags(&[true, false]))
            .with("nested", V::Nested)
            .with("flag", V::Bool(true))
            .tensor("token_embd.weight", 12, &[512, 70_000], 70_000 * 288)
            .tensor("output_norm.weight", 0, &[512], 2048)
            .tensor("blk.0.ffn_down_exps.weight", 39, &[64, 32, 8], 64 / 32 * 17 * 32 * 8)
            .tensor("blk.0.attn_q.weight", 30, &[512, 512], 524_288);
        let (header, length) = gguf.bytes();
        let checkpoint = read("m.gguf", &header, length).unwrap();
        assert_eq!(checkpoint.warnings, [], "version {version}");
        let m = &checkpoint.metadata;
        assert_eq!(m["general.architecture"].text(), Some("llama"));
        assert_eq!(m["llama.block_count"].whole(), Some(2));
        assert_eq!(m["llama.context_length"].whole(), Some(4096));
        assert_eq!(m["llama.rope.freq_base"].real(), Some(500_000.0));
        assert_eq!(m["llama.negative"], Meta::Real(-4.0));
        assert_eq!(m["tokenizer.ggml.tokens"], Meta::Length(70_000));
        assert_eq!(m["llama.attention.head_count_kv"].numbers(), Some(&[8, 4][..]));
        assert_eq!(m["llama.attention.sliding_window_pattern"].numbers(), Some(&[1, 0][..]));
        assert_eq!(m["nested"].length(), Some(1));
        assert_eq!(checkpoint.bytes().unwrap(), 70_000 * 288 + 2048 + 17 * 512 + 524_288);
        assert_eq!(checkpoint.tensors[0].shape, [70_000, 512]);
        assert_eq!(checkpoint.tensors[2].dtype, "MXFP4");
        let cut = read("m.gguf", &header, length - 64).unwrap();
        assert_eq!(cut.warnings[0].id, "checkpoint.data_cut");
        assert_eq!(
            refused("m.gguf", &header[..header.len() - 1], header.len() as u64 - 1),
            "checkpoint.header_cut"
        );
    }
}

#[test]
fn a_tensor_of_an_unknown_type_counts_as_its_place_says() {
    let gguf =
        Gguf::new(3).tensor("a", 250, &[100], 96).tensor("b", 0, &[8], 32).tensor("c", 251, &[100], 64);
    let (header, length) = gguf.bytes();
    let checkpoint = read("m.gguf", &header, length).unwrap();
    assert_eq!(checkpoint.tensors.iter().map(|t| t.bytes).collect::<Vec<_>>(), [96, 32, 64]);
    assert_eq!(checkpoint.warnings[0].id, "checkpoint.type_unknown");
}

#[test]
fn hostile_gguf_headers_are_refused_without_allocating_what_they_claim() {
    let huge = 1 << 40;
    let one = |gguf: Gguf| refused("m.gguf", &gguf.bytes().0, huge);
    assert_eq!(one(Gguf::new(3).raw(b"a\xFF", 0, &[8], 0)), "checkpoint.tensor");
    assert_eq!(one(Gguf::new(3).raw(b"a", 12, &[8], 0)), "checkpoint.tensor");
    assert_eq!(one(Gguf::new(3).raw(b"a", 0, &[u64::MAX, 2], 0)), "checkpoint.tensor");
    assert_eq!(one(Gguf::new(3).raw(b"a", 0, &[1 << 62], 0)), "checkpoint.tensor");
    assert_eq!(one(Gguf::new(3).raw(b"a", 0, &[1; 5], 0)), "checkpoint.tensor");
    assert_eq!(one(Gguf::new(3).raw(b"a", 0, &[8], 7)), "checkpoint.tensor");
    assert_eq!(one(Gguf::new(3).raw(b"a", 0, &[8], 0).raw(b"b", 0, &[8], 0)), "checkpoint.tensor");
    assert_eq!(one(Gguf::new(3).with("general.alignment", V::U32(0))), "checkpoint.tensor");
    assert_eq!(one(Gguf::new(3).with("general.alignment", V::U32(33))), "checkpoint.tensor");
    let mut list = Gguf::new(3);
    // A list that claims 2^60 words, and one of an unknown type.
    for (kind, claimed, id) in [(8u32, 1u64 << 60, "checkpoint.header_cut"), (77, 1, "checkpoint.tensor")] {
        list.pairs = vec![(
            "k".to_owned(),
            [9u32.to_le_bytes().to_vec(), kind.to_le_bytes().to_vec(), claimed.to_le_bytes().to_vec()]
                .concat(),
        )];
        let (bytes, _) = list.bytes();
        assert_eq!(refused("m.gguf", &bytes, bytes.len() as u64), id);
    }
    // Counts that claim everything, names of 2^63 bytes.
    for at in [8, 16] {
        let (mut bytes, _) = Gguf::new(3).with("k", V::U32(1)).tensor("a", 0, &[8], 32).bytes();
        bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        let length = bytes.len() as u64;
        assert!(["checkpoint.header_cut", "checkpoint.tensor"].contains(&refused("m.gguf", &bytes, length)));
    }
    let (mut bytes, length) = Gguf::new(3).bytes();
    bytes[4..8].copy_from_slice(&[0, 0, 0, 3]);
    assert_eq!(refused("m.gguf", &bytes, length), "checkpoint.big_endian");
    bytes[4..8].copy_from_slice(&[9, 0, 0, 0]);
    assert_eq!(refused("m.gguf", &bytes, length), "checkpoint.gguf_version");
}

#[test]
fn shards_add_up_and_missing_ones_are_named() {
    let part = |n: u64| {
        let name = format!("model-0000{n}-of-00003.safetensors");
        let (header, length) = safetensors(&[(&format!("t{n}"), "BF16", vec![n, 10], 20 * n)]);
        (name.clone(), read(&name, &header, length).unwrap())
    };
    let all = together(vec![part(2), part(1), part(3)]).unwrap();
    assert_eq!((all.bytes().unwrap(), all.missing.len(), all.tensors.len()), (120, 0, 3));
    let some = together(vec![part(2), part(3)]).unwrap();
    assert_eq!(
        (some.bytes().unwrap(), some.missing),
        (100, vec!["model-00001-of-00003.safetensors".to_owned()])
    );
    let twice = together(vec![part(2), part(2)]).unwrap();
    assert_eq!((twice.bytes().unwrap(), twice.warnings[0].id), (40, "checkpoint.twice"));

    let index = serde_json::json!({"metadata": {"total_size": 120},
        "weight_map": {"t1": "model-00001-of-00003.safetensors", "t2": "model-00002-of-00003.safetensors"}});
    let text = index.to_string();
    let index = |text: &str| read("model.safetensors.index.json", text.as_bytes(), text.len() as u64);
    let alone = together(vec![("i".to_owned(), index(&text).unwrap())]).unwrap();
    assert_eq!((alone.declared_bytes, alone.missing.len(), alone.tensors.len()), (Some(120), 2, 0));
    let with = together(vec![("i".to_owned(), index(&text).unwrap()), part(1), part(2)]).unwrap();
    assert_eq!((with.bytes().unwrap(), with.missing.len()), (60, 0));
    let stranger = together(vec![("i".to_owned(), index(&text).unwrap()), part(3)]).unwrap_err();
    assert_eq!(stranger.message.id, "checkpoint.stranger");
    for bad in
        [r#"{"weight_map": {"a": "../x"}}"#, r#"{"weight_map": {"a": 7}}"#, r#"{"weight_map": {"a": ".."}}"#]
    {
        assert_eq!(index(bad).unwrap_err().message.id, "checkpoint.index_name");
    }
    assert_eq!(index(r#"{"hidden_size": 4}"#).unwrap_err().message.id, "checkpoint.not_an_index");
    assert!(index("{").is_err());
    assert_eq!(together(Vec::new()).unwrap_err().message.id, "checkpoint.none");

    let split = |n: u32, count: u32| {
        let gguf = Gguf::new(3).with("split.no", V::U32(n)).with("split.count", V::U32(count));
        let gguf = gguf.with("split.tensors.count", V::I32(2));
        let (header, length) = gguf.tensor(&format!("t{n}"), 0, &[8], 32).bytes();
        let name = format!("m-0000{}-of-0000{count}.gguf", n + 1);
        (name.clone(), read(&name, &header, length).unwrap())
    };
    let both = together(vec![split(0, 2), split(1, 2)]).unwrap();
    assert_eq!((both.bytes().unwrap(), both.missing.len(), both.warnings.len()), (64, 0, 0));
    assert_eq!(together(vec![split(0, 2)]).unwrap().missing, ["m-00002-of-00002.gguf"]);
    let renamed = together(vec![("other.gguf".to_owned(), split(0, 2).1)]).unwrap();
    assert_eq!(renamed.warnings[0].id, "checkpoint.split_files");
    assert_eq!(together(vec![split(0, 2), part(1)]).unwrap_err().message.id, "checkpoint.mixed");
    assert!(Shard::parse("m-00003-of-00002.gguf").is_none());
    assert!(Shard::parse("m-00001-of-99999.gguf").is_none());
}

proptest! {
    /// Whatever stands in a file: an answer, a request that can be met, or a problem.
    #[test]
    fn no_bytes_make_a_reader_panic(kind in 0..3, bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..200usize, with in any::<u8>()) {
        let base = match kind {
            0 => safetensors(&[("a.weight", "BF16", vec![4, 4], 32), ("b", "U8", vec![3], 3)]).0,
            1 => Gguf::new(3).with("k", V::Words(3)).with("n", V::Numbers(&[1, 2])).tensor("a", 0, &[8], 32).bytes().0,
            _ => bytes.clone(),
        };
        let mut file = base;
        if let Some(byte) = file.get_mut(at) {
            *byte = with;
        }
        for length in [file.len() as u64, file.len() as u64 + 35, u64::MAX] {
            for have in [0, 8, 9, 24, file.len() / 2, file.len()] {
                let have = have.min(file.len());
                if let Ok(Header::Need(more)) = read_header("f", &file[..have], length) {
                    prop_assert!(more > have as u64 && more <= length);
                }
            }
        }
    }
}
