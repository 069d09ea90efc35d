package hostiletest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
)

// header is that of a module.
const header = "\x00asm\x01\x00\x00\x00"

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, errWrite := w.Write(b)
	if err := w.Close(); err != nil || errWrite != nil {
		panic("writing to memory failed")
	}
	return out.Bytes()
}

// formats are files of other kinds, as people upload them by mistake or not.
func formats(l *list) {
	const notOne = "not a WebAssembly module"
	l.raw(Gate, "empty", notOne, nil)
	l.raw(Gate, "one-byte", notOne, []byte{0})
	l.raw(Gate, "magic-only", "", []byte("\x00asm"))
	l.raw(Gate, "half-a-version", "", []byte("\x00asm\x01\x00"))
	l.raw(Gate, "header-only", "memory", []byte(header))
	l.raw(Gate, "version-2", "version", []byte("\x00asm\x02\x00\x00\x00"))
	l.raw(Gate, "version-max", "version", []byte("\x00asm\xff\xff\xff\xff"))
	l.raw(Gate, "component", "component", []byte("\x00asm\x0d\x00\x01\x00"))
	l.add(Gate, "component-around-a-module", "component", func() []byte {
		return join([]byte("\x00asm\x0d\x00\x01\x00"), section(1, Honest()))
	})
	l.raw(Gate, "elf", "", join([]byte("\x7fELF\x02\x01\x01"), repeat(200, 0)))
	l.raw(Gate, "windows-program", notOne, join([]byte("MZ\x90\x00\x03"), repeat(100, 0)))
	l.raw(Gate, "mach-o", notOne, join([]byte("\xcf\xfa\xed\xfe"), repeat(100, 0)))
	l.raw(Gate, "java-class", notOne, []byte("\xca\xfe\xba\xbe\x00\x00\x00\x41"))
	l.add(Gate, "gzip-of-a-plugin", "", func() []byte { return gzipped(Honest()) })
	l.add(Gate, "gzip-bomb", "", func() []byte { return gzipped(make([]byte, 32<<20)) })
	l.raw(Gate, "zip", "", []byte("PK\x03\x04\x14\x00\x00\x00\x08\x00plugin.wasm"))
	l.raw(Gate, "zstd", "", []byte("\x28\xb5\x2f\xfd\x04\x00"))
	l.raw(Gate, "tar", "", join([]byte("plugin.wasm"), repeat(500, 0), []byte("ustar\x0000")))
	l.raw(Gate, "llvm-bitcode", "", []byte("BC\xc0\xde\x35\x14"))
	l.raw(Gate, "object-archive", "", []byte("!<arch>\nplugin.o/"))
	l.raw(Gate, "html", "", []byte("<!doctype html><html><body>404 Not Found</body></html>"))
	l.raw(Gate, "html-script", "", []byte("<script>alert(1)</script>"))
	l.raw(Gate, "xml", "", []byte("<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>"))
	l.raw(Gate, "json", "", []byte(manifest))
	l.raw(Gate, "wat", "", []byte("(module (memory (export \"memory\") 1))"))
	l.raw(Gate, "javascript", "", []byte("export function ls_fill(n) { return 0n }\n"))
	l.raw(Gate, "terminal-escapes", notOne, []byte("\x1b]0;owned\x07\x1b[2J\x1b[31mhello"))
	l.raw(Gate, "utf16", notOne, []byte("\xff\xfe\x00\x00a\x00s\x00m\x00"))
	l.add(Gate, "byte-order-mark", "", func() []byte { return join([]byte("\xef\xbb\xbf"), Honest()) })
	l.add(Gate, "two-modules", "", func() []byte { return join(Honest(), Honest()) })
	l.add(Gate, "trailing-zeros", "", func() []byte { return join(Honest(), repeat(16, 0)) })
	l.add(Gate, "trailing-text", "", func() []byte { return join(Honest(), []byte("</html>")) })
	l.add(Gate, "every-bit-turned", "", func() []byte {
		b := Honest()
		for i := range b {
			b[i] ^= 0xff
		}
		return b
	})
	l.add(Gate, "eight-megabytes-of-zeros", "limit", func() []byte { return make([]byte, 8<<20+1) }).Large = true
	l.add(Gate, "one-byte-too-long", "limit", func() []byte {
		b := Honest()
		return join(b, custom("x", make([]byte, 8<<20+1-len(b)-7)))
	}).Large = true
	l.add(Harmless, "just-short-enough", "", func() []byte {
		b := Honest()
		return join(b, custom("x", make([]byte, 8<<20-len(b)-7)))
	}).Large = true
}

