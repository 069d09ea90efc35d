package hostiletest

import "fmt"

// The words of the two ways in which a guest that goes on for ever is stopped.
const (
	timedOut = ""
	trapped  = "trap"
)

// starts are start functions, which run before any export is called.
func starts(l *list) {
	start := func(station Stage, name string, code ...[]byte) *File {
		return l.plugin(station, name, "", plugin{after: func(m *module) {
			f := m.add(tNothing, nil, code...)
			m.start = &f
		}})
	}
	start(Quarantine, "that-loops", loop(br(0))).Slow = true
	start(Quarantine, "that-traps", unreachable)
	start(Quarantine, "that-divides-by-nothing", i32(1), i32(0), []byte{0x6d}, drop)
	start(Quarantine, "that-reads-past-memory", i32(-1), i32load, drop)
	start(Harmless, "that-grows-memory", i32(1000), memoryGrow, drop)
	l.plugin(Quarantine, "that-calls-itself", "", plugin{after: func(m *module) {
		f := uint32(len(m.imports) + len(m.funcs))
		m.add(tNothing, nil, call(f))
		m.start = &f
	}})
	l.plugin(Gate, "with-parameters", "", plugin{after: func(m *module) {
		f := m.add(tExit, nil)
		m.start = &f
	}})
	l.plugin(Gate, "with-a-result", "", plugin{after: func(m *module) { f := uint32(0); m.start = &f }})
	l.plugin(Gate, "that-is-not-there", "", plugin{after: func(m *module) { f := uint32(4000); m.start = &f }})
	l.plugin(Quarantine, "that-leaves", "",
		plugin{before: func(m *module) { m.imported("wasi_snapshot_preview1", "proc_exit", tExit) },
			after: func(m *module) {
				f := m.add(tNothing, nil, i32(0), call(0))
				m.start = &f
			}})
	l.plugin(Quarantine, "initialize-that-loops", "", plugin{code: map[string][]byte{"_initialize": forever}}).Slow = true
	l.plugin(Quarantine, "initialize-that-traps", trapped, plugin{code: map[string][]byte{"_initialize": unreachable}})
}

// tree adds n functions, each of which calls the one before it twice, and returns
// the last: 2ⁿ calls without one loop.
func tree(m *module, n int, leaf ...[]byte) uint32 {
	f := m.add(tNothing, nil, leaf...)
	for range n {
		f = m.add(tNothing, nil, call(f), call(f))
	}
	return f
}

// trees are exponential without a loop, in which an engine would look at its deadline.
func trees(l *list) {
	in := func(export string, n int, tail []byte) {
		l.plugin(Quarantine, fmt.Sprintf("2-to-the-%d-in-%s", n, export), timedOut, plugin{after: func(m *module) {
			f := tree(m, n)
			for i, name := range []string{"ls_abi", "ls_describe", "ls_alloc", "ls_open", "ls_fill"} {
				if name == export {
					m.funcs[i].code = join(call(f), tail)
				}
			}
		}}).Slow = true
	}
	in("ls_abi", 60, i32(1<<16))
	in("ls_describe", 60, i64(pack(manifestAt, uint32(len(manifest)))))
	in("ls_alloc", 50, i32(inputAt))
	in("ls_open", 60, i32(0))
	in("ls_fill", 45, answerBatch)
	l.plugin(Quarantine, "in-start", timedOut, plugin{after: func(m *module) { f := tree(m, 60); m.start = &f }}).Slow = true
	l.plugin(Quarantine, "sixteen-ways", timedOut, plugin{after: func(m *module) {
		f := m.add(tNothing, nil)
		for range 16 {
			f = m.add(tNothing, nil, times(16, call(f)))
		}
		m.funcs[3].code = join(call(f), i32(0))
	}}).Slow = true
	l.plugin(Quarantine, "through-a-table", timedOut, plugin{after: func(m *module) {
		first := uint32(len(m.funcs))
		m.add(tNothing, nil)
		indirect := []byte{0x11, 0, 0}
		for i := range 50 {
			m.add(tNothing, nil, i32(int64(i)), indirect, i32(int64(i)), indirect)
		}
		all := make([]uint32, 51)
		for i := range all {
			all[i] = first + uint32(i)
		}
		withTable(51, all...)(m)
		m.funcs[3].code = join(call(first+50), i32(0))
	}}).Slow = true
	l.plugin(Quarantine, "of-straight-code", timedOut, plugin{after: func(m *module) {
		f := tree(m, 34, times(20_000, []byte{0x41, 1, 0x1a}))
		m.funcs[3].code = join(call(f), i32(0))
	}}).Slow = true
}

