package wasm

// The names under which the rewritten module exports what Meter added.
const (
	// NameFuel is a mutable i64. It begins at 0; below 0 the guest calls the host.
	NameFuel = reserved + "fuel"
	// NameDepth is a mutable i32, how many more counted calls may be open. It begins
	// at 0; the call that makes it negative traps.
	NameDepth = reserved + "depth"
	// NameStart is the module's start function, if it has one.
	NameStart = reserved + "start"
	// ImportModule and ImportSlice name the function that Meter has the guest import:
	// () → (), called where fuel is below 0. It fills fuel again, or does not return.
	ImportModule = "loadstone"
	ImportSlice  = "slice"
)

// Meter writes the module again with fuel and depth. Custom sections are left out.
// The result depends on the module's bytes only.
func (m *Module) Meter() []byte {
	total := 0
	for _, s := range m.sections {
		total += len(s.body)
	}
	w := &meter{m: m, fuel: uint32(m.globals), depth: uint32(m.globals) + 1, out: make([]byte, 0, total+total/3+1024)}
	w.slice, w.copy, w.fill = uint32(len(m.Imports)), uint32(len(m.funcs))+1, uint32(len(m.funcs))+2
	w.nothing, w.three = uint32(len(m.types)), uint32(len(m.types))+1
	get := appendU32([]byte{opGlobalGet}, w.fuel)
	w.charge = get
	w.pay = appendU32([]byte{opI64Sub, opGlobalSet}, w.fuel)
	w.check = concat(get, []byte{opI64Const, 0, opI64LtS, opIf, blockNothing, opCall}, appendU32(nil, w.slice),
		[]byte{opEnd})
	w.counted = m.recursive()

	w.out = append(w.out, "\x00asm\x01\x00\x00\x00"...)
	wrote := byte(0)
	// What Meter adds to stands in every module, in its place.
	added := []byte{1, 2, 6, 7}
	for _, s := range m.sections {
		for _, id := range added {
			if _, position := sectionOrder(s.id); position > int(id)*10 && wrote < id {
				w.added(id, nil)
				wrote = id
			}
		}
		switch s.id {
		case 1, 2, 6, 7:
			w.added(s.id, s.body)
			wrote = s.id
		case 3:
			w.functions(s.body)
		case 5:
			w.memory()
		case 8:
		case 9:
			w.elements(s.body)
		case 10:
			w.code()
		case 11:
			w.data(s.body)
		default:
			w.section(s.id, s.body)
		}
	}
	for _, id := range added {
		if wrote < id {
			w.added(id, nil)
		}
	}
	return w.out
}

func concat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// meter writes the new module.
type meter struct {
	m           *Module
	fuel, depth uint32
	// slice is the function that the host gives; copy and fill are Meter's own
	// (bulk.go), after all others. nothing and three are the types they have.
	slice, copy, fill uint32
	nothing, three    uint32
	out               []byte
	// The pieces of code that are put in: a charge is charge, a constant, pay.
	charge, pay, check []byte
	// counted says for each of Module.calls whether it counts against the depth.
	counted []bool

	control []flow
	threads jumpThreader
	loop    int // the next of Module.loops
	call    int // the next of Module.calls
	body    []byte
}

// function is the new number of a function: the host's stands behind the other imports.
func (w *meter) function(f uint32) uint32 {
	if f >= w.slice {
		f++
	}
	return f
}

func (w *meter) section(id byte, body []byte) {
	w.out = append(w.out, id)
	w.out = appendU32(w.out, uint32(len(body)))
	w.out = append(w.out, body...)
}

// memory writes the memory without the module's maximum: who runs it holds it to that (see
// Module.Memory), and so knows when a guest asks for more.
func (w *meter) memory() {
	if !w.m.memory {
		w.section(5, []byte{0})
		return
	}
	w.section(5, appendU32(appendU32([]byte{1, 1}, w.m.minPages), maxPages))
}

// added writes the types, imports, globals or exports with what Meter adds to them.
func (w *meter) added(id byte, body []byte) {
	count := uint32(0)
	if body != nil {
		r := &reader{b: body}
		count = r.u32()
		body = body[r.pos:]
	}
	var tail []byte
	extra := uint32(2)
	switch id {
	case 1:
		tail = []byte{0x60, 0, 0, 0x60, 3, 0x7f, 0x7f, 0x7f, 0}
	case 2:
		extra = 1
		tail = append(appendName(appendName(nil, ImportModule), ImportSlice), KindFunction)
		tail = appendU32(tail, w.nothing)
	case 6:
		tail = []byte{0x7e, 1, opI64Const, 0, opEnd, 0x7f, 1, opI32Const, 0, opEnd}
	case 7:
		body = nil
		for _, e := range w.m.Exports {
			if e.Kind == KindFunction {
				e.Index = w.function(e.Index)
			}
			body = export(body, e.Name, e.Kind, e.Index)
		}
		tail = export(tail, NameFuel, KindGlobal, w.fuel)
		tail = export(tail, NameDepth, KindGlobal, w.depth)
		if w.m.HasStart {
			extra++
			tail = export(tail, NameStart, KindFunction, w.function(w.m.start))
		}
	}
	w.section(id, concat(appendU32(nil, count+extra), body, tail))
}

func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}

func export(b []byte, name string, kind byte, index uint32) []byte {
	return appendU32(append(appendName(b, name), kind), index)
}

// functions writes the types of the functions, with those of Meter's own.
func (w *meter) functions(body []byte) {
	r := &reader{b: body}
	count := r.u32()
	if len(w.m.bodies) == 0 || !w.m.memory {
		w.section(3, body)
		return
	}
	w.section(3, appendU32(appendU32(concat(appendU32(nil, count+2), body[r.pos:]), w.three), w.three))
}

// elements writes the functions in the table by their new numbers.
func (w *meter) elements(body []byte) {
	r := &reader{b: body}
	n := r.u32()
	out := appendU32(make([]byte, 0, len(body)+len(body)/8), n)
	for ; n > 0; n-- {
		from := r.pos
		flags := r.u32()
		if flags == 2 {
			r.u32()
		}
		if flags&1 == 0 { // where it goes: a constant
			r.byte()
			r.skipSigned(32)
			r.byte()
		}
		if flags != 0 {
			r.byte()
		}
		count := r.u32()
		out = append(out, body[from:r.pos]...)
		for ; count > 0; count-- {
			out = appendU32(out, w.function(r.u32()))
		}
	}
	w.section(9, out)
}

func (w *meter) code() {
	at := len(w.out)
	own := w.bulkHelpers()
	w.out = appendU32(append(w.out, make([]byte, 6)...), uint32(len(w.m.bodies)+len(own)))
	for i := range w.m.bodies {
		w.write(&w.m.bodies[i])
	}
	for _, b := range own {
		w.out = append(appendU32(w.out, uint32(len(b))), b...)
	}
	// The section's head has a fixed length, so that the code need not move.
	w.out[at] = 10
	size := uint32(len(w.out) - at - 6)
	for i := range 5 {
		w.out[at+1+i] = byte(size>>(7*i))&0x7f | 0x80
	}
	w.out[at+5] &= 0x7f
}
