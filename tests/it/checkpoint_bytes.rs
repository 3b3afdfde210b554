//! Writes headers of checkpoint files, byte by byte.

/// A tensor to be written: name, dtype, shape, bytes.
pub type Row<'a> = (&'a str, &'a str, Vec<u64>, u64);

/// The header of a safetensors file, and the length of the whole file.
pub fn safetensors(rows: &[Row<'_>]) -> (Vec<u8>, u64) {
    let mut map = serde_json::Map::new();
    map.insert("__metadata__".into(), serde_json::json!({"format": "pt"}));
    let mut end = 0;
    for (name, dtype, shape, bytes) in rows {
        let place = serde_json::json!([end, end + bytes]);
        map.insert(
            (*name).into(),
            serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": place}),
        );
        end += bytes;
    }
    let mut json = serde_json::Value::Object(map).to_string().into_bytes();
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut out = (json.len() as u64).to_le_bytes().to_vec();
    out.extend(json);
    let length = out.len() as u64 + end;
    (out, length)
}

/// A value of a GGUF header.
#[derive(Clone, Copy)]
pub enum V<'a> {
    U32(u32),
    U64(u64),
    I32(i32),
    F32(f32),
    Bool(bool),
    Text(&'a str),
    Words(u64),
    Numbers(&'a [i32]),
    Flags(&'a [bool]),
    Nested,
}

/// A GGUF header of `version`.
pub struct Gguf {
    pub version: u32,
    pub pairs: Vec<(String, Vec<u8>)>,
    pub tensors: Vec<u8>,
    pub count: u64,
    pub end: u64,
    pub alignment: u64,
}

impl Gguf {
    pub fn new(version: u32) -> Gguf {
        Gguf { version, pairs: Vec::new(), tensors: Vec::new(), count: 0, end: 0, alignment: 32 }
    }

    pub fn number(&self, n: u64) -> Vec<u8> {
        if self.version == 1 { (n as u32).to_le_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }

    pub fn text(&self, text: &[u8]) -> Vec<u8> {
        [self.number(text.len() as u64), text.to_vec()].concat()
    }

    pub fn with(mut self, key: &str, value: V<'_>) -> Gguf {
        let list = |kind: u32, n: u64, rest: Vec<u8>| {
            [9u32.to_le_bytes().to_vec(), kind.to_le_bytes().to_vec(), self.number(n), rest].concat()
        };
        let bytes = match value {
            V::U32(n) => [4u32.to_le_bytes(), n.to_le_bytes()].concat(),
            V::U64(n) => [10u32.to_le_bytes().to_vec(), n.to_le_bytes().to_vec()].concat(),
            V::I32(n) => [5u32.to_le_bytes(), n.to_le_bytes()].concat(),
            V::F32(n) => [6u32.to_le_bytes(), n.to_le_bytes()].concat(),
            V::Bool(b) => [7u32.to_le_bytes().to_vec(), vec![b.into()]].concat(),
            V::Text(text) => [8u32.to_le_bytes().to_vec(), self.text(text.as_bytes())].concat(),
            V::Words(n) => {
                let words = (0..n).flat_map(|i| self.text(format!("w{i}").as_bytes())).collect();
                list(8, n, words)
            }
            V::Numbers(all) => list(5, all.len() as u64, all.iter().flat_map(|n| n.to_le_bytes()).collect()),
            V::Flags(all) => list(7, all.len() as u64, all.iter().map(|b| u8::from(*b)).collect()),
            V::Nested => list(9, 1, [4u32.to_le_bytes().to_vec(), self.number(1), vec![1, 0, 0, 0]].concat()),
        };
        self.pairs.push((key.to_owned(), bytes));
        self
    }

    /// Adds a tensor of `bytes`; `shape` is as GGUF stores it, fastest dimension first.
    pub fn tensor(mut self, name: &str, kind: u32, shape: &[u64], bytes: u64) -> Gguf {
        let offset = self.end;
        self.end = (offset + bytes).next_multiple_of(self.alignment);
        self.raw(name.as_bytes(), kind, shape, offset)
    }

    pub fn raw(mut self, name: &[u8], kind: u32, shape: &[u64], offset: u64) -> Gguf {
        let mut row = self.text(name);
        row.extend((shape.len() as u32).to_le_bytes());
        for dim in shape {
            row.extend(self.number(*dim));
        }
        row.extend(kind.to_le_bytes());
        row.extend(offset.to_le_bytes());
        self.tensors.extend(row);
        self.count += 1;
        self
    }

    /// The header, and the length of the whole file.
    pub fn bytes(&self) -> (Vec<u8>, u64) {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend(self.number(self.count));
        out.extend(self.number(self.pairs.len() as u64));
        for (key, value) in &self.pairs {
            out.extend(self.text(key.as_bytes()));
            out.extend(value);
        }
        out.extend(&self.tensors);
        let length = (out.len() as u64).next_multiple_of(self.alignment) + self.end;
        (out, length)
    }
}