// loops never end.
func loops(l *list) {
	for _, e := range []string{"ls_abi", "ls_describe", "ls_alloc", "ls_open", "ls_fill", "ls_rows", "ls_call"} {
		l.plugin(Quarantine, "in-"+e, timedOut, plugin{rows: goodRow, answer: "{}", code: map[string][]byte{e: forever}}).
			Slow = true
	}
	slow := func(name string, p plugin) { l.plugin(Quarantine, name, timedOut, p).Slow = true }
	open := func(code ...[]byte) map[string][]byte { return map[string][]byte{"ls_open": join(code...)} }
	slow("nested-eight-deep", plugin{locals: map[string][]byte{"ls_open": groups(group(8, i32t))},
		code: open(counted(8), i32(0))})
	slow("of-divisions", plugin{code: open(endless(i64(1<<62), i64(3), []byte{0x7f}, drop))})
	slow("of-square-roots", plugin{code: open(endless([]byte{0x44}, repeat(8, 0x3f), []byte{0x9f, 0x1a}))})
	slow("of-indirect-calls", plugin{after: func(m *module) {
		f := m.add(tNothing, nil)
		withTable(1, f)(m)
		m.funcs[3].code = endless(i32(0), []byte{0x11, 0, 0})
	}})
	slow("with-a-branch-table", plugin{code: open(loop(i32(0), []byte{0x0e, 3, 0, 0, 0, 0}), unreachable)})
	slow("left-and-entered-again", plugin{code: open(loop(block(loop(br(1))), br(0)), unreachable)})
	l.plugin(Quarantine, "in-ls_error", timedOut,
		plugin{code: map[string][]byte{"ls_error": forever, "ls_describe": i64(-1)}}).Slow = true
	l.plugin(Harmless, "in-an-export-that-nobody-calls", "",
		plugin{after: func(m *module) { m.export("main", kindFunc, m.add(tNothing, nil, forever)) }})
}

// counted is n loops in one another, each a million times.
func counted(n int) []byte {
	if n == 0 {
		return []byte{0x01}
	}
	v := uint32(n + 1)
	return join(i32(1_000_000), set(v),
		loop(counted(n-1), get(v), i32(1), []byte{0x6b, 0x22}, u(uint64(v)), []byte{0x0d, 0}))
}

// bulk instructions do as much as they are told, in one step.
func bulk(l *list) {
	const size = 16 << 20
	wide := plugin{memory: join([]byte{0}, u(512))}
	slow := func(name string, code ...[]byte) {
		p := wide
		p.code = map[string][]byte{"ls_open": join(code...)}
		l.plugin(Quarantine, name, timedOut, p).Slow = true
	}
	fill := join(i32(0), i32(0), i32(size), memoryFill)
	slow("fill-of-16-megabytes-for-ever", endless(fill))
	slow("copy-of-16-megabytes-for-ever", endless(i32(0), i32(1), i32(size), memoryCopy))
	slow("fill-without-a-loop", times(80_000, fill), i32(0))
	l.plugin(Quarantine, "fill-in-a-tree", timedOut, plugin{memory: wide.memory, after: func(m *module) {
		f := tree(m, 40, fill)
		m.funcs[3].code = join(call(f), i32(0))
	}}).Slow = true
	l.plugin(Quarantine, "init-for-ever", timedOut, plugin{memory: wide.memory, after: func(m *module) {
		n := uint32(len(m.data) + 1)
		m.data, m.count = append(m.data, join([]byte{1}, u(60_000), make([]byte, 60_000))), &n
		m.funcs[3].code = endless(i32(100_000), i32(0), i32(60_000), []byte{0xfc, 8}, u(uint64(n-1)), []byte{0})
	}}).Slow = true
	l.plugin(Quarantine, "table-copy-for-ever", timedOut, plugin{after: withTable(65_536), code: map[string][]byte{
		"ls_open": endless(i32(0), i32(1), i32(65_535), []byte{0xfc, 14, 0, 0})}}).Slow = true
	l.plugin(Quarantine, "table-init-for-ever", timedOut, plugin{after: func(m *module) {
		withTable(65_536)(m)
		m.elements = append(m.elements, join([]byte{1, 0}, u(60_000), repeat(60_000, 0)))
		m.funcs[3].code = endless(i32(0), i32(0), i32(60_000), []byte{0xfc, 12, 0, 0})
	}}).Slow = true
	once := func(name string, code ...[]byte) {
		l.plugin(Quarantine, name, trapped, plugin{code: map[string][]byte{"ls_open": join(join(code...), i32(0))}})
	}
	once("fill-past-memory", i32(-16), i32(0), i32(-1), memoryFill)
	once("copy-past-memory", i32(0), i32(-1), i32(-1), memoryCopy)
	l.plugin(Quarantine, "init-past-the-segment", trapped, plugin{after: func(m *module) {
		n := uint32(len(m.data) + 1)
		m.data, m.count = append(m.data, []byte{1, 1, 'x'}), &n
		m.funcs[3].code = join(i32(0), i32(0), i32(-1), []byte{0xfc, 8}, u(uint64(n-1)), []byte{0}, i32(0))
	}})
	l.plugin(Gate, "init-without-a-data-count", "",
		plugin{code: map[string][]byte{"ls_open": join(i32(0), i32(0), i32(1), []byte{0xfc, 8, 0, 0}, i32(0))}})
	l.plugin(Gate, "init-of-a-segment-that-is-not-there", "", plugin{after: func(m *module) {
		n := uint32(len(m.data))
		m.count = &n
		m.funcs[3].code = join(i32(0), i32(0), i32(1), []byte{0xfc, 8, 99, 0}, i32(0))
	}})
}

