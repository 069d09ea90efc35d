package host

// The budgets of fuel, in units of about one simple instruction (plugins/wasm).
// A guest that runs on takes a processor for good, and nothing can interrupt it
// there, not even the garbage collector: what a budget lets through is how long
// one call may hold up the whole process. 1 000 million units are 0.3 to 1.1 s, and
// 3.4 s for loads that miss every cache. The dearest honest calls that are known
// take 940 million (an adapter's answer of megabytes), a batch takes 2 million.
// Fills happen beside the load of every run, so theirs is the tightest.
const (
	// callFuel is for each call but those that a stream makes, the start included.
	callFuel = 2_000_000_000
	// fillFuel is for ls_fill, ls_feed and its ls_alloc, with fillFuelPerOp for every
	// operation asked for or fed, and for ls_error. It leaves room for a garbage
	// collection in the guest.
	fillFuel      = 100_000_000
	fillFuelPerOp = 500_000
	// callDepth is how deep calls that can be part of a recursion may be nested; the
	// compiler's own limit of the stack, about 50 MB, holds besides.
	callDepth = 20_000
)

// fuelFor is the budget of a stream's call that is about so many operations.
func fuelFor(operations int) int64 { return fillFuel + int64(operations)*fillFuelPerOp }

// refuel makes ready for a call.
func (i *instance) refuel(units int64) {
	i.fuel.Set(uint64(units))
	i.depth.Set(callDepth)
}

// burnt reports that the last call ended because fuel ran out, or because calls were nested too deep.
func (i *instance) burnt() (fuel, depth bool) {
	if i.fuel == nil {
		return false, false
	}
	return int64(i.fuel.Get()) < 0, int32(uint32(i.depth.Get())) < 0
}
