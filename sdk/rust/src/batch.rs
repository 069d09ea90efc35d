use crate::*;

/// Takes operations, or sample rows, in wire format. Its memory is kept from batch to batch.
#[derive(Default)]
pub struct Batch {
    buffer: Vec<u8>,
    /// Where the running operation keeps its argument count.
    args: usize,
    ops: u32,
    first: u32,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        let mut b = Batch::default();
        b.reset();
        b
    }

    /// Empties the batch; the host does so before each call.
    pub fn reset(&mut self) {
        self.buffer.clear();
        self.buffer.extend_from_slice(&BATCH_VERSION.to_le_bytes());
        self.args = 0;
        self.ops = 0;
        self.first = 0;
    }

    /// The number of operations so far: BEGIN, COMMIT, ROLLBACK and DELAY count.
    #[inline]
    pub fn len(&self) -> usize {
        self.ops as usize
    }

    /// Whether there is no operation yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ops == 0
    }

    /// Completes the header and returns the batch.
    pub fn bytes(&mut self) -> &[u8] {
        self.buffer[4..8].copy_from_slice(&self.ops.to_le_bytes());
        &self.buffer
    }

    /// Begins an operation: the statement's place in the manifest. Its arguments follow.
    #[inline]
    pub fn op(&mut self, statement: u16) {
        let s = statement.to_le_bytes();
        self.buffer.extend_from_slice(&[s[0], s[1], 0]);
        self.args = self.buffer.len() - 1;
        self.ops += 1;
    }

    /// Begins a sample row; its columns follow.
    #[inline]
    pub fn row(&mut self) {
        self.op(0);
    }

    #[inline]
    fn argument(&mut self) {
        assert!(self.args != 0, "an argument stands before the first operation of a batch");
        self.buffer[self.args] = self.buffer[self.args].wrapping_add(1);
    }

    #[inline]
    fn eight(&mut self, kind: u8, v: u64) {
        let mut bytes = [0; 9];
        bytes[0] = kind;
        bytes[1..].copy_from_slice(&v.to_le_bytes());
        self.buffer.extend_from_slice(&bytes);
        self.argument();
    }

    /// Adds a NULL.
    #[inline]
    pub fn null(&mut self) {
        self.buffer.push(TYPE_NULL);
        self.argument();
    }

    /// Adds an integer.
    #[inline]
    pub fn i64(&mut self, v: i64) {
        self.eight(TYPE_I64, v as u64);
    }

    /// Adds a float.
    #[inline]
    pub fn f64(&mut self, v: f64) {
        self.eight(TYPE_F64, v.to_bits());
    }

    /// Adds a time in microseconds since 1970, UTC.
    #[inline]
    pub fn timestamp(&mut self, micros: i64) {
        self.eight(TYPE_TIMESTAMP, micros as u64);
    }

    /// Adds a boolean.
    #[inline]
    pub fn bool(&mut self, v: bool) {
        self.buffer.extend_from_slice(&[TYPE_BOOL, v as u8]);
        self.argument();
    }

    /// Adds column `c` of the first row that operation `k` of the running transaction
    /// returned, both counted from 0. That statement must declare its columns.
    #[inline]
    pub fn reference(&mut self, k: u8, c: u8) {
        self.buffer.extend_from_slice(&[TYPE_REF, k, c]);
        self.argument();
    }

    #[inline]
    fn space(&mut self, kind: u8, n: usize) -> &mut [u8] {
        assert!(n <= MAX_BATCH_BYTES, "a text of the plugin is larger than 8 MB");
        let mut head = [0; 5];
        head[0] = kind;
        head[1..].copy_from_slice(&(n as u32).to_le_bytes());
        self.buffer.extend_from_slice(&head);
        self.argument();
        let at = self.buffer.len();
        self.buffer.resize(at + n, 0);
        &mut self.buffer[at..]
    }

    /// Adds a text of `n` bytes and returns its space, to be filled with UTF-8.
    #[inline]
    pub fn text_space(&mut self, n: usize) -> &mut [u8] {
        self.space(TYPE_TEXT, n)
    }

    /// [`Batch::text_space`] for bytes.
    #[inline]
    pub fn bytes_space(&mut self, n: usize) -> &mut [u8] {
        self.space(TYPE_BYTES, n)
    }

    /// Adds a text, which is copied.
    #[inline]
    pub fn text(&mut self, v: &str) {
        self.text_space(v.len()).copy_from_slice(v.as_bytes());
    }

    /// Adds bytes, which are copied.
    #[inline]
    pub fn blob(&mut self, v: &[u8]) {
        self.bytes_space(v.len()).copy_from_slice(v);
    }

    /// Begins a transaction. [`Batch::commit`] or [`Batch::rollback`] must end it in the
    /// same batch, after 1 to 256 operations; one that began before `max` may end past it.
    #[inline]
    pub fn begin(&mut self) {
        self.op(STATEMENT_BEGIN);
        self.first = self.ops;
    }

    /// Ends a transaction.
    #[inline]
    pub fn commit(&mut self) {
        self.op(STATEMENT_COMMIT);
    }

    /// Ends a transaction whose changes are to be undone; that is a success.
    #[inline]
    pub fn rollback(&mut self) {
        self.op(STATEMENT_ROLLBACK);
    }

    /// The `k` by which [`Batch::reference`] knows the operation begun last.
    #[inline]
    pub fn last(&self) -> u8 {
        self.ops.wrapping_sub(self.first).wrapping_sub(1) as u8
    }

    /// Adds think time in microseconds for whoever takes the next operation.
    #[inline]
    pub fn delay(&mut self, micros: i64) {
        self.op(STATEMENT_DELAY);
        self.i64(micros);
    }
}