// counts claim 2³²−1 of something.
func counts(l *list) {
	limit := u(maxU32)
	sectionNames := []string{0: "custom", 1: "type", 2: "import", 3: "function", 4: "table", 5: "memory", 6: "global",
		7: "export",
		8: "start", 9: "element", 10: "code", 11: "data", 12: "data-count"}
	for id := byte(1); id <= 12; id++ {
		l.add(Gate, "section-"+sectionNames[id], "", func() []byte {
			m := plugin{}.module()
			m.replace(id, limit)
			return m.bytes()
		})
		// A length that reaches past the end of the file.
		l.raw(Gate, "length-"+sectionNames[id], "cut off", join([]byte(header), []byte{id}, limit, repeat(8, 0)))
	}
	l.raw(Gate, "length-custom", "cut off", join([]byte(header), []byte{0}, limit, []byte{1, 'x'}))
	for id := byte(1); id <= 11; id++ {
		if id == 8 {
			continue
		}
		l.add(Gate, "one-more-than-bytes-"+sectionNames[id], "", func() []byte {
			m := plugin{}.module()
			m.replace(id, join(u(1<<16), repeat(1<<12, 0x60)))
			return m.bytes()
		})
	}
	nested := func(name, says string, id byte, body ...[]byte) {
		l.add(Gate, name, says, func() []byte {
			m := plugin{}.module()
			m.replace(id, join(body...))
			return m.bytes()
		})
	}
	nested("parameters-of-a-type", "parameters", 1, []byte{1, 0x60}, limit, repeat(64, i32t))
	nested("results-of-a-type", "results", 1, []byte{1, 0x60, 0}, limit, repeat(64, i32t))
	nested("name-of-an-import", "", 2, []byte{1}, limit, []byte("ls"))
	nested("name-of-an-export", "", 7, []byte{1}, limit, []byte("memory"))
	nested("elements-of-a-segment", "", 9, []byte{1, 0}, i32(0), end, limit)
	nested("functions-of-a-passive-segment", "elements", 9, []byte{1, 1, 0}, limit)
	nested("bytes-of-a-data-segment", "", 11, []byte{1, 0}, i32(0), end, limit)
	nested("bytes-of-a-passive-data-segment", "", 11, []byte{1, 1}, limit)
	nested("size-of-a-function", "", 10, []byte{6}, limit, repeat(32, 0x0b))
	nested("groups-of-locals", "locals", 10, []byte{6}, u(20), limit, repeat(64, 0x7f))
	nested("table-entries", "", 4, []byte{1, funcref, 0}, limit)
	nested("pages-of-memory", "memory", 5, []byte{1, 0}, limit)
	nested("type-of-a-function", "", 3, []byte{6}, limit, repeat(5, 0))
	nested("index-of-an-export", "", 7, []byte{1}, text("ls_fill"), []byte{0}, limit)
	nested("index-of-start", "", 8, limit)
	nested("branch-targets", "", 10, []byte{6}, u(16), []byte{0, 0x41, 0, 0x0e}, limit, repeat(64, 0))
	for _, sub := range []struct {
		name string
		id   byte
	}{{"function-names", 1}, {"local-names", 2}, {"label-names", 3}} {
		// wazero makes room for that many names before it reads the first: the process would
		// die of it. Whatever runs a plugin must not show the compiler these sections.
		l.add(Harmless, "debug-"+sub.name, "", func() []byte {
			return join(Honest(), custom("name", section(sub.id, limit)))
		})
	}
	l.add(Harmless, "debug-names-of-one-function", "", func() []byte {
		return join(Honest(), custom("name", section(2, join(u(1), u(0), limit))))
	})
	l.add(Harmless, "debug-name-past-the-end", "", func() []byte {
		return join(Honest(), custom("name", join([]byte{0}, limit, limit)))
	})
	l.add(Harmless, "dwarf-garbage", "", func() []byte {
		return join(Honest(), custom(".debug_info", repeat(64, 0xff)), custom(".debug_abbrev", repeat(64, 0x80)),
			custom(".debug_line", repeat(64, 0xff)))
	})
}

