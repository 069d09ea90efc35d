package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Setting is what admins have decided about a subject, for all servers of a control store.
type Setting struct {
	Name  string
	Value json.RawMessage
	// Secret is kept sealed. It is read by the server alone.
	Secret []byte
	// Version is 0 for what was never saved.
	Version   int64
	UpdatedBy string
	UpdatedAt engine.Time
}

// Settings keeps what admins decide, and whose turn it is to do what one server does for all.
type Settings interface {
	// Setting returns a setting; one that was never saved has the version 0 and no value.
	Setting(ctx context.Context, name string) (Setting, error)
	// SaveSetting saves a setting; UpdatedBy says who. Version is that which was edited, 0 for a new one; another is
	// ErrConflict, and the error says who was faster.
	SaveSetting(ctx context.Context, s Setting) (Setting, error)
	// AcquireTaskLease reports whether it is the owner's turn, and makes it so for a while by the store's clock if it is
	// nobody else's.
	AcquireTaskLease(ctx context.Context, name, owner string, lasts time.Duration) (bool, error)
	// ReleaseTaskLease ends the owner's turn before its time; harmless when it is another's.
	ReleaseTaskLease(ctx context.Context, name, owner string) error
}
