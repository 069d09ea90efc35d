package store

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// NodeAuthority is what signs the certificates of nodes: its own certificate and its key, in DER.
type NodeAuthority struct{ Certificate, Key []byte }

// NodeToken lets nodes join. Its secret is shown once, and kept as a hash only.
type NodeToken struct {
	TokenID   string      `json:"token_id"`
	Uses      int         `json:"uses" doc:"How many nodes may join with it."`
	Used      int         `json:"used"`
	CreatedBy string      `json:"created_by"`
	CreatedAt engine.Time `json:"created_at"`
	ExpiresAt engine.Time `json:"expires_at"`
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

// NodeAccess keeps who may be a node, and where nodes are. Refusals are *engine.Error that
// say what to do about it.
type NodeAccess interface {
	// EnsureNodeAuthority returns the one authority, made by fresh if there is none.
	EnsureNodeAuthority(ctx context.Context, fresh func() (NodeAuthority, error)) (NodeAuthority, error)
	CreateNodeToken(ctx context.Context, t NodeToken, secretSHA256 [32]byte, valid time.Duration) (NodeToken, error)
	// NodeTokens are those by which nodes can join now, the newest first.
	NodeTokens(ctx context.Context) ([]NodeToken, error)
	// RevokeNodeToken has no further node join by a token; ErrNotFound when there is none. Nodes that have joined stay.
	RevokeNodeToken(ctx context.Context, id string) error
	// AdmitNode notes the certificate of a node that joins, and counts its token as used. The
	// same node with the same key may ask again. The token may be unknown, expired or used up,
	// and the node's name another's.
	AdmitNode(ctx context.Context, c NodeCertificate, secretSHA256 [32]byte) error
	// RenewNode notes a certificate in place of one that has not been revoked.
	RenewNode(ctx context.Context, c NodeCertificate, serial string) error
	// RevokeNode ends all certificates of a node; ErrNotFound when it has none.
	RevokeNode(ctx context.Context, nodeID, by string) error
	// RevokedNodes are the serials of certificates that would be good otherwise.
	RevokedNodes(ctx context.Context) ([]string, error)
	// AddNodeAddress puts a node into the catalog; ErrConflict when it is there.
	AddNodeAddress(ctx context.Context, address, by string) (NodeAddress, error)
	// RemoveNodeAddress takes it out.
	RemoveNodeAddress(ctx context.Context, address string) error
	NodeAddresses(ctx context.Context) ([]NodeAddress, error)
}