// recursions are without an end, or nearly.
func recursions(l *list) {
	add := func(name string, build func(*module)) *File {
		return l.plugin(Quarantine, name, "", plugin{after: build})
	}
	self := func(m *module) uint32 { return uint32(len(m.imports) + len(m.funcs)) }
	add("of-one", func(m *module) {
		f := m.add(tNothing, nil, call(self(m)))
		m.funcs[3].code = join(call(f), i32(0))
	})
	add("of-one-with-5000-locals", func(m *module) {
		f := m.add(tNothing, groups(group(5_000, i64t)), call(self(m)), get(4_999), drop)
		m.funcs[3].code = join(call(f), i32(0))
	})
	add("of-two", func(m *module) {
		at := self(m)
		m.add(tNothing, nil, call(at+1))
		m.add(tNothing, nil, call(at))
		m.funcs[3].code = join(call(at), i32(0))
	})
	add("of-a-hundred", func(m *module) {
		at := self(m)
		for i := range uint32(100) {
			m.add(tNothing, nil, call(at+(i+1)%100))
		}
		m.funcs[3].code = join(call(at), i32(0))
	})
	add("of-an-export", func(m *module) { m.funcs[3].code = join(get(0), get(1), call(3)) })
	add("indirect", func(m *module) {
		f := m.add(tNothing, nil, i32(0), []byte{0x11, 0, 0})
		withTable(1, f)(m)
		m.funcs[3].code = join(call(f), i32(0))
	})
	add("indirect-of-two", func(m *module) {
		at := self(m)
		m.add(tNothing, nil, i32(1), []byte{0x11, 0, 0})
		m.add(tNothing, nil, i32(0), []byte{0x11, 0, 0})
		withTable(2, at, at+1)(m)
		m.funcs[3].code = join(call(at), i32(0))
	})
	// Deep, but with an end, and twice at each step: without a limit of time it lasts for ever.
	add("deep-and-wide", func(m *module) {
		f := self(m)
		m.add(tExit, nil, get(0), ifThen(get(0), i32(1), []byte{0x6b}, call(f), get(0), i32(1), []byte{0x6b}, call(f)))
		m.funcs[3].code = join(i32(500), call(f), i32(0))
	}).Slow = true
	add("ackermann", func(m *module) {
		f := self(m)
		// a(m, n) = m = 0 ? n+1 : n = 0 ? a(m-1, 1) : a(m-1, a(m, n-1))
		m.add(tOpen, nil, get(0), []byte{0x45, 0x04, i32t}, get(1), i32(1), i32add, []byte{0x05},
			get(1), []byte{0x45, 0x04, i32t}, get(0), i32(1), []byte{0x6b}, i32(1), call(f), []byte{0x05},
			get(0), i32(1), []byte{0x6b}, get(0), get(1), i32(1), []byte{0x6b}, call(f), call(f), end, end)
		m.funcs[3].code = join(i32(4), i32(3), call(f), drop, i32(0))
	}).Slow = true
	l.plugin(Harmless, "a-thousand-deep", "", plugin{after: func(m *module) {
		f := self(m)
		m.add(tExit, nil, get(0), ifThen(get(0), i32(1), []byte{0x6b}, call(f)))
		m.funcs[3].code = join(i32(1_000), call(f), i32(0))
	}})
}

