package hostiletest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// exports are missing, there twice, or of another type than the contract's.
func exports(l *list) {
	for _, name := range []string{"memory", "ls_abi", "ls_describe"} {
		l.plugin(Gate, "without-"+name, name, plugin{omit: []string{name}})
	}
	for _, name := range []string{"ls_alloc", "ls_open", "ls_fill"} {
		l.plugin(Quarantine, "without-"+name, name, plugin{omit: []string{name}})
	}
	l.plugin(Harmless, "without-ls_error", "", plugin{omit: []string{"ls_error"}})
	l.plugin(Quarantine, "adapter-without-ls_call", "ls_call",
		plugin{manifest: `{"kind":"adapter","name":"a","driver":"postgres"}`})
	for _, e := range []struct {
		name string
		typ  uint32
		code []byte
	}{{"ls_abi", tI64, i64(1)}, {"ls_describe", tI32, i32(0)}, {"ls_alloc", tI32, i32(0)}, {"ls_open", tAlloc, i32(0)},
		{"ls_fill", tI64, i64(0)},
		{"ls_error", tI32, i32(0)}, {"ls_rows", tI64, i64(0)}, {"ls_call", tFill, i64(0)}, {"_initialize", tI32, i32(0)},
		{"ls_feed", tNothing, nil}} {
		l.plugin(Gate, "mistyped-"+e.name, e.name,
			plugin{code: map[string][]byte{e.name: e.code}, typ: map[string]uint32{e.name: e.typ}})
	}
	for _, name := range []string{"ls_abi", "ls_fill", "memory"} {
		l.plugin(Gate, "twice-"+name, "twice", plugin{after: func(m *module) {
			kind := byte(kindFunc)
			if name == "memory" {
				kind = kindMemory
			}
			m.export(name, kind, 0)
		}})
	}
	l.plugin(Gate, "ls_fill-is-a-global", "ls_fill", plugin{omit: []string{"ls_fill"}, after: func(m *module) {
		m.globals = [][]byte{join([]byte{i32t, 0}, i32(0), end)}
		m.export("ls_fill", kindGlobal, 0)
	}})
	l.plugin(Gate, "ls_describe-is-the-memory", "",
		plugin{omit: []string{"ls_describe"}, after: func(m *module) { m.export("ls_describe", kindMemory, 0) }})
	l.plugin(Gate, "ls_open-is-a-table", "", plugin{omit: []string{"ls_open"}, after: func(m *module) {
		withTable(1)(m)
		m.export("ls_open", kindTable, 0)
	}})
	l.plugin(Gate, "memory-is-a-function", "memory",
		plugin{omit: []string{"memory"}, after: func(m *module) { m.export("memory", kindFunc, 0) }})
	l.plugin(Gate, "memory-under-another-name", "memory",
		plugin{omit: []string{"memory"}, after: func(m *module) { m.export("mem", kindMemory, 0) }})
	l.plugin(Gate, "of-a-function-that-is-not-there", "", plugin{after: func(m *module) { m.export("x", kindFunc, 4000) }})
	l.plugin(Gate, "of-a-global-that-is-not-there", "", plugin{after: func(m *module) { m.export("x", kindGlobal, 7) }})
	l.plugin(Gate, "of-an-unknown-kind", "", plugin{after: func(m *module) { m.export("x", 9, 0) }})
	l.plugin(Gate, "10-001", "exports", plugin{after: func(m *module) {
		for i := range 10_001 {
			m.export(fmt.Sprint(i), kindFunc, 0)
		}
	}})
	l.plugin(Gate, "a-broken-name", "UTF-8", plugin{after: func(m *module) { m.export("\xff\xfe\x00", kindFunc, 0) }})
	l.plugin(Harmless, "a-name-of-escapes", "",
		plugin{after: func(m *module) { m.export("\x1b[2J\x00<script>\u202e", kindFunc, 0) }})
	l.plugin(Harmless, "a-long-name", "",
		plugin{after: func(m *module) { m.export(strings.Repeat("x", 100_000), kindFunc, 0) }})
	l.plugin(Gate, "the-host's-own-fuel", "", plugin{after: func(m *module) {
		m.globals = [][]byte{join([]byte{i64t, 1}, i64(1<<62), end)}
		m.export("loadstone:fuel", kindGlobal, 0)
	}})
}

