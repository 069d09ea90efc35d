package host

import (
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// The host gives guests what the runtimes of Go and of C ask for at their start,
// and nothing behind it: no file but the log, no argument, no environment, a clock
// that goes on by a step for each reading, and the same random bytes each time.
// The functions are the host's own and not wazero's, because each does a bounded
// amount of work and pays for it with the guest's fuel.

// The error numbers of WASI that are answered.
const (
	errnoBadFile  = 8
	errnoFault    = 21
	errnoInvalid  = 28
	errnoNoSystem = 52
)

// What one call may ask for.
const (
	maxPieces        = 1024
	maxWritten       = 64 << 10
	maxRandom        = 64 << 10
	maxSubscriptions = 64
)

// unitsPerByte is the fuel for a byte that a host function handles, and unitsPerLine
// that for a line that is printed.
const (
	unitsPerByte = 4
	unitsPerLine = 30
)

// clockStart is 2024-01-01, UTC, for ever.
const clockStart = 1_704_067_200_000_000_000

// hostEnv are what the host functions know of the instance that calls them.
type hostEnv struct {
	log    *guestLog
	random *gen.Rand
	tank   *fuelTank
	// ticks are milliseconds of the monotonic clock.
	ticks int64
}

type hostEnvKey struct{}

// spend takes fuel for work that the host does; the guest notices at its next charge.
func (s *hostEnv) spend(units int64) {
	s.tank.fuel.Set(uint64(int64(s.tank.fuel.Get()) - units))
}

// hostFunction is one function that guests may import.
type hostFunction struct {
	module, name    string
	params, results string // a letter for each: i is i32, I is i64
	call            func(s *hostEnv, m api.Memory, args []uint64) uint32
}

// hostFunctions are all imports there are.
var hostFunctions = []hostFunction{
	{abi.ImportModule, abi.ImportLog, "iii", "", guestLogs},
	{abi.WASIModule, "args_get", "ii", "i", returnSuccess},
	{abi.WASIModule, "args_sizes_get", "ii", "i", noSizes},
	{abi.WASIModule, "environ_get", "ii", "i", returnSuccess},
	{abi.WASIModule, "environ_sizes_get", "ii", "i", noSizes},
	{abi.WASIModule, "clock_time_get", "iIi", "i", clockTime},
	{abi.WASIModule, "random_get", "ii", "i", randomGet},
	{abi.WASIModule, "sched_yield", "", "i", returnSuccess},
	{abi.WASIModule, "poll_oneoff", "iiii", "i", pollOneoff},
	{abi.WASIModule, "fd_write", "iiii", "i", fdWrite},
	{abi.WASIModule, "fd_close", "i", "i", badFile},
	{abi.WASIModule, "fd_fdstat_get", "ii", "i", fdStat},
	{abi.WASIModule, "fd_fdstat_set_flags", "ii", "i", noSystem},
	{abi.WASIModule, "fd_prestat_get", "ii", "i", badFile},
	{abi.WASIModule, "fd_prestat_dir_name", "iii", "i", badFile},
	{abi.WASIModule, "proc_exit", "i", "", procExit},
}

// signature writes a function's type as the gate does.
func (f hostFunction) signature() string { return letters(f.params) + " → " + letters(f.results) }

func letters(types string) string {
	out := "("
	for i, t := range types {
		if i > 0 {
			out += ", "
		}
		out += map[rune]string{'i': "i32", 'I': "i64"}[t]
	}
	return out + ")"
}

// registerImports instantiates the modules that guests import from.
func registerImports(ctx context.Context, r wazero.Runtime) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range hostFunctions {
		b := builders[f.module]
		if b == nil {
			b = r.NewHostModuleBuilder(f.module)
			builders[f.module] = b
		}
		b.NewFunctionBuilder().WithGoModuleFunction(f.function(), valueTypesOf(f.params), valueTypesOf(f.results)).
			Export(f.name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return registerSlice(ctx, r)
}

func valueTypesOf(types string) []api.ValueType {
	out := make([]api.ValueType, len(types))
	for i, t := range types {
		out[i] = api.ValueTypeI32
		if t == 'I' {
			out[i] = api.ValueTypeI64
		}
	}
	return out
}

func (f hostFunction) function() api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		s, ok := ctx.Value(hostEnvKey{}).(*hostEnv)
		if !ok || m.Memory() == nil {
			panic("a host function was called outside an instance")
		}
		s.tank.watched(false)
		v := f.call(s, m.Memory(), stack)
		s.tank.watched(true)
		if f.results != "" {
			stack[0] = uint64(v)
		}
	}
}

func returnSuccess(*hostEnv, api.Memory, []uint64) uint32 { return 0 }
func badFile(*hostEnv, api.Memory, []uint64) uint32       { return errnoBadFile }
func noSystem(*hostEnv, api.Memory, []uint64) uint32      { return errnoNoSystem }