// wasi is what a guest may ask of the system: all of it must be answered at once.
func wasi(l *list) {
	const from = "wasi_snapshot_preview1"
	with := func(station Stage, name, function string, typ uint32, code ...[]byte) *File {
		return l.plugin(station, name, "", plugin{before: func(m *module) { m.imported(from, function, typ) },
			code: map[string][]byte{"ls_open": join(join(code...), i32(0))}})
	}
	// A subscription to a clock, 48 bytes: mark, kind, clock, time, precision, flags.
	sleep := join(i32(4096), []byte{0x42}, s(1<<62), []byte{0x37, 3, 24}) // the time at 4096+24
	poll := func(in, out, n int64) []byte { return join(i32(in), i32(out), i32(n), i32(8192), call(0), drop) }
	with(Harmless, "sleep-for-a-century", "poll_oneoff", tFour, sleep, poll(4096, 6000, 1))
	with(Harmless, "sleep-until-a-date", "poll_oneoff", tFour, sleep, i32(4096), i32(1), i32store[:1], []byte{2, 40},
		poll(4096, 6000, 1))
	with(Harmless, "wait-for-stdin", "poll_oneoff", tFour, i32(4096), i32(1), []byte{0x3a, 0, 8}, poll(4096, 6000, 1))
	with(Harmless, "wait-for-a-file-that-is-not-there", "poll_oneoff", tFour, i32(4096), i32(1), []byte{0x3a, 0, 8},
		i32(4096), i32(77), []byte{0x36, 2, 16}, poll(4096, 6000, 1))
	with(Harmless, "subscriptions-none", "poll_oneoff", tFour, poll(4096, 6000, 0))
	with(Harmless, "subscriptions-that-wrap", "poll_oneoff", tFour, poll(4096, 6000, 1<<28))
	with(Harmless, "subscriptions-2-to-the-32", "poll_oneoff", tFour, poll(4096, 6000, -1))
	with(Harmless, "subscriptions-past-memory", "poll_oneoff", tFour, poll(-1, -1, 1))
	with(Quarantine, "sleep-for-ever-in-a-loop", "poll_oneoff", tFour, endless(sleep, poll(4096, 6000, 1))).Slow = true
	with(Harmless, "random-more-than-memory", "random_get", tOpen, i32(0), i32(-1), call(0), drop)
	with(Harmless, "random-at-the-end", "random_get", tOpen, i32(pages<<16-1), i32(2), call(0), drop)
	with(Harmless, "random-over-the-manifest", "random_get", tOpen, i32(manifestAt), i32(1000), call(0), drop)
	with(Quarantine, "random-for-ever", "random_get", tOpen, endless(i32(4096), i32(40_000), call(0), drop)).Slow = true
	with(Quarantine, "clock-for-ever", "clock_time_get", tClock, endless(i32(1), i64(0), i32(4096), call(0), drop)).
		Slow = true
	with(Harmless, "clock-past-memory", "clock_time_get", tClock, i32(0), i64(0), i32(-1), call(0), drop)
	with(Harmless, "clock-of-another-kind", "clock_time_get", tClock, i32(99), i64(0), i32(4096), call(0), drop)
	with(Quarantine, "yield-for-ever", "sched_yield", tI32, endless(call(0), drop)).Slow = true
	with(Quarantine, "exit-0", "proc_exit", tExit, i32(0), call(0))
	with(Quarantine, "exit-1", "proc_exit", tExit, i32(1), call(0))
	with(Quarantine, "exit-of-a-deadline", "proc_exit", tExit, i32(-17), call(0))
	with(Quarantine, "exit-of-a-cancel", "proc_exit", tExit, i32(-16), call(0))
	for _, e := range []string{"ls_abi", "ls_describe", "ls_alloc", "ls_fill"} {
		tail := map[string][]byte{"ls_abi": i32(0), "ls_describe": i64(0), "ls_alloc": i32(0), "ls_fill": i64(0)}[e]
		l.plugin(Quarantine, "exit-in-"+e, "exit(3)", plugin{before: func(m *module) { m.imported(from, "proc_exit", tExit) },
			code: map[string][]byte{e: join(i32(3), call(0), tail)}})
	}
	with(Harmless, "arguments-past-memory", "args_get", tOpen, i32(-1), i32(-1), call(0), drop)
	with(Harmless, "sizes-past-memory", "args_sizes_get", tOpen, i32(-1), i32(-1), call(0), drop)
	with(Harmless, "environment-past-memory", "environ_sizes_get", tOpen, i32(-4), i32(-1), call(0), drop)
	with(Harmless, "close-stdout", "fd_close", tAlloc, i32(1), call(0), drop)
	with(Harmless, "folders", "fd_prestat_get", tOpen, i32(3), i32(4096), call(0), drop)
	with(Harmless, "state-past-memory", "fd_fdstat_get", tOpen, i32(1), i32(-1), call(0), drop)
}

