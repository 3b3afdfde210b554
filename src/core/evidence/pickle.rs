//! Reads a Python pickle as data: containers, numbers and texts. Whatever would import, build or call is refused, so
//! nothing in a file can run.
//!
//! Source of the opcodes: `Lib/pickletools.py` of CPython, protocols 2 to 5.

/// A value; containers and texts are places in [`Data`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Item {
    /// `None`.
    None,
    /// `True`, `False`.
    Bool(bool),
    /// A whole number; beyond 64 bits it saturates.
    Int(i64),
    /// A real number.
    Real(f64),
    /// Text: start and length in the file.
    Text(u64, u32),
    /// A list or a tuple.
    List(u32),
    /// A dictionary: keys and values in turn.
    Dict(u32),
}

/// Why a pickle is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Ends too early, or its stack is wrong.
    Broken,
    /// Has an opcode that would build or call something.
    Refused(u8),
    /// Holds more values than are kept.
    TooLarge,
}

/// The most values kept: 16 bytes each, so half a gibibyte.
const MOST: usize = 32 << 20;

/// A pickle that has been read.
#[derive(Debug)]
pub(crate) struct Data<'a> {
    bytes: &'a [u8],
    lists: Vec<Vec<Item>>,
    kept: usize,
    /// The value of the whole.
    pub(crate) root: Item,
}

impl<'a> Data<'a> {
    /// Items of a list or a tuple; none of anything else.
    pub(crate) fn list(&self, item: Item) -> &[Item] {
        match item {
            Item::List(at) => self.lists.get(at as usize).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }

    /// The value of a key of a dictionary.
    pub(crate) fn get(&self, item: Item, key: &str) -> Option<Item> {
        let Item::Dict(at) = item else { return None };
        let pairs = self.lists.get(at as usize)?;
        pairs.chunks_exact(2).rev().find(|p| self.text(p[0]) == Some(key)).map(|p| p[1])
    }

    /// A whole number under a key.
    pub(crate) fn int(&self, item: Item, key: &str) -> Option<i64> {
        match self.get(item, key)? {
            Item::Int(n) => Some(n),
            _ => None,
        }
    }

    /// A text.
    pub(crate) fn text(&self, item: Item) -> Option<&'a str> {
        let Item::Text(start, length) = item else { return None };
        let start = usize::try_from(start).ok()?;
        std::str::from_utf8(self.bytes.get(start..start.checked_add(length as usize)?)?).ok()
    }

    /// Reads `bytes`.
    ///
    /// Errors: what it is not, or what it holds that is refused.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Data<'a>, Fault> {
        let mut machine = Machine {
            data: Data { bytes, lists: Vec::new(), kept: 0, root: Item::None },
            at: 0,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
        };
        while machine.step()? {}
        Ok(machine.data)
    }

    fn keep(&mut self, n: usize) -> Result<(), Fault> {
        self.kept = self.kept.saturating_add(n);
        if self.kept > MOST { Err(Fault::TooLarge) } else { Ok(()) }
    }
}

struct Machine<'a> {
    data: Data<'a>,
    at: usize,
    stack: Vec<Item>,
    marks: Vec<usize>,
    memo: Vec<Item>,
}

