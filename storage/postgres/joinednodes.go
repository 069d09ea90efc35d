package postgres

import (
	"context"

	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// NoteJoinedAddress implements pki.MemberStore.
func (s *Store) NoteJoinedAddress(ctx context.Context, server, address string) error {
	_, err := s.pool.Exec(
		ctx,
		"INSERT INTO joined_node_addresses (server, address) VALUES ($1, $2) ON CONFLICT DO NOTHING",
		server,
		address,
	)
	return dberr.Failed("noting that a node has joined", err)
}

// HasJoinedAddress implements pki.MemberStore.
func (s *Store) HasJoinedAddress(ctx context.Context, server, address string) (joined bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM joined_node_addresses
		WHERE server = $1 AND address = $2)`, server, address).Scan(&joined)
	return joined, dberr.Failed("looking whether a node has joined", err)
}
