package wasm

// StripCode writes a module that Meter wrote without its code: each function traps, all else
// is as it was. Who has the compiled code of the module elsewhere needs no more of it. mark
// says whose code that is: it makes the modules of two codes different ones.
func StripCode(metered []byte, mark string) []byte {
	r := &reader{b: metered, pos: 8}
	w := &meter{out: append(make([]byte, 0, len(metered)/2), metered[:8]...)}
	for r.rest() > 0 {
		id := r.byte()
		body := r.bytes(r.u32())
		if id != 10 {
			w.section(id, body)
			continue
		}
		functions := (&reader{b: body}).u32()
		hollow := appendU32(nil, functions)
		for range functions {
			hollow = append(hollow, 3, 0, opUnreachable, opEnd) // its length, no locals
		}
		w.section(10, hollow)
	}
	w.section(0, append(appendName(nil, reserved+"code"), mark...))
	return w.out
}
