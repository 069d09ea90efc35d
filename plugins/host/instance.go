package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/wasm"
	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// instance is one running copy of a module. Not safe for concurrent use, but that close may be called at
// any time. After any error it must be closed and not used again.
//
// Whoever runs the guest or looks at its memory holds the instance meanwhile: once it is closed
// another instance gets the memory at the same addresses. So no view of it leaves this file
// (copied, write), and what wazero is told to free is freed by the last who holds it.
type instance struct {
	module   *compiled
	guest    api.Module
	memory   api.Memory
	log      *guestLog
	ctx      context.Context // carries the surroundings
	callFuel int64
	tank     *fuelTank
	linear   *guestMemory
	errorFn  api.Function
	fillFn   api.Function
	calls    int
	refs     refCount
	// stack of calls into the guest, so that a call allocates nothing.
	stack [4]uint64
}

// instantiate starts a copy. ctx ending does not stop a guest that runs; it is
// looked at between calls.
func (c *compiled) instantiate(ctx context.Context, h *Host) (inst *instance, err error) {
	i := &instance{module: c, log: newGuestLog(h.log.With().Str("plugin", c.name).Logger()), callFuel: h.fuel}
	i.tank = &fuelTank{watch: h.watch}
	around := &hostEnv{log: i.log, random: gen.NewRand(1, 0), tank: i.tank}
	i.ctx = context.WithValue(context.WithoutCancel(ctx), hostEnvKey{}, around)
	defer func() {
		if p := recover(); p != nil {
			err = fail(plugin.ErrTrapped, "Plugin %s could not be started: %v.", c.name, p)
		}
		if err != nil {
			i.close()
			inst = nil
		}
	}()
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	if i.linear, err = memoryOf(c, h, i.tank); err != nil {
		return nil, err
	}
	with := experimental.WithMemoryAllocator(i.ctx, i.linear)
	if i.guest, err = c.compiler.runtime.InstantiateModule(with, c.code, config); err != nil {
		return nil, i.trap("its start", err)
	}
	i.tank.fuel, _ = i.guest.ExportedGlobal(wasm.NameFuel).(api.MutableGlobal)
	i.tank.depth, _ = i.guest.ExportedGlobal(wasm.NameDepth).(api.MutableGlobal)
	if i.tank.fuel == nil || i.tank.depth == nil {
		return nil, fail(plugin.ErrTrapped, "Plugin %s was compiled without fuel.", c.name)
	}
	i.tank.memory = i.guest.Memory()
	if err := i.begin(ctx); err != nil {
		return nil, err
	}
	return i, nil
}

// begin runs what a guest does before its first call.
func (i *instance) begin(ctx context.Context) error {
	if i.memory = i.guest.Memory(); i.memory == nil {
		return refuse("it has no memory")
	}
	i.errorFn = i.guest.ExportedFunction(abi.ExportError)
	i.fillFn = i.guest.ExportedFunction(abi.ExportFill)
	if f := i.guest.ExportedFunction(wasm.NameStart); f != nil {
		if err := i.invoke(f, "its start function", i.callFuel); err != nil {
			return err
		}
	}
	if f := i.guest.ExportedFunction(abi.ExportInitialize); f != nil {
		if err := i.invoke(f, abi.ExportInitialize, i.callFuel); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// invoke calls f with i.stack on a budget of fuel, and turns whatever happens into an error.
func (i *instance) invoke(f api.Function, export string, fuel int64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = i.trap(export, fmt.Errorf("%v", p))
		}
	}()
	if !i.refs.acquire() {
		return i.closedError(export)
	}
	defer i.drop()
	i.tank.refuel(fuel, timeFor(export))
	err = f.CallWithStack(i.ctx, i.stack[:])
	i.tank.watched(false)
	if err != nil {
		return i.trap(export, err)
	}
	return nil
}

// call calls f with at most three arguments.
func (i *instance) call(f api.Function, export string, fuel int64, args ...uint64) (uint64, error) {
	if f == nil {
		return 0, refuse("it does not export %s", export)
	}
	copy(i.stack[:], args)
	err := i.invoke(f, export, fuel)
	return i.stack[0], err
}

// export calls an export by name, unless ctx has ended.
func (i *instance) export(ctx context.Context, name string, args ...uint64) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("calling %s of plugin %s: %w", name, i.module.name, err)
	}
	return i.call(i.guest.ExportedFunction(name), name, i.callFuel, args...)
}

// send puts a document into the guest's memory, which has so much fuel to give room for it.
func (i *instance) send(ctx context.Context, document []byte, fuel int64) (ptr uint64, err error) {
	if len(document) > abi.MaxDocument {
		return 0, fail(plugin.ErrFailed, "The document for plugin %s has %d bytes, the limit is %d.", i.module.name,
			len(document), abi.MaxDocument)
	}
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("sending a document to plugin %s: %w", i.module.name, err)
	}
	v, err := i.call(i.guest.ExportedFunction(abi.ExportAlloc), abi.ExportAlloc, fuel, uint64(len(document)))
	if err != nil {
		return 0, err
	}
	if uint32(v) == 0 || !i.write(uint32(v), document) {
		return 0, fail(plugin.ErrTrapped, "Plugin %s gave no room for %d bytes: ls_alloc returned %d.", i.module.name,
			len(document), uint32(v))
	}
	return uint64(uint32(v)), nil
}

// document reads what an export returned as ptr<<32 | len.
func (i *instance) document(export string, v uint64) ([]byte, error) {
	if int64(v) == abi.FillError {
		return nil, i.reported(export)
	}
	ptr, n := abi.Unpack(int64(v))
	if n > abi.MaxDocument {
		return nil, fail(plugin.ErrFailed, "Plugin %s returned %d bytes from %s, the limit is %d.", i.module.name, n, export,
			abi.MaxDocument)
	}
	b, ok := i.appendMemory(nil, ptr, n)
	if !ok {
		return nil, fail(plugin.ErrTrapped, "Plugin %s returned a document outside its memory from %s.", i.module.name,
			export)
	}
	return b, nil
}

// open calls ls_open.
func (i *instance) open(ctx context.Context, document []byte) error {
	ptr, err := i.send(ctx, document, i.callFuel)
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

// appendMemory appends a part of the guest's memory to into; false says that there is no such part, or
// that the instance is closed.
func (i *instance) appendMemory(into []byte, ptr, n uint32) ([]byte, bool) {
	if !i.refs.acquire() {
		return into, false
	}
	defer i.drop()
	view, ok := i.memory.Read(ptr, n)
	return append(into, view...), ok
}

// write puts bytes into the guest's memory; false is as in copied.
func (i *instance) write(ptr uint32, data []byte) bool {
	if !i.refs.acquire() {
		return false
	}
	defer i.drop()
	return i.memory.Write(ptr, data)
}

// closedError is the error of whoever uses an instance that is closed.
func (i *instance) closedError(export string) error {
	return fail(plugin.ErrFailed, "Plugin %s was called in %s after it was closed.", i.module.name, export)
}

// close frees the instance, or has the last who holds it do so; closing twice is fine.
func (i *instance) close() {
	if i.refs.close() {
		i.free()
	}
}

// drop ends a hold.
func (i *instance) drop() {
	if i.refs.release() {
		i.free()
	}
}

// free gives back what the instance is made of. Nobody holds it, and nobody will.
func (i *instance) free() {
	if i.guest != nil {
		// Closing frees memory only; there is nothing to do about an error.
		_ = i.guest.Close(context.WithoutCancel(i.ctx))
	}
	if i.linear != nil {
		i.linear.release()
	}
}

// isContext reports that an error is the caller's own giving up.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
