package wasm

import "strings"

// reserved begins the names of what Meter exports.
const reserved = "loadstone:"

// parser is a Module while it is read.
type parser struct {
	*Module
	limits Limits
	// control is the stack of open blocks, kept between functions.
	control []control
	threads jumpThreader
	work    int64
}

var typeNames = map[byte]string{0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64"}

// valueType reads a type that a value of a plugin may have.
func (r *reader) valueType() string {
	t := r.byte()
	name, ok := typeNames[t]
	switch {
	case ok || r.err != nil:
	case t == 0x7b:
		r.fail("it uses SIMD, which plugins may not")
	case t >= 0x63 && t <= 0x74:
		r.fail("it uses reference types, which plugins may not")
	default:
		r.fail("it uses the unknown value type %#x", t)
	}
	return name
}

func (p *parser) section(id byte, r *reader) {
	switch id {
	case 1:
		r.each("types", 3, p.limits.Types, p.functionType)
	case 2:
		r.each("imports", 4, p.limits.Imports, p.imported)
	case 3:
		r.each("functions", 1, p.limits.Functions, p.declared)
	case 4:
		r.each("tables", 3, 1, p.declaredTable)
	case 5:
		r.each("memories", 2, 1, func(r *reader) {
			p.minPages, p.maxPages = r.limits("memory", "pages of 64 KB", p.limits.MemoryPages)
			p.memory = true
		})
	case 6:
		n := r.count("globals", 4, p.limits.Globals)
		for p.globals < n && r.err == nil {
			r.valueType()
			if r.byte() > 1 {
				r.fail("a global of it is neither constant nor variable")
			}
			p.constant(r)
			p.globals++
		}
	case 7:
		p.exports(r)
	case 8:
		p.startFunction(r)
	case 9:
		p.elements = r.each("element segments", 3, p.limits.Segments, p.elementSegment)
	case 10:
		p.code(r)
	case 11:
		p.data = r.each("data segments", 2, p.limits.Segments, p.dataSegment)
	case 12:
		p.dataCount, p.hasDataCount = r.u32(), true
	case 13:
		r.fail("it uses exceptions, which plugins may not")
	}
}

// each reads so many things as the section says it has, and returns how many.
func (r *reader) each(what string, size, limit int, read func(*reader)) int {
	n := r.count(what, size, limit)
	for left := n; left > 0 && r.err == nil; left-- {
		read(r)
	}
	return n
}

// declared reads the type of a function.
func (p *parser) declared(r *reader) {
	t := r.u32()
	if r.err == nil && int64(t) >= int64(len(p.types)) {
		r.fail("a function of it has type %d, but there are %d", t, len(p.types))
	}
	p.funcs = append(p.funcs, t)
}

func (p *parser) declaredTable(r *reader) {
	if t := r.byte(); t != 0x70 && r.err == nil {
		r.fail("it uses reference types, which plugins may not: a table of it holds other things than functions")
	}
	r.limits("table", "entries", p.limits.TableEntries)
	p.table = true
}

func (p *parser) startFunction(r *reader) {
	p.start, p.HasStart = r.u32(), true
	if r.err == nil && int64(p.start) >= int64(len(p.funcs)) {
		r.fail("its start function is number %d, but there are %d", p.start, len(p.funcs))
	}
	if r.err == nil && p.types[p.funcs[p.start]].text != "() → ()" {
		r.fail("its start function is %s; it must be () → ()", p.types[p.funcs[p.start]].text)
	}
}

func (p *parser) functionType(r *reader) {
	switch form := r.byte(); {
	case form == 0x60 || r.err != nil:
	case form == 0x5f || form == 0x5e || form == 0x50 || form == 0x4f || form == 0x4e:
		r.fail("it uses garbage-collected types, which plugins may not")
	default:
		r.fail("it declares a type that is not a function")
	}
	var t funcType
	var text [2]string
	for i, what := range []string{"parameters of one type", "results of one type"} {
		n := r.count(what, 1, p.limits.Params)
		names := make([]string, n)
		for j := range names {
			names[j] = r.valueType()
		}
		text[i] = "(" + strings.Join(names, ", ") + ")"
		if i == 0 {
			t.params = n
		} else {
			t.results = n
		}
	}
	t.text = text[0] + " → " + text[1]
	p.types = append(p.types, t)
}

func (p *parser) imported(r *reader) {
	i := Import{Module: r.name(), Name: r.name()}
	kind := r.byte()
	if r.err != nil {
		return
	}
	if kind != KindFunction {
		words := map[byte]string{KindTable: "a table", KindMemory: "a memory", KindGlobal: "a global", 4: "a tag"}
		if words[kind] == "" {
			words[kind] = "something unknown"
		}
		r.fail("it imports %s, %s.%s, which plugins are not given", words[kind], SafeName(i.Module), SafeName(i.Name))
		return
	}
	t := r.u32()
	if r.err == nil && int64(t) >= int64(len(p.types)) {
		r.fail("its import %s.%s has no type", SafeName(i.Module), SafeName(i.Name))
	}
	if r.err != nil {
		return
	}
	i.Type = p.types[t].text
	p.Imports = append(p.Imports, i)
	p.funcs = append(p.funcs, t)
}

// limits reads the limits of the table or the memory.
func (r *reader) limits(what, unit string, limit int) (minimum, maximum uint32) {
	flags := r.byte()
	switch {
	case flags > 1 && flags < 4:
		r.fail("its %s is shared between threads, which plugins may not do", what)
	case flags >= 4 && flags < 8:
		r.fail("its %s is addressed with 64 bits (memory64), which plugins may not do", what)
	case flags >= 8:
		r.fail("its %s has unknown limits", what)
	}
	minimum, maximum = r.u32(), 1<<32-1
	if r.err == nil && int64(minimum) > int64(limit) {
		r.fail("its %s starts with %d %s, the limit is %d", what, minimum, unit, limit)
	}
	if flags == 1 {
		if maximum = r.u32(); r.err == nil && maximum < minimum {
			r.fail("its %s may not be as large as it starts", what)
		}
	}
	return minimum, maximum
}

// constant reads a constant expression: one constant.
func (p *parser) constant(r *reader) {
	switch op := r.byte(); {
	case r.err != nil:
	case op == opI32Const:
		r.skipSigned(32)
	case op == opI64Const:
		r.skipSigned(64)
	case op == opF32Const:
		r.skip(4)
	case op == opF64Const:
		r.skip(8)
	case op == opGlobalGet:
		// Only imported globals may be read here, and there are none.
		r.fail("a constant in it reads a global, which plugins may not")
	default:
		if name := refusedFeature[kinds[op]]; name != "" {
			r.fail("it uses %s, which plugins may not", name)
			return
		}
		r.fail("a constant in it is not a constant: instruction %#x", op)
	}
	if end := r.byte(); end != opEnd && r.err == nil {
		r.fail("a constant in it is calculated, which plugins may not do")
	}
}

func (p *parser) exports(r *reader) {
	seen := map[string]bool{}
	for n := r.count("exports", 3, p.limits.Exports); n > 0 && r.err == nil; n-- {
		e := Export{Name: r.name(), Kind: r.byte(), Index: r.u32()}
		if r.err != nil {
			return
		}
		if seen[e.Name] {
			r.fail("it exports %s twice", SafeName(e.Name))
			return
		}
		if strings.HasPrefix(e.Name, reserved) {
			r.fail("it exports %s; names that begin with %s are the host's", SafeName(e.Name), reserved)
			return
		}
		seen[e.Name] = true
		there := false
		switch e.Kind {
		case KindFunction:
			if there = int64(e.Index) < int64(len(p.funcs)); there {
				e.Type = p.types[p.funcs[e.Index]].text
			}
		case KindTable:
			there = p.table && e.Index == 0
		case KindMemory:
			there = p.memory && e.Index == 0
		case KindGlobal:
			there = int64(e.Index) < int64(p.globals)
		}
		if !there {
			r.fail("its export %s points at nothing", SafeName(e.Name))
			return
		}
		p.Exports = append(p.Exports, e)
	}
}

// elementSegment reads functions for the table, by their numbers.
func (p *parser) elementSegment(r *reader) {
	flags := r.u32()
	if flags > 3 {
		r.fail("it uses reference types, which plugins may not: an element segment of kind %d", flags)
		return
	}
	if flags == 2 {
		if t := r.u32(); t != 0 && r.err == nil {
			r.fail("an element segment of it is for table %d", t)
		}
	}
	if flags&1 == 0 {
		if !p.table && r.err == nil {
			r.fail("an element segment of it is for a table that is not there")
		}
		p.constant(r)
	}
	if flags != 0 {
		if kind := r.byte(); kind != 0 && r.err == nil {
			r.fail("an element segment of it is of the unknown kind %d", kind)
		}
	}
	for n := r.count("elements in one segment", 1, p.limits.TableEntries); n > 0 && r.err == nil; n-- {
		if f := r.u32(); int64(f) >= int64(len(p.funcs)) && r.err == nil {
			r.fail("an element segment of it names function %d, but there are %d", f, len(p.funcs))
		}
	}
}

func (p *parser) dataSegment(r *reader) {
	flags := r.u32()
	switch {
	case flags > 2:
		r.fail("a data segment of it has unknown flags")
	case flags == 2:
		if i := r.u32(); i != 0 && r.err == nil {
			r.fail("a data segment of it is for memory %d", i)
		}
	}
	if flags != 1 {
		if !p.memory && r.err == nil {
			r.fail("a data segment of it is for a memory that is not there")
		}
		p.constant(r)
	}
	r.bytes(r.u32())
}