// imports ask for more than a plugin is given.
func imports(l *list) {
	const not = "not given"
	one := func(name, says, from, what string, typ uint32) {
		l.plugin(Gate, name, says, plugin{before: func(m *module) { m.imported(from, what, typ) }})
	}
	const system = "wasi_snapshot_preview1"
	for _, name := range []string{"path_open", "fd_read", "fd_pread", "fd_readdir", "path_unlink_file",
		"path_create_directory", "sock_accept", "sock_send", "proc_raise", "fd_allocate"} {
		one(name, name, system, name, tNothing)
	}
	one("of-env", not, "env", "abort", tNothing)
	one("of-emscripten", not, "env", "emscripten_run_script", tExit)
	one("of-old-wasi", not, "wasi_unstable", "fd_write", tFour)
	one("of-javascript", not, "gojs", "syscall/js.valueGet", tExit)
	one("of-the-host", not, "ls", "sql", tOpen)
	one("of-nobody", not, "", "", tNothing)
	one("of-a-folder", not, "../../etc", "passwd", tNothing)
	one("of-escapes", not, "\x1b[2J", "\u202e<script>\x00", tNothing)
	one("of-a-long-name", not, strings.Repeat("x", 70_000), "y", tNothing)
	one("log-mistyped", "ls.log", "ls", "log", tNothing)
	one("fd_write-mistyped", "fd_write", system, "fd_write", tNothing)
	one("proc_exit-mistyped", "proc_exit", system, "proc_exit", tI64)
	one("with-a-broken-name", "UTF-8", "ls\xff", "log", tLog)
	one("of-a-type-that-is-not-there", "", "ls", "log", 400)
	for kind, what := range [][]byte{1: {1, funcref, 0, 1}, 2: {2, 0, 1}, 3: {3, i32t, 0}, 4: {4, 0, 0}, 5: {77}} {
		if what != nil {
			l.plugin(Gate, fmt.Sprintf("of-kind-%d", kind), "", plugin{before: func(m *module) {
				m.imports = append(m.imports, join(text("ls"), text("log"), what))
			}})
		}
	}
	l.plugin(Gate, "1001", "imports", plugin{before: func(m *module) {
		for range 1001 {
			m.imported("ls", "log", tLog)
		}
	}})
	l.plugin(Harmless, "one-of-them-often", "", plugin{before: func(m *module) {
		for range 50 {
			m.imported("ls", "log", tLog)
		}
	}})
}

// pointers point past the memory, or nowhere.
func pointers(l *list) {
	const whole = uint32(pages) << 16
	for _, p := range []struct {
		name string
		v    int64
	}{
		{"past-memory", pack(whole, 10)}, {"over-the-end", pack(whole-5, 10)}, {"at-the-last", pack(uint32(maxU32), 1)},
		{"sum-wraps", pack(uint32(maxU32)-9, 20)}, {"length-of-everything", pack(manifestAt, uint32(maxU32))},
		{"length-of-2-gigabytes", pack(0, 1<<31-1)}, {"sign", -1 << 63}, {"minus-two", -2}, {"nothing", 0},
		{"from-nothing", pack(0, 64)},
	} {
		v := i64(p.v)
		l.plugin(Quarantine, "describe-"+p.name, "", plugin{code: map[string][]byte{"ls_describe": v}})
		// An adapter may have nothing to say, but not to what it cannot know either.
		l.plugin(Quarantine, "call-"+p.name, "",
			plugin{answer: "{}", manifest: `{"kind":"adapter","name":"a","driver":"postgres"}`,
				code: map[string][]byte{"ls_call": v}})
		if uint32(uint64(p.v)) == 0 { // an empty batch ends the stream
			l.plugin(Quarantine, "fill-"+p.name, "", plugin{code: map[string][]byte{"ls_fill": v}})
			l.plugin(Harmless, "rows-"+p.name, "", plugin{rows: goodRow, code: map[string][]byte{"ls_rows": v}})
			continue
		}
		l.plugin(Quarantine, "fill-"+p.name, "", plugin{code: map[string][]byte{"ls_fill": v}})
		l.plugin(Quarantine, "rows-"+p.name, "", plugin{rows: goodRow, code: map[string][]byte{"ls_rows": v}})
		l.plugin(Quarantine, "error-"+p.name, "", plugin{code: map[string][]byte{"ls_describe": i64(-1), "ls_error": v}})
	}
	for _, p := range []struct {
		name string
		v    int64
	}{{"nothing", 0}, {"past-memory", int64(whole)}, {"at-the-last-byte", int64(whole) - 1}, {"minus-one", -1},
		{"the-sign", -1 << 31}} {
		l.plugin(Quarantine, "alloc-"+p.name, "", plugin{code: map[string][]byte{"ls_alloc": i32(p.v)}})
	}
	l.plugin(Harmless, "alloc-over-the-manifest", "", plugin{code: map[string][]byte{"ls_alloc": i32(manifestAt)}})
	l.plugin(Quarantine, "alloc-over-the-batch", "batch", plugin{code: map[string][]byte{"ls_alloc": i32(batchAt)}})
	l.plugin(Quarantine, "alloc-traps", trapped, plugin{code: map[string][]byte{"ls_alloc": unreachable}})
}