impl Machine<'_> {
    fn byte(&mut self) -> Result<u8, Fault> {
        let byte = *self.data.bytes.get(self.at).ok_or(Fault::Broken)?;
        self.at += 1;
        Ok(byte)
    }

    /// A little-endian number of `width` bytes, at most eight.
    fn number(&mut self, width: usize) -> Result<u64, Fault> {
        let mut value = 0u64;
        for shift in 0..width {
            value |= u64::from(self.byte()?) << (8 * shift);
        }
        Ok(value)
    }

    fn push(&mut self, item: Item) -> Result<(), Fault> {
        self.data.keep(1)?;
        self.stack.push(item);
        Ok(())
    }

    fn pop(&mut self) -> Result<Item, Fault> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor { Err(Fault::Broken) } else { self.stack.pop().ok_or(Fault::Broken) }
    }

    fn since_mark(&mut self) -> Result<Vec<Item>, Fault> {
        let mark = self.marks.pop().ok_or(Fault::Broken)?;
        if mark > self.stack.len() { Err(Fault::Broken) } else { Ok(self.stack.split_off(mark)) }
    }

    fn new_list(&mut self, items: Vec<Item>, dict: bool) -> Result<(), Fault> {
        let at = u32::try_from(self.data.lists.len()).map_err(|_| Fault::TooLarge)?;
        // An empty container has a cost of its own.
        self.data.keep(2)?;
        self.data.lists.push(items);
        self.push(if dict { Item::Dict(at) } else { Item::List(at) })
    }

    fn text(&mut self, width: usize) -> Result<(), Fault> {
        let length = self.number(width)?;
        let start = self.at as u64;
        let end = start.checked_add(length).and_then(|e| usize::try_from(e).ok()).ok_or(Fault::Broken)?;
        if end > self.data.bytes.len() {
            return Err(Fault::Broken);
        }
        self.at = end;
        self.push(Item::Text(start, u32::try_from(length).map_err(|_| Fault::TooLarge)?))
    }

    fn long(&mut self, width: usize) -> Result<(), Fault> {
        let length = usize::try_from(self.number(width)?).map_err(|_| Fault::Broken)?;
        let end = self.at.checked_add(length).ok_or(Fault::Broken)?;
        let digits = self.data.bytes.get(self.at..end).ok_or(Fault::Broken)?;
        self.at = end;
        let negative = digits.last().is_some_and(|b| b & 0x80 != 0);
        let fill = if negative { 0xFF } else { 0 };
        let wide = digits.iter().skip(8).any(|b| *b != fill);
        let mut value = if negative { -1i64 } else { 0 };
        for (shift, byte) in digits.iter().take(8).enumerate() {
            let clear = !(0xFFi64 << (8 * shift));
            value = (value & clear) | (i64::from(*byte) << (8 * shift));
        }
        // An address of 64 bits with the top bit set is kept as the largest number.
        let saturated = if negative { i64::MIN } else { i64::MAX };
        self.push(Item::Int(if wide || (value < 0) != negative { saturated } else { value }))
    }

    fn extend(&mut self, items: &[Item], dict: bool) -> Result<(), Fault> {
        let at = match (self.stack.last(), dict) {
            (Some(Item::Dict(at)), true) | (Some(Item::List(at)), false) => *at as usize,
            _ => return Err(Fault::Broken),
        };
        if dict && !items.len().is_multiple_of(2) {
            return Err(Fault::Broken);
        }
        self.data.lists.get_mut(at).ok_or(Fault::Broken)?.extend_from_slice(items);
        Ok(())
    }

    fn put(&mut self, at: u64) -> Result<(), Fault> {
        let at = usize::try_from(at).map_err(|_| Fault::Broken)?;
        // Writers number memos in order; a jump is no real file.
        if at > self.memo.len() + (1 << 16) {
            return Err(Fault::Broken);
        }
        let top = *self.stack.last().ok_or(Fault::Broken)?;
        if at >= self.memo.len() {
            self.data.keep(at + 1 - self.memo.len())?;
            self.memo.resize(at + 1, Item::None);
        }
        if let Some(place) = self.memo.get_mut(at) {
            *place = top;
        }
        Ok(())
    }

    fn recall(&mut self, at: u64) -> Result<(), Fault> {
        let at = usize::try_from(at).map_err(|_| Fault::Broken)?;
        let item = *self.memo.get(at).ok_or(Fault::Broken)?;
        self.push(item)
    }

    fn tuple(&mut self, n: usize) -> Result<(), Fault> {
        let from = self.stack.len().checked_sub(n).ok_or(Fault::Broken)?;
        let items = self.stack.split_off(from);
        self.new_list(items, false)
    }

    /// One opcode; false after the last.
    fn step(&mut self) -> Result<bool, Fault> {
        match self.byte()? {
            0x80 => drop(self.number(1)?),
            0x95 => drop(self.number(8)?),
            b'N' => self.push(Item::None)?,
            0x88 => self.push(Item::Bool(true))?,
            0x89 => self.push(Item::Bool(false))?,
            b'J' => {
                let value = self.number(4)? as u32;
                self.push(Item::Int(i64::from(value.cast_signed())))?;
            }
            b'K' => {
                let value = self.number(1)?;
                self.push(Item::Int(value.cast_signed()))?;
            }
            b'M' => {
                let value = self.number(2)?;
                self.push(Item::Int(value.cast_signed()))?;
            }
            0x8A => self.long(1)?,
            0x8B => self.long(4)?,
            b'G' => {
                let value = self.number(8)?.swap_bytes();
                self.push(Item::Real(f64::from_bits(value)))?;
            }
            0x8C | b'C' => self.text(1)?,
            b'X' | b'B' => self.text(4)?,
            0x8D | 0x8E => self.text(8)?,
            b'}' => self.new_list(Vec::new(), true)?,
            b']' | b')' => self.new_list(Vec::new(), false)?,
            b'(' => {
                self.data.keep(1)?;
                self.marks.push(self.stack.len());
            }
            b't' | b'l' => {
                let items = self.since_mark()?;
                self.new_list(items, false)?;
            }
            b'd' => {
                let items = self.since_mark()?;
                self.new_list(items, true)?;
            }
            0x85 => self.tuple(1)?,
            0x86 => self.tuple(2)?,
            0x87 => self.tuple(3)?,
            b'a' => {
                let item = self.pop()?;
                self.extend(&[item], false)?;
            }
            b'e' => {
                let items = self.since_mark()?;
                self.extend(&items, false)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.extend(&[key, value], true)?;
            }
            b'u' => {
                let items = self.since_mark()?;
                self.extend(&items, true)?;
            }
            b'0' => drop(self.pop()?),
            b'1' => drop(self.since_mark()?),
            b'2' => {
                let top = *self.stack.last().ok_or(Fault::Broken)?;
                self.push(top)?;
            }
            0x94 => self.put(self.memo.len() as u64)?,
            b'q' => {
                let at = self.number(1)?;
                self.put(at)?;
            }
            b'r' => {
                let at = self.number(4)?;
                self.put(at)?;
            }
            b'h' => {
                let at = self.number(1)?;
                self.recall(at)?;
            }
            b'j' => {
                let at = self.number(4)?;
                self.recall(at)?;
            }
            b'.' => {
                self.data.root = self.pop()?;
                return Ok(false);
            }
            other => return Err(Fault::Refused(other)),
        }
        Ok(true)
    }
}
