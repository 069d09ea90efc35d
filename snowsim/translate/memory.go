package translate

import (
	"strconv"
	"strings"
	"sync"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// memory remembers plans of texts that repeat.
type memory struct {
	mu    sync.RWMutex
	plans map[string]*Plan
}

// memoryLimit is how many plans are remembered; at the limit all are forgotten,
// which costs a workload of few texts nothing.
const memoryLimit = 4096

// key is everything that a cached plan depends on.
func (*memory) key(s *Session, sql string, binds []protocol.Bind, version int64) string {
	var b strings.Builder
	b.Grow(len(sql) + 64 + 4*len(binds))
	b.WriteString(strconv.FormatInt(version, 36))
	for _, part := range [...]string{s.Role, s.Database, s.Schema, s.Warehouse, s.User,
		s.Parameters[SecondaryRoles], s.Parameters["QUOTED_IDENTIFIERS_IGNORE_CASE"], s.Parameters["TIMESTAMP_TYPE_MAPPING"],
		s.Parameters["TIMESTAMP_INPUT_FORMAT"], s.Parameters["DATE_INPUT_FORMAT"]} {
		b.WriteByte(0)
		b.WriteString(part)
	}
	b.WriteByte(0)
	for _, bind := range binds {
		b.WriteString(bind.Type)
		if bind.Array {
			b.WriteByte('*')
		}
		b.WriteByte(',')
	}
	b.WriteString(sql)
	return b.String()
}

func (m *memory) get(key string) *Plan {
	m.mu.RLock()
	p := m.plans[key]
	m.mu.RUnlock()
	if p == nil {
		return nil
	}
	copied := *p
	return &copied
}

func (m *memory) put(key string, p *Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plans == nil || len(m.plans) >= memoryLimit {
		m.plans = map[string]*Plan{}
	}
	m.plans[key] = p
}