// logs are floods, and pointers that lie.
func logs(l *list) {
	log := func(station Stage, name string, code ...[]byte) *File {
		return l.plugin(station, name, "", plugin{before: func(m *module) { m.imported("ls", "log", tLog) },
			code: map[string][]byte{"ls_open": join(join(code...), i32(0))}})
	}
	log(Quarantine, "for-ever", endless(i32(1), i32(manifestAt), i32(200), call(0))).Slow = true
	log(Quarantine, "nothing-for-ever", endless(i32(1), i32(0), i32(0), call(0))).Slow = true
	log(Quarantine, "past-memory-for-ever", endless(i32(1), i32(-1), i32(100), call(0))).Slow = true
	log(Harmless, "past-memory", i32(1), i32(-1), i32(10), call(0))
	log(Harmless, "of-4-gigabytes", i32(1), i32(0), i32(-1), call(0))
	log(Harmless, "of-an-unknown-level", i32(77), i32(manifestAt), i32(10), call(0))
	log(Harmless, "without-memory-left", i32(3), i32(pages<<16-1), i32(1024), call(0))
	l.plugin(Harmless, "of-escapes", "",
		plugin{errorText: "\x1b[2J\x00\u202egnp\x07\r\n</script>", before: func(m *module) { m.imported("ls", "log", tLog) },
			code: map[string][]byte{"ls_open": join(times(100, join(i32(3), i32(errorAt), i32(20), call(0))), i32(0))}})
	l.plugin(Quarantine, "in-a-tree", "",
		plugin{before: func(m *module) { m.imported("ls", "log", tLog) }, after: func(m *module) {
			f := tree(m, 50, i32(1), i32(manifestAt), i32(1000), call(0))
			m.funcs[3].code = join(call(f), i32(0))
		}}).Slow = true
	// fd_write(fd, pieces, count, written)
	write := func(station Stage, name string, memory []byte, code ...[]byte) *File {
		return l.plugin(station, name, "",
			plugin{memory: memory, before: func(m *module) { m.imported("wasi_snapshot_preview1", "fd_write", tFour) },
				code: map[string][]byte{"ls_open": join(join(code...), i32(0))}})
	}
	piece := join(i32(4096), i32(manifestAt), i32store, i32(4100), i32(400), i32store)
	print1 := func(fd, at, n int64) []byte { return join(i32(fd), i32(at), i32(n), i32(8192), call(0), drop) }
	write(Quarantine, "printed-for-ever", nil, piece, endless(print1(1, 4096, 1))).Slow = true
	write(Quarantine, "to-stderr-for-ever", nil, piece, endless(print1(2, 4096, 1))).Slow = true
	write(Harmless, "pieces-that-wrap", nil, print1(1, 4096, 1<<29))
	write(Harmless, "pieces-2-to-the-32", nil, print1(1, 4096, -1))
	write(Harmless, "pieces-past-memory", nil, print1(1, -8, 1))
	write(Harmless, "piece-of-4-gigabytes", nil, i32(4096), i32(-1), i32store, i32(4100), i32(-1), i32store,
		print1(1, 4096, 1))
	write(Harmless, "to-a-file", nil, piece, print1(3, 4096, 1))
	write(Harmless, "to-a-negative-file", nil, piece, print1(-1, 4096, 1))
	write(Harmless, "count-past-memory", nil, piece, i32(1), i32(4096), i32(1), i32(-2), call(0), drop)
	// Four million pieces, each of them all the memory: one call into the host that would take a day.
	write(Harmless, "four-million-times-all-memory", join([]byte{0}, u(512)), i32(pages<<16), i32(0), i32(31<<20),
		memoryFill,
		i32(1<<20), i32(0), i32store, i32(1<<20+4), i32(32<<20), i32store,
		i32(1<<20+8), i32(1<<20), i32(30<<20), memoryCopy, print1(1, 1<<20, 3<<20))
	write(Quarantine, "a-megabyte-a-call-for-ever", join([]byte{0}, u(512)), i32(4096), i32(0), i32store, i32(4100),
		i32(1<<20), i32store, endless(print1(1, 4096, 1))).Slow = true
}
