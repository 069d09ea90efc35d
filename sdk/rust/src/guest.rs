use crate::*;
use std::cell::UnsafeCell;

/// A workload plugin. Errors are sentences for the user.
pub trait Workload: Sized {
    /// The manifest: one JSON document.
    fn describe() -> String;

    /// Starts a stream.
    fn open(request: &Request) -> Result<Self, String>;

    /// Adds operations while `batch.len() < max`, at least one; none ends the stream.
    fn fill(&mut self, batch: &mut Batch, max: usize) -> Result<(), String>;

    /// Adds sample rows `first` … `first+max-1` of a table (its place in the manifest);
    /// fewer are fine, none means that there are no more. A row depends on the
    /// parameters and its number only.
    fn rows(_params: &Json, _batch: &mut Batch, _table: usize, _first: i64, _max: usize) -> Result<(), String> {
        Err("this plugin has no sample rows".to_string())
    }

    /// Answers a request document by one JSON document.
    fn call(op: &str, _request: &Json) -> Result<String, String> {
        Err(format!("this plugin has no operation {op}"))
    }
}

/// An adapter plugin.
pub trait Adapter {
    /// The manifest: one JSON document.
    fn describe() -> String;

    /// Answers a request document by one JSON document.
    fn call(op: &str, request: &Json) -> Result<String, String>;
}

/// What the exports of [`workload!`] drive.
pub struct Guest<W> {
    stream: Option<W>,
    params: Json,
    batch: Batch,
    io: Exchange,
}

/// What the exports of [`adapter!`] drive.
#[derive(Default)]
pub struct AdapterGuest {
    io: Exchange,
}

/// Documents between host and guest.
#[derive(Default)]
struct Exchange {
    input: Vec<u8>,
    output: Vec<u8>,
    error: Vec<u8>,
}

fn pack(b: &[u8]) -> i64 {
    if b.is_empty() {
        return 0;
    }
    ((b.as_ptr() as usize as u64) << 32 | b.len() as u64) as i64
}

impl Exchange {
    fn alloc(&mut self, n: i32) -> i32 {
        if n <= 0 || n as usize > MAX_DOCUMENT {
            return 0;
        }
        self.input = vec![0; n as usize];
        self.input.as_ptr() as usize as i32
    }

    fn take(&mut self, length: i32) -> Result<Json, String> {
        let input = std::mem::take(&mut self.input);
        match usize::try_from(length).ok().and_then(|n| input.get(..n)) {
            Some(document) => Json::parse(document),
            None => Err("the document was not written to what ls_alloc returned".to_string()),
        }
    }

    fn answer(&mut self, result: Result<String, String>) -> i64 {
        match result {
            Ok(document) => {
                self.output = document.into_bytes();
                pack(&self.output)
            }
            Err(message) => self.fail(message),
        }
    }

    fn fail(&mut self, message: String) -> i64 {
        self.error = message.into_bytes();
        FILL_ERROR
    }
}

fn log_panics() {
    std::panic::set_hook(Box::new(|info| log(LOG_ERROR, &info.to_string())));
}

impl<W: Workload> Default for Guest<W> {
    fn default() -> Self {
        log_panics();
        Guest { stream: None, params: Json::Null, batch: Batch::new(), io: Exchange::default() }
    }
}

#[doc(hidden)]
impl<W: Workload> Guest<W> {
    pub fn describe(&mut self) -> i64 {
        self.io.answer(Ok(W::describe()))
    }

    pub fn alloc(&mut self, n: i32) -> i32 {
        self.io.alloc(n)
    }

    pub fn error(&mut self) -> i64 {
        pack(&self.io.error)
    }

    pub fn open(&mut self, length: i32) -> i32 {
        match self.try_open(length) {
            Ok(()) => 0,
            Err(message) => {
                self.io.fail(message);
                1
            }
        }
    }

    fn try_open(&mut self, length: i32) -> Result<(), String> {
        let doc = self.io.take(length)?;
        let request = Request::read(&doc);
        self.params = request.params.clone();
        self.stream = None;
        // Without tables it only tells the parameters of ls_rows, when the workload has some.
        if !request.tables.is_empty() || Json::parse(W::describe().as_bytes())?.get("tables").items().is_empty() {
            self.stream = Some(W::open(&request)?);
        }
        Ok(())
    }

    fn finish(&mut self, result: Result<(), String>) -> i64 {
        match result {
            Err(message) => self.io.fail(message),
            Ok(()) if self.batch.is_empty() => 0,
            Ok(()) => pack(self.batch.bytes()),
        }
    }

    pub fn fill(&mut self, max: i32) -> i64 {
        self.batch.reset();
        let result = match &mut self.stream {
            Some(stream) => stream.fill(&mut self.batch, max.max(0) as usize),
            None => Err("the stream is not open".to_string()),
        };
        self.finish(result)
    }