// noSizes says that there are no arguments, or no environment.
func noSizes(_ *hostEnv, m api.Memory, args []uint64) uint32 {
	if !m.WriteUint32Le(uint32(args[0]), 0) || !m.WriteUint32Le(uint32(args[1]), 0) {
		return errnoFault
	}
	return 0
}

// clockTime tells the same date always, and a monotonic clock that goes on by a
// millisecond for each reading: Go's runtime waits for time to pass.
func clockTime(s *hostEnv, m api.Memory, args []uint64) uint32 {
	var now int64
	switch uint32(args[0]) {
	case 0:
		now = clockStart
	case 1:
		s.ticks++
		now = s.ticks * 1_000_000
	default:
		return errnoInvalid
	}
	if !m.WriteUint64Le(uint32(args[2]), uint64(now)) {
		return errnoFault
	}
	return 0
}

func randomGet(s *hostEnv, m api.Memory, args []uint64) uint32 {
	n := uint32(args[1])
	if n > maxRandom {
		return errnoInvalid
	}
	s.spend(int64(n) * unitsPerByte)
	b, ok := m.Read(uint32(args[0]), n)
	if !ok {
		return errnoFault
	}
	s.random.Bytes(b)
	return 0
}

// pollOneoff answers every subscription at once: a clock has passed its time, and
// nothing can be read.
func pollOneoff(s *hostEnv, m api.Memory, args []uint64) uint32 {
	const subscription, event = 48, 32
	n := uint32(args[2])
	if n == 0 || n > maxSubscriptions {
		return errnoInvalid
	}
	s.spend(int64(n) * subscription * unitsPerByte)
	in, ok := m.Read(uint32(args[0]), n*subscription)
	out, there := m.Read(uint32(args[1]), n*event)
	if !ok || !there {
		return errnoFault
	}
	in = append([]byte(nil), in...) // the two may overlap
	clear(out)
	for i := range int(n) {
		from, to := in[i*subscription:], out[i*event:]
		copy(to[:8], from[:8]) // the guest's own mark
		kind := from[8]
		to[10] = kind
		if kind == 0 {
			// A time that is absolute lies ahead by what is left of it.
			wait := int64(binary.LittleEndian.Uint64(from[24:]))
			if from[40]&1 != 0 {
				wait -= s.ticks * 1_000_000
			}
			s.ticks += max(0, min(wait, 3600e9)) / 1_000_000
		} else {
			binary.LittleEndian.PutUint16(to[8:], errnoBadFile)
		}
	}
	if !m.WriteUint32Le(uint32(args[3]), n) {
		return errnoFault
	}
	return 0
}

// fdWrite takes what is printed on stdout and stderr. What is too much for one
// call counts as written, so that printing never changes what a guest does.
func fdWrite(s *hostEnv, m api.Memory, args []uint64) uint32 {
	fd, pieces := uint32(args[0]), uint32(args[2])
	if fd != 1 && fd != 2 {
		return errnoBadFile
	}
	if pieces > maxPieces {
		return errnoInvalid
	}
	s.spend(int64(pieces) * 8 * unitsPerByte)
	list, ok := m.Read(uint32(args[1]), pieces*8)
	if !ok {
		return errnoFault
	}
	written, room := uint32(0), uint32(maxWritten)
	for ; len(list) > 0; list = list[8:] {
		n := binary.LittleEndian.Uint32(list[4:])
		text, ok := m.Read(binary.LittleEndian.Uint32(list), n)
		if !ok {
			return errnoFault
		}
		written += n
		text = text[:min(n, room)]
		room -= uint32(len(text))
		lines := s.log.out[fd-1].write(text)
		s.spend(int64(len(text))*unitsPerByte + int64(lines)*unitsPerLine)
	}
	if !m.WriteUint32Le(uint32(args[3]), written) {
		return errnoFault
	}
	return 0
}

// fdStat says that 0, 1 and 2 are terminals that can be written to.
func fdStat(_ *hostEnv, m api.Memory, args []uint64) uint32 {
	if uint32(args[0]) > 2 {
		return errnoBadFile
	}
	b, ok := m.Read(uint32(args[1]), 24)
	if !ok {
		return errnoFault
	}
	clear(b)
	b[0] = 2      // a character device
	b[8] = 1 << 6 // the right to write
	return 0
}

// procExit ends the guest; the instance is thrown away by who called it.
func procExit(_ *hostEnv, _ api.Memory, args []uint64) uint32 {
	panic(sys.NewExitError(uint32(args[0])))
}

// guestLogs is ls.log(level, ptr, len).
func guestLogs(s *hostEnv, m api.Memory, args []uint64) uint32 {
	n := min(uint32(args[2]), abi.MaxLogLine)
	s.spend(int64(n) * unitsPerByte)
	if b, ok := m.Read(uint32(args[1]), n); ok {
		s.log.line(int32(args[0]), b)
	}
	return 0
}