// le writes numbers as batches do: uint8, uint16, uint32, uint64, int64 and bytes.
func le(parts ...any) []byte {
	var out []byte
	for _, p := range parts {
		switch v := p.(type) {
		case int:
			out = append(out, byte(v))
		case uint16:
			out = binary.LittleEndian.AppendUint16(out, v)
		case uint32:
			out = binary.LittleEndian.AppendUint32(out, v)
		case uint64:
			out = binary.LittleEndian.AppendUint64(out, v)
		case int64:
			out = binary.LittleEndian.AppendUint64(out, uint64(v))
		case string:
			out = append(out, v...)
		case []byte:
			out = append(out, v...)
		default:
			panic(fmt.Sprintf("%T in a batch", p))
		}
	}
	return out
}

// batch is a header for n operations, and what follows.
func batch(n uint32, parts ...any) []byte {
	return append(le(uint16(1), uint16(0), n), le(parts...)...)
}

// The two statements of the manifest, as operations.
func opOne(v int64) []byte { return le(uint16(0), 1, 1, v) }

var opAll = le(uint16(1), 6, 1, int64(7), 2, uint64(0x3ff0000000000000), 3, uint32(2), "hi", 4, uint32(1), "x", 5, 1, 6,
	int64(0))

// goodRow is a sample row of the manifest's table.
var goodRow = batch(1, uint16(0), 2, 1, int64(1), 3, uint32(1), "v")

// controls are the statements that are none.
const begin, commit, rollback, delay = uint16(0xff00), uint16(0xff01), uint16(0xff02), uint16(0xff03)

// named is a batch with what is wrong with it.
type named struct {
	name string
	b    []byte
}

// ref is an operation whose argument comes from column c of operation k.
func ref(k, c int) []byte { return le(uint16(0), 1, 7, k, c) }

// Batches are all batches of the corpus, right ones among them, as seeds for fuzzing.
func Batches() [][]byte {
	out := [][]byte{goodBatch, batch(1, opAll), batch(4, begin, 0, opOne(1), ref(0, 0), commit, 0)}
	for _, b := range append(badBatches(), badTransactions()...) {
		out = append(out, b.b)
	}
	return out
}

// Rows are all batches of sample rows, as seeds for fuzzing.
func Rows() [][]byte {
	out := [][]byte{goodRow}
	for _, b := range badRows() {
		out = append(out, b.b)
	}
	return out
}