    pub fn rows(&mut self, table: i32, first: i64, max: i32) -> i64 {
        self.batch.reset();
        let result = W::rows(&self.params, &mut self.batch, table.max(0) as usize, first, max.max(0) as usize);
        self.finish(result)
    }

    pub fn call(&mut self, length: i32) -> i64 {
        let result = self.io.take(length).and_then(|doc| W::call(doc.get("op").str(), &doc));
        self.io.answer(result)
    }
}

#[doc(hidden)]
impl AdapterGuest {
    pub fn new() -> Self {
        log_panics();
        AdapterGuest::default()
    }

    pub fn describe<A: Adapter>(&mut self) -> i64 {
        self.io.answer(Ok(A::describe()))
    }

    pub fn alloc(&mut self, n: i32) -> i32 {
        self.io.alloc(n)
    }

    pub fn error(&mut self) -> i64 {
        pack(&self.io.error)
    }

    pub fn call<A: Adapter>(&mut self, length: i32) -> i64 {
        let result = self.io.take(length).and_then(|doc| A::call(doc.get("op").str(), &doc));
        self.io.answer(result)
    }
}

/// A value that only one thread can reach, because a module has only one.
#[doc(hidden)]
pub struct Single<T>(UnsafeCell<Option<T>>);

unsafe impl<T> Sync for Single<T> {}

#[doc(hidden)]
impl<T> Single<T> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Single(UnsafeCell::new(None))
    }

    /// Runs `f` with the value, which `make` makes the first time. The exports do not
    /// call one another, so there is never a second borrow.
    pub fn with<R>(&self, make: impl FnOnce() -> T, f: impl FnOnce(&mut T) -> R) -> R {
        unsafe { f((*self.0.get()).get_or_insert_with(make)) }
    }
}

/// Makes a [`Workload`] the plugin of this module. `rows` and `call` after it add
/// the exports that the plugin implements.
#[macro_export]
macro_rules! workload {
    ($plugin:ty $(, $optional:ident)* $(,)?) => {
        static LOADSTONE: $crate::Single<$crate::Guest<$plugin>> = $crate::Single::new();

        fn loadstone_guest<R>(f: impl FnOnce(&mut $crate::Guest<$plugin>) -> R) -> R {
            LOADSTONE.with(Default::default, f)
        }

        #[no_mangle]
        pub extern "C" fn ls_abi() -> i32 {
            $crate::ABI_VERSION
        }

        #[no_mangle]
        pub extern "C" fn ls_describe() -> i64 {
            loadstone_guest(|g| g.describe())
        }

        #[no_mangle]
        pub extern "C" fn ls_alloc(n: i32) -> i32 {
            loadstone_guest(|g| g.alloc(n))
        }

        #[no_mangle]
        pub extern "C" fn ls_error() -> i64 {
            loadstone_guest(|g| g.error())
        }

        #[no_mangle]
        pub extern "C" fn ls_open(_at: i32, length: i32) -> i32 {
            loadstone_guest(|g| g.open(length))
        }

        #[no_mangle]
        pub extern "C" fn ls_fill(max: i32) -> i64 {
            loadstone_guest(|g| g.fill(max))
        }

        $($crate::workload_export!($optional);)*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! workload_export {
    (rows) => {
        #[no_mangle]
        pub extern "C" fn ls_rows(table: i32, first: i64, max: i32) -> i64 {
            loadstone_guest(|g| g.rows(table, first, max))
        }
    };
    (call) => {
        #[no_mangle]
        pub extern "C" fn ls_call(_at: i32, length: i32) -> i64 {
            loadstone_guest(|g| g.call(length))
        }
    };
}

/// Makes an [`Adapter`] the plugin of this module.
#[macro_export]
macro_rules! adapter {
    ($plugin:ty) => {
        static LOADSTONE: $crate::Single<$crate::AdapterGuest> = $crate::Single::new();

        fn loadstone_guest<R>(f: impl FnOnce(&mut $crate::AdapterGuest) -> R) -> R {
            LOADSTONE.with($crate::AdapterGuest::new, f)
        }

        #[no_mangle]
        pub extern "C" fn ls_abi() -> i32 {
            $crate::ABI_VERSION
        }

        #[no_mangle]
        pub extern "C" fn ls_describe() -> i64 {
            loadstone_guest(|g| g.describe::<$plugin>())
        }

        #[no_mangle]
        pub extern "C" fn ls_alloc(n: i32) -> i32 {
            loadstone_guest(|g| g.alloc(n))
        }

        #[no_mangle]
        pub extern "C" fn ls_error() -> i64 {
            loadstone_guest(|g| g.error())
        }

        #[no_mangle]
        pub extern "C" fn ls_call(_at: i32, length: i32) -> i64 {
            loadstone_guest(|g| g.call::<$plugin>(length))
        }
    };
}
