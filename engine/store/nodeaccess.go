package store

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// NodeAuthority is what signs the certificates of nodes: its own certificate and its key, in DER.
type NodeAuthority struct{ Certificate, Key []byte }

// NodeToken lets nodes join. Its secret is shown once, and kept as a hash only.
type NodeToken struct {
	TokenID   string `json:"token_id"`
	Uses      int    `json:"uses" doc:"How many nodes may join with it."`
	Used      int    `json:"used"`
	CreatedBy string `json:"created_by"`
	// CreatedByID is the user: nodes join as long as it is an admin. A token of versions before 18 has none.
	CreatedByID string      `json:"created_by_id,omitempty"`
	CreatedAt   engine.Time `json:"created_at"`
	ExpiresAt   engine.Time `json:"expires_at"`
}

// NodeCertificate is one that a node was given.
type NodeCertificate struct {
	Serial    string
	NodeID    string
	Key       [32]byte
	ExpiresAt time.Time
}

// NodeAddress is a node of the catalog.
type NodeAddress struct {
	Address string      `json:"address"`
	AddedBy string      `json:"added_by"`
	AddedAt engine.Time `json:"added_at"`
}
