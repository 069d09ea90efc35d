package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// instance is one running copy of a module. Not safe for concurrent use. After
// any error it must be closed and not used again.
type instance struct {
	module   *compiled
	guest    api.Module
	memory   api.Memory
	log      *guestLog
	ctx      context.Context // carries the log; cold instances add deadlines to it
	deadline time.Duration   // 0 on the hot engine
	errorFn  api.Function
	fillFn   api.Function
	calls    int
	// stack of calls into the guest, so that a call allocates nothing.
	stack [4]uint64
}

// seededRandom is the random source of guests: the same bytes in every instance.
type seededRandom struct{ r *gen.Rand }

func (s seededRandom) Read(b []byte) (int, error) {
	s.r.Bytes(b)
	return len(b), nil
}

var _ io.Reader = seededRandom{}

// instantiate starts a copy on the cold engine (every call under the deadline)
// or, with hot, on the one that cannot be interrupted.
func (c *compiled) instantiate(ctx context.Context, h *Host, hot bool) (inst *instance, err error) {
	run, code := c.engines.cold, c.cold
	i := &instance{module: c, log: newGuestLog(h.log.With().Str("plugin", c.name).Logger()), deadline: h.deadline}
	if hot {
		if code, err = c.hotModule(ctx); err != nil {
			return nil, err
		}
		run, i.deadline = c.engines.hot, 0
	}
	// A fixed start and a step for each reading: Go's runtime waits for time to pass.
	var readings int64
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(&i.log.out[0]).WithStderr(&i.log.out[1]).
		WithRandSource(seededRandom{gen.NewRand(1, 0)}).
		WithWalltime(func() (int64, int32) { return 1_704_067_200, 0 }, sys.ClockResolution(time.Millisecond)).
		WithNanotime(func() int64 { readings++; return readings * int64(time.Millisecond) }, sys.ClockResolution(time.Millisecond)).
		WithNanosleep(func(ns int64) { readings += ns / int64(time.Millisecond) }).
		WithOsyield(func() {})
	i.ctx = context.WithValue(context.WithoutCancel(ctx), logKey{}, i.log)
	start, cancel := i.limited(ctx)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fail(plugin.ErrTrapped, "Plugin %s could not be started: %v.", c.name, p)
		}
		if err != nil {
			i.close()
		}
	}()
	if i.guest, err = run.InstantiateModule(start, code, config); err != nil {
		return nil, i.trap("its start", err)
	}
	if i.memory = i.guest.Memory(); i.memory == nil {
		return nil, refuse("it has no memory")
	}
	i.errorFn = i.guest.ExportedFunction(abi.ExportError)
	i.fillFn = i.guest.ExportedFunction(abi.ExportFill)
	if f := i.guest.ExportedFunction(abi.ExportInitialize); f != nil {
		if err := i.invoke(start, f, abi.ExportInitialize); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// limited is the context of one call. Cancelling the caller's context ends the
// call too, where the engine allows it.
func (i *instance) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if i.deadline == 0 {
		return i.ctx, func() {}
	}
	limited, cancel := context.WithTimeout(i.ctx, i.deadline)
	stop := context.AfterFunc(ctx, cancel)
	return limited, func() { stop(); cancel() }
}

// invoke calls f with i.stack, and turns whatever happens into an error.
func (i *instance) invoke(ctx context.Context, f api.Function, export string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = i.trap(export, fmt.Errorf("%v", p))
		}
	}()
	if err := f.CallWithStack(ctx, i.stack[:]); err != nil {
		return i.trap(export, err)
	}
	return nil
}

// call calls an export with at most three arguments under the instance's deadline.
func (i *instance) call(f api.Function, export string, args ...uint64) (uint64, error) {
	ctx, cancel := i.limited(i.ctx)
	defer cancel()
	return i.callWith(ctx, f, export, args...)
}

func (i *instance) callWith(ctx context.Context, f api.Function, export string, args ...uint64) (uint64, error) {
	if f == nil {
		return 0, refuse("it does not export %s", export)
	}
	copy(i.stack[:], args)
	err := i.invoke(ctx, f, export)
	return i.stack[0], err
}

// export calls an export by name under ctx and the instance's deadline.
func (i *instance) export(ctx context.Context, name string, args ...uint64) (uint64, error) {
	limited, cancel := i.limited(ctx)
	defer cancel()
	v, err := i.callWith(limited, i.guest.ExportedFunction(name), name, args...)
	if err != nil && ctx.Err() != nil {
		return 0, fmt.Errorf("calling %s of plugin %s: %w", name, i.module.name, ctx.Err())
	}
	return v, err
}

// send puts a document into the guest's memory.
func (i *instance) send(ctx context.Context, document []byte) (ptr uint64, err error) {
	if len(document) > abi.MaxDocument {
		return 0, fail(plugin.ErrFailed, "The document for plugin %s has %d bytes, the limit is %d.", i.module.name, len(document), abi.MaxDocument)
	}
	v, err := i.export(ctx, abi.ExportAlloc, uint64(len(document)))
	if err != nil {
		return 0, err
	}
	if uint32(v) == 0 || !i.memory.Write(uint32(v), document) {
		return 0, fail(plugin.ErrTrapped, "Plugin %s gave no room for %d bytes: ls_alloc returned %d.", i.module.name, len(document), uint32(v))
	}
	return uint64(uint32(v)), nil
}

// document reads what an export returned as ptr<<32 | len. The bytes are a view of guest memory.
func (i *instance) document(export string, v uint64) ([]byte, error) {
	if int64(v) == abi.FillError {
		return nil, i.reported(export)
	}
	ptr, n := abi.Unpack(int64(v))
	if n > abi.MaxDocument {
		return nil, fail(plugin.ErrFailed, "Plugin %s returned %d bytes from %s, the limit is %d.", i.module.name, n, export, abi.MaxDocument)
	}
	b, ok := i.memory.Read(ptr, n)
	if !ok {
		return nil, fail(plugin.ErrTrapped, "Plugin %s returned a document outside its memory from %s.", i.module.name, export)
	}
	return b, nil
}

// open calls ls_open.
func (i *instance) open(ctx context.Context, document []byte) error {
	ptr, err := i.send(ctx, document)
	if err != nil {
		return err
	}
	v, err := i.export(ctx, abi.ExportOpen, ptr, uint64(len(document)))
	if err != nil {
		return err
	}
	if int32(uint32(v)) != 0 {
		return i.reported(abi.ExportOpen)
	}
	return nil
}

// close frees the instance; closing twice is fine.
func (i *instance) close() {
	if i.guest != nil {
		// Closing frees memory only; there is nothing to do about an error.
		_ = i.guest.Close(context.WithoutCancel(i.ctx))
		i.guest = nil
	}
}

// isContext reports that an error is the caller's own giving up.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
