package host

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/loadstone-db/loadstone/plugins/wasm"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// The budgets of fuel, in units of about one simple instruction (plugins/wasm), and
// of time. A unit takes a third of a nanosecond to a hundred, where every load
// misses the caches: fuel ends a guest at the same place on every machine, time ends
// one that has been made slow. The dearest honest calls that are known take 940
// million units (an adapter's answer of megabytes) in half a second, a batch takes
// 2 million. Fills happen beside the load of every run, so theirs are the tightest.
const (
	// callFuel is for each call but those that a stream makes, the start included.
	callFuel = 2_000_000_000
	// fillFuel is for ls_fill, ls_feed and its ls_alloc, with fillFuelPerOp for every
	// operation asked for or fed, and for ls_error. It leaves room for a garbage
	// collection in the guest.
	fillFuel      = 100_000_000
	fillFuelPerOp = 500_000
	// callDepth is how deep calls that can be part of a recursion may be nested, where
	// those with large frames count for several (wasm.Meter): about 10 MB of stack.
	callDepth = 20_000
	// callTime and fillTime bound how long a call may hold a processor; what it waits
	// between two slices does not count.
	callTime = 7 * time.Second
	fillTime = 2 * time.Second
)

// fuelFor is the budget of a stream's call that is about so many operations.
func fuelFor(operations int) int64 { return fillFuel + int64(operations)*fillFuelPerOp }

// timeFor is how long a call may hold a processor.
func timeFor(export string) time.Duration {
	switch export {
	case abi.ExportFill, abi.ExportFeed, abi.ExportError:
		return fillTime
	}
	return callTime
}

// A guest gets its fuel in slices, because nothing can interrupt it while it
// computes, not even the garbage collector, which waits for it and with it stops
// the process. Between two slices it is the host's code that runs, and that can be.
const (
	// sliceTime is how long a slice should last. One that took longer makes the next
	// ones shorter, one that took a quarter of it makes them longer.
	sliceTime = 200 * time.Microsecond
	// yieldInterval is how long a call computes before it gives its processor to whoever
	// waits for one, and every so many rests it sleeps: only a processor that has
	// nothing to do looks for what the network brought.
	yieldInterval  = 200 * time.Microsecond
	yieldsPerSleep = 10
	sleepDuration  = 50 * time.Microsecond
)

// sliceSize bounds the fuel of a slice, by how large the guest's memory is: loads
// that depend on one another and miss the caches which the memory does not fit into
// take 4, 20 or 100 ns. The least lasts sliceTime then, the most 2 ms.
type sliceSize struct {
	memory   uint32
	min, max int64
}

var sliceSizes = [...]sliceSize{
	{256 << 10, 50_000, 500_000},
	{1 << 20, 10_000, 100_000},
	{1<<32 - 1, 2_000, 20_000},
}

// fit returns a size of slices that suits a guest with so many bytes of memory.
func fit(slice int64, memory uint32) int64 {
	for _, s := range sliceSizes {
		if memory <= s.memory {
			return max(s.min, min(slice, s.max))
		}
	}
	return slice
}

// errBudgetExhausted stops a guest whose budget is used up.
var errBudgetExhausted = errors.New("the budget of the call is used up")

// fuelTank is what an instance may still spend in the call under way.
type fuelTank struct {
	fuel, depth api.MutableGlobal
	memory      api.Memory
	// left is the fuel behind the slice that the guest has, and slice the size of those.
	left, slice int64
	// given is the fuel of the call.
	given int64
	// limit bounds the time of the call; late is set when it was reached.
	limit time.Duration
	late  bool
	// short is why the guest got no more memory when it asked for it in this call.
	short error
	// began is when the first slice of the call was used up, on the clock of
	// clockBase, and 0 before; waited is for how long the call rested since. poured
	// is when the last slice was given, rested when the last rest was over.
	began, waited, sliceStarted, rested time.Duration
	rests                               int
	// watch, in tests, is told when the guest begins and ends to compute.
	watch func(computes bool)
}

var clockBase = time.Now()

// refuel makes ready for a call.
func (t *fuelTank) refuel(units int64, limit time.Duration) {
	t.given = units
	t.short = nil
	t.left, t.limit, t.late, t.began, t.waited, t.rests = units, limit, false, 0, 0, 0
	t.depth.Set(callDepth)
	t.nextSlice()
}

// nextSlice gives the guest its next slice.
func (t *fuelTank) nextSlice() {
	give := t.left
	if t.memory != nil {
		t.slice = fit(t.slice, t.memory.Size())
		give = min(give, t.slice)
	}
	t.left -= give
	t.fuel.Set(uint64(give))
	t.watched(true)
}

func (t *fuelTank) watched(computes bool) {
	if t.watch != nil {
		t.watch(computes)
	}
}

// remaining is what the call has not spent; it is below 0 when fuel ran out.
func (t *fuelTank) remaining() int64 { return t.left + int64(t.fuel.Get()) }

// tooDeep reports that calls were nested too deep.
func (t *fuelTank) tooDeep() bool { return int32(uint32(t.depth.Get())) < 0 }

// next is called by a guest whose slice is used up. Only here can the collector and
// other goroutines have their turn.
func (t *fuelTank) next() {
	t.watched(false)
	t.left = t.remaining()
	if t.left < 0 {
		t.fuel.Set(uint64(t.left))
		t.left = 0
		panic(errBudgetExhausted)
	}
	now := time.Since(clockBase)
	if t.began == 0 {
		t.began, t.rested = now, now
	} else {
		t.adapt(now - t.sliceStarted)
	}
	if now-t.rested >= yieldInterval {
		if now-t.began-t.waited > t.limit {
			t.late = true
			panic(errBudgetExhausted)
		}
		t.rest()
		t.rested = time.Since(clockBase)
		t.waited += t.rested - now
		now = t.rested
	}
	t.sliceStarted = now
	t.nextSlice()
}

// adapt changes the size of slices after one that took so long.
func (t *fuelTank) adapt(took time.Duration) {
	switch {
	case took > sliceTime:
		t.slice = t.slice * int64(sliceTime) / int64(took)
	case took < sliceTime/4:
		t.slice *= 2
	}
}

func (t *fuelTank) rest() {
	if t.rests++; t.rests%yieldsPerSleep == 0 {
		time.Sleep(sleepDuration)
		return
	}
	runtime.Gosched()
}

// registerSlice instantiates the function that the meter has every guest import.
func registerSlice(ctx context.Context, r wazero.Runtime) error {
	slice := api.GoFunc(func(ctx context.Context, _ []uint64) {
		s, ok := ctx.Value(hostEnvKey{}).(*hostEnv)
		if !ok {
			panic("a guest was called outside an instance")
		}
		s.tank.next()
	})
	_, err := r.NewHostModuleBuilder(wasm.ImportModule).NewFunctionBuilder().WithGoFunction(slice, nil, nil).
		Export(wasm.ImportSlice).Instantiate(ctx)
	return err
}
