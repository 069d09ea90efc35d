package host

import "github.com/tetratelabs/wazero/experimental"

// memoryPiece is how many bytes are copied at once when a memory moves: a copy
// cannot be interrupted.
const memoryPiece = 256 << 10

// memory is the linear memory of one instance. wazero's own moves 32 MB at once.
type memory struct {
	tank *tank
	buf  []byte
	most uint64
}

// memoryOf makes the memory of the instance that a tank belongs to.
func memoryOf(t *tank) experimental.MemoryAllocator {
	return experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		return &memory{tank: t, most: most}
	})
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
			room = min(m.most, max(size, uint64(cap(m.buf))*3/2))
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

// Free lets go of the memory.
func (m *memory) Free() { m.buf = nil }