func badBatches() []named {
	return []named{
		{"shorter-than-a-header", []byte{1, 0, 0}},
		{"of-version-0", le(uint16(0), uint16(0), uint32(1), opOne(1))},
		{"of-version-2", le(uint16(2), uint16(0), uint32(1), opOne(1))},
		{"with-flags", le(uint16(1), uint16(1), uint32(1), opOne(1))},
		{"of-no-operation", batch(0)},
		{"of-no-operation-with-bytes", batch(0, opOne(1))},
		{"of-4-billion-operations", batch(uint32(maxU32), opOne(1))},
		{"of-more-than-asked-for", batch(2000, times(2000, opOne(1)))},
		{"of-fewer-than-it-says", batch(3, opOne(1))},
		{"of-more-than-it-says", batch(1, opOne(1), opOne(1))},
		{"one-byte-too-many", batch(1, opOne(1), 0)},
		{"one-byte-too-few", batch(1, opOne(1)[:11])},
		{"cut-in-the-head", batch(1, uint16(0))},
		{"statement-not-declared", batch(1, uint16(2), 0)},
		{"statement-1000", batch(1, uint16(1000), 0)},
		{"statement-fefe", batch(1, uint16(0xfefe), 1, 1, int64(1))},
		{"control-ff04", batch(1, uint16(0xff04), 0)},
		{"control-ffff", batch(1, uint16(0xffff), 0)},
		{"no-argument", batch(1, uint16(0), 0)},
		{"two-arguments", batch(1, uint16(0), 2, 1, int64(1), 1, int64(2))},
		{"255-arguments", batch(1, uint16(0), 255, times(255, []byte{0}))},
		{"a-float-for-an-integer", batch(1, uint16(0), 1, 2, uint64(0))},
		{"a-text-for-an-integer", batch(1, uint16(0), 1, 3, uint32(1), "1")},
		{"a-bool-for-an-integer", batch(1, uint16(0), 1, 5, 1)},
		{"type-8", batch(1, uint16(0), 1, 8, int64(1))},
		{"type-255", batch(1, uint16(0), 1, 255)},
		{"text-past-the-end", batch(1, uint16(1), 6, 0, 0, 3, uint32(100), "hi", 0, 0, 0)},
		{"text-of-4-gigabytes", batch(1, uint16(1), 6, 0, 0, 3, uint32(maxU32), "hi", 0, 0, 0)},
		{"bytes-that-wrap", batch(1, uint16(1), 6, 0, 0, 0, 4, uint32(maxU32)-20, "x", 0, 0)},
		{"text-that-is-not-utf-8", batch(1, uint16(1), 6, 0, 0, 3, uint32(2), "\xff\xfe", 0, 0, 0)},
		{"text-with-half-a-rune", batch(1, uint16(1), 6, 0, 0, 3, uint32(1), "\xc3", 0, 0, 0)},
		{"text-with-a-surrogate", batch(1, uint16(1), 6, 0, 0, 3, uint32(3), "\xed\xa0\x80", 0, 0, 0)},
		{"bool-of-2", batch(1, uint16(1), 6, 0, 0, 0, 0, 5, 2, 0)},
		{"time-before-year-1", batch(1, uint16(1), 6, 0, 0, 0, 0, 0, 6, int64(-1<<63))},
		{"time-after-year-9999", batch(1, uint16(1), 6, 0, 0, 0, 0, 0, 6, int64(1<<63-1))},
		{"pause-without-a-time", batch(1, delay, 0)},
		{"pause-of-nothing", batch(1, delay, 1, 0)},
		{"pause-that-is-negative", batch(1, delay, 1, 1, int64(-1))},
		{"pause-of-292-000-years", batch(1, delay, 1, 1, int64(1<<63-1))},
		{"pause-of-an-hour-and-more", batch(1, delay, 1, 1, int64(3600*1_000_000+1))},
		{"pause-of-two-arguments", batch(1, delay, 2, 1, int64(1), 1, int64(1))},
		{"ref-without-a-transaction", batch(1, uint16(0), 1, 7, 0, 0)},
	}
}

func badRows() []named {
	row := func(parts ...any) []byte { return append(le(uint16(0)), le(parts...)...) }
	return []named{
		{"shorter-than-a-header", []byte{1}},
		{"none-with-a-header", batch(0)},
		{"4-billion", batch(uint32(maxU32), row(2, 1, int64(1), 0))},
		{"more-than-asked-for", batch(5000, times(5000, row(2, 1, int64(1), 0)))},
		{"one-value", batch(1, row(1, 1, int64(1)))},
		{"three-values", batch(1, row(3, 1, int64(1), 0, 0))},
		{"null-key", batch(1, row(2, 0, 0))},
		{"key-of-text", batch(1, row(2, 3, uint32(1), "1", 0))},
		{"text-past-the-end", batch(1, row(2, 1, int64(1), 3, uint32(9), "v"))},
		{"text-that-is-not-utf-8", batch(1, row(2, 1, int64(1), 3, uint32(1), "\xff"))},
		{"ref", batch(1, row(2, 7, 0, 0, 0))},
		{"trailing-bytes", batch(1, row(2, 1, int64(1), 0, 0, 0))},
		{"cut-off", batch(2, row(2, 1, int64(1), 0))},
	}
}

