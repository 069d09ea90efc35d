// This part keeps what admins decide in memory, a part of the store there.

package fake

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Settings implements store.Settings. Its zero value has none. It is safe for concurrent use.
type Settings struct {
	mu     sync.Mutex
	byName map[string]store.Setting
	leases map[string]taskLease
}

type taskLease struct {
	owner string
	until time.Time
}

var _ store.Settings = (*Settings)(nil)

// Setting implements store.Settings.
func (s *Settings) Setting(ctx context.Context, name string) (store.Setting, error) {
	if err := ctx.Err(); err != nil {
		return store.Setting{}, fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if there, ok := s.byName[name]; ok {
		return copySetting(there), nil
	}
	return store.Setting{Name: name}, nil
}

func copySetting(s store.Setting) store.Setting {
	s.Value, s.Secret = bytes.Clone(s.Value), bytes.Clone(s.Secret)
	return s
}

// SaveSetting implements store.Settings.
func (s *Settings) SaveSetting(ctx context.Context, v store.Setting) (store.Setting, error) {
	if err := ctx.Err(); err != nil {
		return v, fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.byName[v.Name]; there.Version != v.Version {
		return v, store.ConcurrentEditError("setting", v.Name, there.UpdatedBy, there.UpdatedAt, there.Version)
	}
	v.Version++
	v.UpdatedAt = engine.At(time.Now())
	if s.byName == nil {
		s.byName = map[string]store.Setting{}
	}
	s.byName[v.Name] = copySetting(v)
	return v, nil
}

// AcquireTaskLease implements store.Settings.
func (s *Settings) AcquireTaskLease(ctx context.Context, name, owner string, lasts time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if t := s.leases[name]; t.owner != owner && now.Before(t.until) {
		return false, nil
	}
	if s.leases == nil {
		s.leases = map[string]taskLease{}
	}
	s.leases[name] = taskLease{owner, now.Add(lasts)}
	return true, nil
}

// ReleaseTaskLease implements store.Settings.
func (s *Settings) ReleaseTaskLease(ctx context.Context, name, owner string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[name].owner == owner {
		delete(s.leases, name)
	}
	return nil
}
