/// A value of a document. Members and items that are not there read as
/// [`Json::Null`], so that a plugin can walk a document without checking each step.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// A number as it is written, so that integers keep all their 64 bits.
    Number(String),
    Text(String),
    Array(Vec<Json>),
    /// Members in their order.
    Object(Vec<(String, Json)>),
}

const NULL: &Json = &Json::Null;

impl Json {
    /// Reads a document.
    pub fn parse(document: &[u8]) -> Result<Json, String> {
        let text = std::str::from_utf8(document).map_err(|_| "JSON: it is not UTF-8".to_string())?;
        let mut p = Parser { s: text.as_bytes(), i: 0 };
        let v = p.value(0)?;
        p.space();
        if p.i != p.s.len() {
            return Err("JSON: text follows the document".to_string());
        }
        Ok(v)
    }

    /// A member of an object, the last of that name.
    pub fn get(&self, name: &str) -> &Json {
        match self {
            Json::Object(members) => members.iter().rev().find(|(n, _)| n == name).map_or(NULL, |(_, v)| v),
            _ => NULL,
        }
    }

    /// Item `i` of an array.
    pub fn at(&self, i: usize) -> &Json {
        self.items().get(i).unwrap_or(NULL)
    }

    /// The items of an array; of everything else, none.
    pub fn items(&self) -> &[Json] {
        match self {
            Json::Array(items) => items,
            _ => &[],
        }
    }

    /// The members of an object; of everything else, none.
    pub fn members(&self) -> &[(String, Json)] {
        match self {
            Json::Object(members) => members,
            _ => &[],
        }
    }

    /// A string, or a number as it is written; otherwise an empty text.
    pub fn str(&self) -> &str {
        match self {
            Json::Text(s) | Json::Number(s) => s,
            _ => "",
        }
    }

    /// Whether the value is true.
    pub fn is_true(&self) -> bool {
        *self == Json::Bool(true)
    }

    /// An integer, written as 2, 2.0, 2e3 or "2".
    pub fn int(&self) -> Option<i64> {
        if let Ok(n) = self.written()?.parse() {
            return Some(n);
        }
        match self {
            Json::Number(_) => self.float().filter(|f| *f > -9e18 && *f < 9e18 && f.trunc() == *f).map(|f| f as i64),
            _ => None,
        }
    }

    /// A number, or a string that is one.
    pub fn float(&self) -> Option<f64> {
        self.written()?.parse().ok()
    }

    fn written(&self) -> Option<&str> {
        match self {
            Json::Number(s) | Json::Text(s) => Some(s),
            _ => None,
        }
    }
}

/// A JSON string with its quotes.
pub fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

struct Parser<'a> {
    s: &'a [u8],
    i: usize,
}

fn failed<T>(what: &str) -> Result<T, String> {
    Err(format!("JSON: {what}"))
}

impl Parser<'_> {
    fn peek(&self) -> u8 {
        self.s.get(self.i).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\t' | b'\r') {
            self.i += 1;
        }
    }

    fn word(&mut self, w: &str) -> bool {
        let found = self.s[self.i..].starts_with(w.as_bytes());
        if found {
            self.i += w.len();
        }
        found
    }

    fn digits(&mut self) -> bool {
        let from = self.i;
        while self.peek().is_ascii_digit() {
            self.i += 1;
        }
        self.i > from
    }

    fn number(&mut self) -> Result<Json, String> {
        let from = self.i;
        if self.peek() == b'-' {
            self.i += 1;
        }
        let mut fine = self.digits();
        if self.peek() == b'.' {
            self.i += 1;
            fine &= self.digits();
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.i += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.i += 1;
            }
            fine &= self.digits();
        }
        if !fine {
            return failed("a malformed number");
        }
        Ok(Json::Number(String::from_utf8_lossy(&self.s[from..self.i]).into_owned()))
    }

    fn hex4(&mut self) -> Result<u32, String> {
        let digits = self.s.get(self.i..self.i + 4).unwrap_or(b"-");
        self.i += 4;
        match std::str::from_utf8(digits) {
            Ok(d) if d.bytes().all(|c| c.is_ascii_hexdigit()) => u32::from_str_radix(d, 16).or_else(|_| failed("a bad \\u escape")),
            _ => failed("a bad \\u escape"),
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let c = self.peek();
        self.i += 1;
        Ok(match c {
            b'"' | b'\\' | b'/' => c as char,
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.hex4()?;
                let back = self.i;
                if (0xd800..0xdc00).contains(&high) && self.word("\\u") {
                    let low = self.hex4()?;
                    if (0xdc00..0xe000).contains(&low) {
                        let c = char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
                        return Ok(c.unwrap_or('\u{fffd}'));
                    }
                    self.i = back;
                }
                char::from_u32(high).unwrap_or('\u{fffd}')
            }
            _ => return failed("an unknown escape"),
        })
    }

    fn string(&mut self) -> Result<String, String> {
        let mut out = Vec::new();
        self.i += 1;
        loop {
            if self.i >= self.s.len() {
                return failed("a string without end");
            }
            let c = self.s[self.i];
            self.i += 1;
            match c {
                b'"' => return String::from_utf8(out).or_else(|_| failed("it is not UTF-8")),
                b'\\' => out.extend_from_slice(self.escape()?.encode_utf8(&mut [0; 4]).as_bytes()),
                0..=31 => return failed("a control character in a string"),
                _ => out.push(c),
            }
        }
    }

    fn value(&mut self, depth: u32) -> Result<Json, String> {
        self.space();
        if depth > 64 {
            return failed("it is nested too deeply");
        }
        match self.peek() {
            b'{' | b'[' => self.list(depth),
            b'"' => Ok(Json::Text(self.string()?)),
            b'-' | b'0'..=b'9' => self.number(),
            _ if self.word("null") => Ok(Json::Null),
            _ if self.word("true") => Ok(Json::Bool(true)),
            _ if self.word("false") => Ok(Json::Bool(false)),
            _ => failed("an unexpected character or end"),
        }
    }

    fn list(&mut self, depth: u32) -> Result<Json, String> {
        let object = self.peek() == b'{';
        let end = if object { b'}' } else { b']' };
        let (mut members, mut items) = (Vec::new(), Vec::new());
        self.i += 1;
        self.space();
        if self.peek() == end {
            self.i += 1;
        } else {
            loop {
                self.space();
                if object {
                    if self.peek() != b'"' {
                        return failed("a member without a name");
                    }
                    let name = self.string()?;
                    self.space();
                    if !self.word(":") {
                        return failed("a member without a value");
                    }
                    members.push((name, self.value(depth + 1)?));
                } else {
                    items.push(self.value(depth + 1)?);
                }
                self.space();
                let next = self.peek();
                self.i += 1;
                if next == end {
                    break;
                }
                if next != b',' {
                    return failed("a comma is missing");
                }
            }
        }
        Ok(if object { Json::Object(members) } else { Json::Array(items) })
    }
}