func badTransactions() []named {
	return []named{
		{"without-an-end", batch(2, begin, 0, opOne(1))},
		{"begin-alone", batch(1, begin, 0)},
		{"begin-as-the-last", batch(3, opOne(1), opOne(1), begin, 0)},
		{"commit-alone", batch(1, commit, 0)},
		{"rollback-alone", batch(1, rollback, 0)},
		{"of-nothing", batch(2, begin, 0, commit, 0)},
		{"nested", batch(6, begin, 0, opOne(1), begin, 0, opOne(2), commit, 0, commit, 0)},
		{"ended-twice", batch(4, begin, 0, opOne(1), commit, 0, commit, 0)},
		{"with-a-pause-inside", batch(4, begin, 0, opOne(1), delay, 1, 1, int64(5), commit, 0)},
		{"of-257-operations", batch(259, begin, 0, times(257, opOne(1)), commit, 0)},
		{"begin-with-an-argument", batch(3, begin, 1, 1, int64(1), opOne(1), commit, 0)},
		{"commit-with-an-argument", batch(3, begin, 0, opOne(1), commit, 1, 0)},
		{"ref-to-itself", batch(3, begin, 0, ref(0, 0), commit, 0)},
		{"ref-to-a-later-one", batch(4, begin, 0, ref(1, 0), opOne(1), commit, 0)},
		{"ref-to-operation-255", batch(4, begin, 0, opOne(1), ref(255, 0), commit, 0)},
		{"ref-to-column-1-of-1", batch(4, begin, 0, opOne(1), ref(0, 1), commit, 0)},
		{"ref-to-column-255", batch(4, begin, 0, opOne(1), ref(0, 255), commit, 0)},
		{"ref-to-one-without-columns", batch(4, begin, 0, opAll, ref(0, 0), commit, 0)},
		{"ref-into-the-one-before", batch(6, begin, 0, opOne(1), commit, 0, begin, 0, ref(0, 0), commit, 0)},
		{"ref-after-the-end", batch(4, begin, 0, opOne(1), commit, 0, ref(0, 0))},
		{"ref-cut-off", batch(4, begin, 0, opOne(1), uint16(0), 1, 7, 0)},
		{"ref-as-the-time-of-a-pause", batch(5, begin, 0, opOne(1), commit, 0, delay, 1, 7, 0, 0)},
		{"past-what-was-asked-for", batch(400, times(398, opOne(1)), begin, 0, commit, 0)},
	}
}

// batches do not decode, or name what was not declared.
func batches(l *list) {
	for _, b := range badBatches() {
		l.plugin(Quarantine, b.name, "batch", plugin{batch: b.b})
	}
	l.plugin(Harmless, "of-nulls", "", plugin{batch: batch(1, uint16(1), 6, 0, 0, 0, 0, 0, 0)})
	l.plugin(Harmless, "with-not-a-number", "",
		plugin{batch: batch(1, uint16(1), 6, 0, 2, uint64(0x7ff8000000000001), 0, 0, 0, 0)})
	l.plugin(Quarantine, "text-with-a-zero", "NUL",
		plugin{batch: batch(1, uint16(1), 6, 0, 0, 3, uint32(3), "a\x00b", 0, 0, 0)})
	l.plugin(Run, "nothing-but-pauses", "only delays", plugin{batch: batch(1, delay, 1, 1, int64(1))})
	l.plugin(Quarantine, "of-9-megabytes", "limit",
		plugin{memory: join([]byte{0}, u(512)), code: map[string][]byte{"ls_fill": i64(pack(0, 9<<20))}})
}

// rowBatches are sample rows that do not fit the table.
func rowBatches(l *list) {
	for _, b := range badRows() {
		l.plugin(Quarantine, b.name, "", plugin{rows: b.b})
	}
	l.plugin(Quarantine, "trap", trapped, plugin{rows: goodRow, code: map[string][]byte{"ls_rows": unreachable}})
}

// transactions do not begin, do not end, or refer to what is not there.
func transactions(l *list) {
	for _, b := range badTransactions() {
		l.plugin(Quarantine, b.name, "batch", plugin{batch: b.b})
	}
	l.plugin(Harmless, "with-a-ref", "", plugin{batch: batch(4, begin, 0, opOne(1), ref(0, 0), commit, 0)})
	l.plugin(Harmless, "rolled-back", "", plugin{batch: batch(3, begin, 0, opOne(1), rollback, 0)})
}

