package expression

import (
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// sharedOperand is an operand that is used several times, as those of IN, NULLIF and CASE are, and evaluated once: so
// that its faults are counted once a row, and nesting such operands does not double the work at each level.
type sharedOperand struct {
	x node
	v *column.Vec
}

// share makes an operand one that is evaluated once, by the holding node around all that use it.
func share(b bound) (bound, *sharedOperand) {
	h := &sharedOperand{x: b.node}
	if _, is := b.node.(*constant); !is { // which stays one: what it is compared with decides its type
		b.node = h
	}
	return b, h
}

// eval returns what was evaluated for at least these rows.
func (h *sharedOperand) eval(*input, []bool) *column.Vec { return h.v }

// sharedScope evaluates the operand before what uses it.
type sharedScope struct {
	operand *sharedOperand
	then    node
}

func (h *sharedScope) eval(in *input, on []bool) *column.Vec {
	h.operand.v = h.operand.x.eval(in, on)
	return h.then.eval(in, on)
}