// lebs are numbers that are longer than their type allows.
func lebs(l *list) {
	tooLong := func(n int, last byte) []byte { return append(repeat(n-1, 0x80), last) }
	l.raw(Gate, "section-length-6-bytes", "", join([]byte(header), []byte{1}, tooLong(6, 0)))
	l.raw(Gate, "section-length-endless", "", join([]byte(header), []byte{1}, repeat(4096, 0x80)))
	l.raw(Gate, "section-length-33-bits", "",
		join([]byte(header), []byte{1}, []byte{0x80, 0x80, 0x80, 0x80, 0x10}, repeat(16, 0)))
	body := func(name string, id byte, b []byte) {
		l.add(Gate, name, "", func() []byte {
			m := plugin{}.module()
			m.replace(id, b)
			return m.bytes()
		})
	}
	body("count-of-types-6-bytes", 1, tooLong(6, 0))
	body("count-of-types-endless", 1, repeat(1000, 0xff))
	body("count-of-functions-33-bits", 3, join(repeat(4, 0xff), []byte{0x1f}))
	body("memory-6-bytes", 5, join([]byte{1, 0}, tooLong(6, 1)))
	code := func(station Stage, name string, b []byte) {
		l.plugin(station, name, "", plugin{code: map[string][]byte{"ls_open": b}})
	}
	code(Gate, "i32-constant-6-bytes", join([]byte{0x41}, tooLong(6, 0)))
	code(Gate, "i32-constant-33-bits", []byte{0x41, 0xff, 0xff, 0xff, 0xff, 0x1f})
	code(Gate, "i64-constant-11-bytes", join([]byte{0x42}, tooLong(11, 0), drop, i32(0)))
	code(Gate, "i64-constant-65-bits", join([]byte{0x42}, repeat(9, 0xff), []byte{0x02}, drop, i32(0)))
	code(Gate, "constant-endless", join([]byte{0x41}, repeat(2000, 0x80)))
	code(Gate, "local-6-bytes", join([]byte{0x20}, tooLong(6, 0)))
	code(Gate, "call-6-bytes", join([]byte{0x10}, tooLong(6, 0)))
	code(Gate, "bulk-prefix-6-bytes", join([]byte{0xfc}, tooLong(6, 11)))
	code(Gate, "block-type-6-bytes", join([]byte{0x02}, tooLong(6, 0)))
	code(Harmless, "padded-to-5-bytes", join([]byte{0x41}, tooLong(5, 0)))
	l.plugin(Gate, "offset-of-data-6-bytes", "", plugin{after: func(m *module) {
		m.data = append(m.data, join([]byte{0, 0x41}, tooLong(6, 0), end, text("x")))
	}})
	l.plugin(Gate, "global-11-bytes", "", plugin{after: func(m *module) {
		m.globals = append(m.globals, join([]byte{i64t, 0, 0x42}, tooLong(11, 0), end))
	}})
}

// truncated are the first bytes of a plugin, cut near every boundary. Truncations
// makes all others.
func truncated(l *list) {
	whole := Honest()
	for _, n := range []int{9, 10, 11, 12, 40, 64, 72, 78, 80, 84, 88, 92, 100, 110, 120, 132, 140, 160, 170, 180, 190,
		200, 210, 220, 230, 240, 260, 300, 400, 500, 600} {
		if n < len(whole) {
			l.raw(Gate, fmt.Sprintf("at-%04d", n), "", whole[:n])
		}
	}
	l.raw(Gate, "without-the-last-byte", "", whole[:len(whole)-1])
}