// delayedFaults are honest for as long as a quarantine looks, and then are not.
func delayedFaults(l *list) {
	run := func(name, says string, code ...[]byte) *File {
		return l.plugin(Run, name, says, plugin{code: afterFourthCall(code...), errorText: "I do not want to any more"})
	}
	write := func(at int64, b byte) []byte { return join(i32(batchAt+at), i32(int64(b)), []byte{0x3a, 0, 0}) }
	run("traps", "trapped", unreachable)
	run("divides-by-nothing", "trapped", i32(1), i32(0), []byte{0x6d}, drop)
	run("reads-past-memory", "trapped", i32(-4), i32load, drop)
	run("loops", "", loop(br(0))).Slow = true
	run("fails", "I do not want to", returned(i64(-1)))
	run("wants-to-be-fed", "", returned(i64(-2)))
	run("batch-past-memory", "outside", returned(i64(pack(1<<31, 100))))
	run("batch-of-4-gigabytes", "limit", returned(i64(pack(0, uint32(maxU32)))))
	run("another-version", "version", write(0, 9))
	run("statement-not-declared", "declared", write(8, 77))
	run("one-argument-more", "arguments", write(10, 2))
	run("another-type", "type", write(11, 3))
	run("a-ref", "ref", write(11, 7))
	run("begin", "", write(8, 0x00), write(9, 0xff))
	run("no-operation", "", write(4, 0))
	run("2-billion-operations", "", write(7, 0x7f))
	l.plugin(Run, "ends-by-exit", "exit(7)",
		plugin{before: func(m *module) { m.imported("wasi_snapshot_preview1", "proc_exit", tExit) },
			code: afterFourthCall(i32(7), call(0))})
	l.plugin(Run, "recursion", "", plugin{after: func(m *module) {
		f := uint32(len(m.funcs))
		m.add(tNothing, nil, call(f))
		m.funcs[4].code = afterFourthCall(call(f))["ls_fill"]
	}})
	l.plugin(Run, "tree", "", plugin{after: func(m *module) {
		m.funcs[4].code = afterFourthCall(call(tree(m, 60)))["ls_fill"]
	}}).Slow = true
	l.plugin(Run, "indirect", "trapped", plugin{after: withTable(2), code: afterFourthCall(i32(1), []byte{0x11, 0, 0})})
	l.plugin(Run, "logs-for-ever", "", plugin{before: func(m *module) { m.imported("ls", "log", tLog) },
		code: afterFourthCall(endless(i32(3), i32(manifestAt), i32(500), call(0)))}).Slow = true
	l.plugin(Run, "fills-memory-for-ever", "", plugin{memory: join([]byte{0}, u(512)),
		code: afterFourthCall(endless(i32(0), i32(0), i32(16<<20), memoryFill))}).Slow = true
	l.plugin(Harmless, "grows-memory", "", plugin{code: afterFourthCall(i32(10), memoryGrow, drop)})
	l.plugin(Harmless, "logs", "", plugin{before: func(m *module) { m.imported("ls", "log", tLog) },
		code: afterFourthCall(times(100, join(i32(1), i32(manifestAt), i32(50), call(0))))})
	l.plugin(Harmless, "ends", "", plugin{code: afterFourthCall(returned(i64(0)))})
}

// answers to ls_call are not what was asked for.
func answers(l *list) {
	for _, a := range []struct{ name, answer string }{
		{"no-json", "hello"}, {"half-json", `{"statements":[`}, {"a-number", "1"}, {"a-list", "[]"},
		{"statements-a-text", `{"statements":"x"}`},
		{"statements-of-numbers", `{"statements":[1,2]}`}, {"statement-without-id", `{"statements":[{"sql":"SELECT 1"}]}`},
		{"statement-of-an-unknown-kind", `{"statements":[{"id":"a","kind":"DESTROY"}]}`},
		{"statement-on-an-unknown-table",
			`{"statements":[{"id":"a","kind":"POINT_LOOKUP","table":"nobody","binds":["id"]}]}`},
		{"duplicate-ids", `{"statements":[{"id":"a","sql":"SELECT 1"},{"id":"a","sql":"SELECT 2"}]}`},
		{"control-characters", `{"statements":[{"id":"a","sql":"SELECT 1;\u0000\u001b[2J"}]}`},
		{"not-utf-8", "{\"statements\":[{\"id\":\"\xff\"}]}x"},
	} {
		l.plugin(Quarantine, a.name, "", plugin{answer: a.answer})
	}
	l.plugin(Quarantine, "100-000-brackets", "", plugin{code: map[string][]byte{"ls_call": i64(pack(1<<18, 100_000))},
		answer: "{}", memory: []byte{0, 16}, after: func(m *module) { m.put(1<<18, bytes.Repeat([]byte("["), 100_000)) }})
	l.plugin(Quarantine, "of-32-megabytes", "limit", plugin{answer: "{}", code: map[string][]byte{
		"ls_call": join(i32(500), memoryGrow, drop, i64(pack(0, 31<<20)))}})
	l.plugin(Quarantine, "of-zeros", "",
		plugin{answer: "{}", memory: []byte{0, 60}, code: map[string][]byte{"ls_call": i64(pack(200_000, 3<<20))}})
}
