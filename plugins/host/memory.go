package host

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// guestMemory is the linear memory of one instance: a mapping that only becomes longer, or memory
// of Go where the system gives none. What a guest left behind when its memory moved
// was garbage, and the collector's work for it held others up for up to 150 ms.
type guestMemory struct {
	tank   *fuelTank
	quota  *quota
	module *compiled
	mapped *mapping // nil where there is none
	// moving is used where there is no mapping.
	moving movingMemory
	// counted is what the quota knows of.
	counted int64
}

// memoryOf makes the memory of an instance, and takes what it begins with from the
// quota and the system: where wazero asks for it, there is no way to refuse.
func memoryOf(c *compiled, h *Host, t *fuelTank) (*guestMemory, error) {
	m := &guestMemory{tank: t, quota: &h.quota, module: c}
	if err := m.reserve(c.minPages); err != nil {
		return nil, err
	}
	mapped, err := h.mappings.Take()
	if err == nil {
		if _, err = mapped.Grow(int(c.minPages)); err != nil {
			mapped.GiveBack()
			mapped = nil
		}
	}
	if err != nil {
		h.log.Debug().Str("plugin", c.name).Err(err).
			Msg("the memory of a plugin is Go's, which holds others up where it grows")
	}
	m.mapped = mapped
	return m, nil
}

// Allocate is experimental.MemoryAllocator. The maximum of wazero is not that of the
// module, see compiled.most.
func (m *guestMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// reserve has the quota count so many bytes.
func (m *guestMemory) reserve(bytes uint64) error {
	more := int64(bytes) - m.counted
	if more <= 0 {
		return nil
	}
	if err := m.quota.reserve(m.module, more); err != nil {
		return err
	}
	m.counted += more
	return nil
}

// Reallocate makes the memory larger. What is new in it is zero: a guest cannot
// reach past its length, and the length only grows. Where it answers nil the guest is told
// that there is no more; most end then, and the reason is tank.short.
func (m *guestMemory) Reallocate(size uint64) []byte {
	m.tank.watched(false)
	defer m.tank.watched(true)
	if size > m.module.maxPages {
		m.tank.short = m.module.moduleMemoryError(size)
		return nil
	}
	if m.mapped == nil {
		return m.moving.grow(m, size)
	}
	before := m.counted
	if err := m.reserve(size); err != nil {
		m.tank.short = err
		return nil
	}
	buf, err := m.mapped.Grow(int(size))
	if err != nil {
		m.quota.release(m.module, m.counted-before)
		m.counted = before
		m.tank.short = systemMemoryError(m.module, size, err)
		return nil
	}
	return buf
}

// Free is what wazero calls when it closes the module, also when the whole runtime is closed. That
// says nothing of who still runs or reads: release is what gives the memory back.
func (m *guestMemory) Free() {}

// release lets go of the memory; twice is fine. No guest may run in it any more, and nobody
// hold a slice of it: the next instance gets the same addresses (see instance.close).
func (m *guestMemory) release() {
	m.moving.buf = nil
	if m.mapped != nil {
		m.mapped.GiveBack()
	}
	m.quota.release(m.module, m.counted)
	m.counted = 0
}

// memoryPiece is how many bytes are copied at once when a memory moves: a copy
// cannot be interrupted.
const memoryPiece = 256 << 10

// doublesUpTo is the part of what a memory may have up to which it doubles when it moves; what
// outgrows that gets all of it at once, so that it leaves less garbage.
const doublesUpTo = 4 // a quarter

// movingMemory is memory of Go, which has to move to become larger.
type movingMemory struct{ buf []byte }

func (v *movingMemory) grow(m *guestMemory, size uint64) []byte {
	if size > uint64(cap(v.buf)) {
		limit, room := m.module.maxPages, size
		if v.buf != nil {
			room = limit
			if size <= limit/doublesUpTo {
				room = min(limit, max(size, uint64(cap(v.buf))*2))
			}
		}
		if m.reserve(room) != nil {
			room = size
			if err := m.reserve(room); err != nil {
				m.tank.short = err
				return nil
			}
		}
		moved := make([]byte, size, room)
		for at := 0; at < len(v.buf); at += memoryPiece {
			copy(moved[at:], v.buf[at:min(at+memoryPiece, len(v.buf))])
		}
		v.buf = moved
	}
	v.buf = v.buf[:size]
	return v.buf
}

// moduleMemoryError is the refusal of memory past what the module may have.
func (c *compiled) moduleMemoryError(size uint64) error {
	const most = abi.MaxMemoryPages * abi.PageSize
	e := &engine.Error{Code: engine.CodePlugin, Cause: plugin.ErrOutOfMemory}
	requested, may := megabytes(int64(size)), megabytes(int64(c.maxPages))
	if c.maxPages < most {
		e.Message = fmt.Sprintf("Plugin %s needs more memory than its own file allows: it asked for %s and declares at "+
			"most %s.", c.name, requested, may)
		e.Hint = "Build the plugin with a larger maximum of memory; " + megabytes(most) + " is the most there is."
		return e
	}
	e.Message = fmt.Sprintf("Plugin %s needs more memory than a plugin may have: it asked for %s, and each instance of "+
		"it may have %s.", c.name, requested, may)
	e.Hint = "This limit is the same for every plugin and cannot be raised. Lower the parameters that size what the " +
		"plugin keeps, or have it compute its values instead of keeping them."
	return e
}

// systemMemoryError is the refusal of memory that the system does not have, or does not give this process.
func systemMemoryError(c *compiled, size uint64, err error) error {
	return &engine.Error{Code: engine.CodePlugin, Cause: plugin.ErrOutOfMemory,
		Message: fmt.Sprintf("Plugin %s may have no more memory: it needs %s, and %s.", c.name, megabytes(int64(size)), err),
		Hint: "Have fewer runs or run workers at a time, or give the process more memory (ulimit, vm.overcommit_memory, " +
			"the limit of its container)."}
}