// Truncations calls f with every proper prefix of the honest plugin; step skips
// prefixes.
func Truncations(whole []byte, step int, f func(n int, b []byte)) {
	for n := 0; n < len(whole); n += step {
		f(n, whole[:n])
	}
}

// sections are out of order, there twice, unknown, too long or too short.
func sections(l *list) {
	for _, id := range []byte{1, 3, 5, 7, 10, 11} {
		l.add(Gate, fmt.Sprintf("%d-there-twice", id), "", func() []byte {
			m := plugin{}.module()
			once := m.bytes()
			at := bytes.Index(once, []byte(header)) + len(header)
			m.insert(id, find(once[at:], id))
			return m.bytes()
		})
	}
	for _, id := range []byte{13, 14, 64, 127, 255} {
		l.add(Gate, fmt.Sprintf("of-kind-%d", id), "", func() []byte { return join(Honest(), section(id, []byte{0})) })
	}
	l.add(Gate, "backwards", "", func() []byte {
		whole, out := Honest(), []byte(header)
		for id := byte(12); id > 0; id-- {
			out = append(out, find(whole[8:], id)...)
		}
		return out
	})
	l.add(Gate, "code-before-functions", "", func() []byte {
		m := plugin{}.module()
		m.insert(3, find(m.bytes()[8:], 10))
		return m.bytes()
	})
	l.add(Gate, "functions-without-code", "", func() []byte {
		whole, out := Honest(), []byte(header)
		for id := byte(1); id < 10; id++ {
			out = append(out, find(whole[8:], id)...)
		}
		return out
	})
	l.add(Gate, "code-without-functions", "", func() []byte {
		m := plugin{}.module()
		m.replace(3, []byte{0})
		return m.bytes()
	})
	l.add(Gate, "more-code-than-functions", "", func() []byte {
		m := plugin{}.module()
		m.replace(3, []byte{2, tI32, tI64})
		return m.bytes()
	})
	for id := byte(1); id <= 11; id++ {
		if len(find(Honest()[8:], id)) == 0 {
			continue
		}
		l.add(Gate, fmt.Sprintf("%d-with-a-byte-too-many", id), "", func() []byte {
			m := plugin{}.module()
			s := find(m.bytes()[8:], id)
			m.replace(id, append(content(s), 0))
			return m.bytes()
		})
	}
	l.plugin(Gate, "data-count-is-wrong", "", plugin{after: func(m *module) { n := uint32(maxU32); m.count = &n }})
	l.plugin(Gate, "data-count-without-data", "",
		plugin{after: func(m *module) { n := uint32(7); m.count, m.data = &n, nil }})
	l.add(Harmless, "100-000-empty-custom-ones", "",
		func() []byte { return join(Honest(), bytes.Repeat(custom("x", nil), 100_000)) })
	l.add(Gate, "custom-without-a-name", "", func() []byte { return join(Honest(), section(0, nil)) })
	l.add(Gate, "custom-with-a-name-too-long", "",
		func() []byte { return join(Honest(), section(0, join(u(100), []byte("x")))) })
	l.add(Gate, "custom-with-a-broken-name", "UTF-8", func() []byte { return join(Honest(), custom("\xff\xfe", nil)) })
	l.add(Harmless, "custom-with-escapes", "",
		func() []byte { return join(Honest(), custom("\x1b[2J<script>"+strings.Repeat("a", 1000), nil)) })
	l.plugin(Gate, "tags", "", plugin{after: func(m *module) { m.insert(6, section(13, []byte{1, 0, 0})) }})
}

// find returns the section of that kind, with its head, from sections one after the other.
func find(b []byte, id byte) []byte {
	for pos := 0; pos < len(b); {
		begin, kind := pos, b[pos]
		size, n := uint64(0), 0
		for {
			c := b[pos+1+n]
			size |= uint64(c&0x7f) << (7 * n)
			n++
			if c < 0x80 {
				break
			}
		}
		pos += 1 + n + int(size)
		if kind == id {
			return b[begin:pos]
		}
	}
	return nil
}

// content is a section without its head.
func content(s []byte) []byte {
	n := 1
	for s[n] >= 0x80 {
		n++
	}
	return bytes.Clone(s[n+1:])
}
