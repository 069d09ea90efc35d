package wasm

// recursive says for each direct call whether it closes a circle: whether its
// target is open in a walk over the graph of calls. Every recursion that no
// indirect call is part of has one such call, and indirect calls are all counted.
func (m *Module) recursive() []bool {
	counted := make([]bool, len(m.calls))
	const open, done = 1, 2
	state := make([]uint8, len(m.bodies))
	next := make([]int, len(m.bodies)) // the call of each function to look at next
	end := func(f int) int {
		if f+1 < len(m.bodies) {
			return m.bodies[f+1].calls
		}
		return len(m.calls)
	}
	var stack []int
	for root := range m.bodies {
		if state[root] != 0 {
			continue
		}
		state[root], next[root] = open, m.bodies[root].calls
		stack = append(stack[:0], root)
		for len(stack) > 0 {
			f := stack[len(stack)-1]
			if next[f] == end(f) {
				state[f] = done
				stack = stack[:len(stack)-1]
				continue
			}
			call := next[f]
			next[f]++
			switch to := int(m.calls[call]); state[to] {
			case open:
				counted[call] = true
			case 0:
				state[to], next[to] = open, m.bodies[to].calls
				stack = append(stack, to)
			}
		}
	}
	return counted
}
