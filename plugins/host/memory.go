package host

import (
	"github.com/tetratelabs/wazero/experimental"

	"github.com/loadstone-db/loadstone/sdk/abi"
)

// memoryPiece is how many bytes are copied at once when a memory moves: a copy
// cannot be interrupted.
const memoryPiece = 256 << 10

// doublesUpTo is the part of what a memory may have up to which it doubles when it moves; what
// outgrows that gets all of it at once. What a guest leaves behind by growing step by
// step is garbage, and the collector's work for it held others up for up to 150 ms.
const doublesUpTo = 4 // a quarter

// memory is the linear memory of one instance. wazero's own moves 32 MB at once.
type memory struct {
	tank   *tank
	quota  *quota
	module *compiled
	buf    []byte
	most   uint64
	// counted is what the quota knows of.
	counted int64
}

// memoryOf makes the memory of an instance, and takes what it begins with from the
// quota: where wazero asks for it, there is no way to refuse.
func memoryOf(c *compiled, h *Host, t *tank) (*memory, error) {
	m := &memory{tank: t, quota: &h.quota, module: c}
	for _, declared := range c.code.ExportedMemories() {
		if err := m.room(uint64(declared.Min()) * abi.PageSize); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Allocate is experimental.MemoryAllocator.
func (m *memory) Allocate(_, most uint64) experimental.LinearMemory {
	m.most = most
	return m
}

// room has the quota count so many bytes.
func (m *memory) room(bytes uint64) error {
	more := int64(bytes) - m.counted
	if more <= 0 {
		return nil
	}
	if err := m.quota.take(m.module, more); err != nil {
		return err
	}
	m.counted += more
	return nil
}

// Reallocate makes the memory larger. What is new in it is zero: a guest cannot
// reach past its length, and the length only grows.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.most {
		return nil
	}
	m.tank.watched(false)
	defer m.tank.watched(true)
	if size > uint64(cap(m.buf)) {
		room := size
		if m.buf != nil {
			room = m.most
			if size <= m.most/doublesUpTo {
				room = min(m.most, max(size, uint64(cap(m.buf))*2))
			}
		}
		if m.room(room) != nil {
			room = size
			if err := m.room(room); err != nil {
				// The guest is told that there is no more. Most end then, and the reason is this.
				m.tank.short = err
				return nil
			}
		}
		moved := make([]byte, size, room)
		for at := 0; at < len(m.buf); at += memoryPiece {
			copy(moved[at:], m.buf[at:min(at+memoryPiece, len(m.buf))])
		}
		m.buf = moved
	}
	m.buf = m.buf[:size]
	return m.buf
}

// Free lets go of the memory; twice is fine.
func (m *memory) Free() {
	m.buf = nil
	m.quota.give(m.module, m.counted)
	m.counted = 0
}
