package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// authorityContext binds the sealed key of the authority.
const authorityContext = "node-authority"

// EnsureNodeAuthority implements pki.MemberStore.
func (s *Store) EnsureNodeAuthority(ctx context.Context, fresh func() (store.NodeAuthority, error)) (
	store.NodeAuthority, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	a, err := s.nodeAuthority(ctx)
	if !errors.Is(err, store.ErrNotFound) {
		return a, err
	}
	if a, err = fresh(); err != nil {
		return a, err
	}
	// Another server may have been first: then its authority is the one.
	if _, err := s.pool.Exec(ctx, `INSERT INTO node_authority (certificate, key_sealed) VALUES ($1, $2)
		ON CONFLICT DO NOTHING`, a.Certificate, s.keys.Seal(a.Key, authorityContext)); err != nil {
		return store.NodeAuthority{}, dberr.Failed("keeping the nodes' authority", err)
	}
	return s.nodeAuthority(ctx)
}

func (s *Store) nodeAuthority(ctx context.Context) (a store.NodeAuthority, err error) {
	var sealed string
	err = s.pool.QueryRow(ctx, "SELECT certificate, key_sealed FROM node_authority").Scan(&a.Certificate, &sealed)
	if err != nil {
		return a, dberr.Failed("reading the nodes' authority", err)
	}
	a.Key, err = s.keys.Open(sealed, authorityContext)
	switch {
	case errors.Is(err, keyring.ErrUnknownKey):
		return a, &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: "The key by which nodes are known was encrypted under a key that this server does not have.",
			Hint: "Give all servers of one control store the same key (" + keyring.KeyEnv +
				" or the key file)."}
	case err != nil:
		return a, &engine.Error{
			Code:    engine.CodeInvalid,
			Cause:   err,
			Message: "The key by which nodes are known cannot be decrypted.",
			Hint: "Restore the table node_authority from a backup; without it all nodes join again: see " +
				"docs/operate/security.md.",
		}
	}
	return a, nil
}

// tokenRetention is how long a token that is over is remembered, to say why it is refused.
const tokenRetention = "30 days"

// CreateNodeToken implements pki.MemberStore. The store's clock decides when it ends.
func (s *Store) CreateNodeToken(ctx context.Context, t store.NodeToken, secretSHA256 [32]byte,
	valid time.Duration) (made store.NodeToken, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	hash, hashKey, err := s.hashes.stored(ctx, joinTokenHash, secretSHA256)
	if err != nil {
		return made, err
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM node_tokens WHERE expires_at < now() - $1::interval",
			tokenRetention); err != nil {
			return err
		}
		made, err = ScanToken(tx.QueryRow(ctx,
			`INSERT INTO node_tokens (token_id, secret_sha256, uses, created_by, expires_at, hash_key,
				created_by_id) VALUES ($1, $2, $3, $4, now() + $5::interval, $6, $7) RETURNING `+TokenColumns,
			t.TokenID, hash, t.Uses, t.CreatedBy, valid, hashKey, t.CreatedByID))
		return err
	})
	return made, dberr.Failed("saving the token", err)
}

// freshToken is what to do about a token that is of no use.
const freshToken = "Make another with `loadstone node token` on a server, and start the node with it."

func tokenRefused(message string) error {
	return &engine.Error{Code: engine.CodeForbidden, Message: message, Hint: freshToken,
		Fields: []engine.FieldError{{Field: "--join", Message: message, Hint: freshToken}}}
}

// lockNode has what is decided about the certificates of one node come one after the other: a
// revocation that began before a renewal was committed would not see what was renewed.
func lockNode(ctx context.Context, tx pgx.Tx, nodeID string) error {
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('node ' || $1, 0))", nodeID)
	return err
}

// AdmitNode implements pki.MemberStore.
func (s *Store) AdmitNode(ctx context.Context, c store.NodeCertificate, secretSHA256 [32]byte) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if err := lockNode(ctx, tx, c.NodeID); err != nil {
			return err
		}
		var over, revoked bool
		var t store.NodeToken
		err := tx.QueryRow(ctx, `SELECT token_id, uses, used, created_by, expires_at, expires_at <= now(), created_by_id <> ''
				AND NOT EXISTS (SELECT FROM users WHERE user_id = created_by_id AND role = 'admin' AND disabled_at IS NULL)
			FROM node_tokens WHERE secret_sha256 = ANY($1) FOR UPDATE`, s.hashes.candidates(joinTokenHash, secretSHA256)).
			Scan(&t.TokenID, &t.Uses, &t.Used, &t.CreatedBy, &t.ExpiresAt.Time, &over, &revoked)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return tokenRefused("The token by which the node would join is not known here.")
		case err != nil:
			return err
		}
		if err := nameIsFree(ctx, tx, c); err != nil {
			return err
		}
		var again bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM node_certificates
			WHERE token_id = $1 AND node_id = $2 AND key_sha256 = $3 AND revoked_at IS NULL)`,
			t.TokenID, c.NodeID, c.Key[:]).Scan(&again); err != nil {
			return err
		}
		switch {
		case revoked:
			return tokenRefused(fmt.Sprintf("The token %s by which the node would join is void: %s, who made it, is no admin "+
				"any more.", t.TokenID, t.CreatedBy))
		case over:
			return tokenRefused(fmt.Sprintf("The token %s by which the node would join has expired at %s.", t.TokenID,
				t.ExpiresAt.UTC().Format(time.RFC3339)))
		case !again && t.Used >= t.Uses:
			return tokenRefused(fmt.Sprintf("The token %s by which the node would join was used before.", t.TokenID))
		case !again:
			if _, err := tx.Exec(ctx, "UPDATE node_tokens SET used = used + 1 WHERE token_id = $1", t.TokenID); err != nil {
				return err
			}
		}
		return keepCertificate(ctx, tx, c, t.TokenID)
	})
	return dberr.Failed("admitting the node "+c.NodeID, err)
}

// nameIsFree refuses a node whose name another has.
func nameIsFree(ctx context.Context, tx pgx.Tx, c store.NodeCertificate) error {
	rows, err := tx.Query(ctx, `SELECT key_sha256 FROM node_certificates
		WHERE node_id = $1 AND revoked_at IS NULL AND expires_at > now()`, c.NodeID)
	if err != nil {
		return err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	for _, key := range keys {
		if !bytes.Equal(key, c.Key[:]) {
			return dberr.Conflict(fmt.Sprintf("Another node has the name %s.", c.NodeID),
				"Revoke it with `loadstone node revoke "+c.NodeID+"`, or start the new one on an empty data directory.")
		}
	}
	return err
}

func keepCertificate(ctx context.Context, tx pgx.Tx, c store.NodeCertificate, token string) error {
	// What has ended proves nothing any more.
	if _, err := tx.Exec(ctx, "DELETE FROM node_certificates WHERE expires_at < now() - interval '1 day'"); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO node_certificates (serial, node_id, key_sha256, token_id, expires_at)
		VALUES ($1, $2, $3, $4, $5)`, c.Serial, c.NodeID, c.Key[:], token, stamp(c.ExpiresAt))
	return err
}

// RenewNode implements pki.MemberStore.
func (s *Store) RenewNode(ctx context.Context, c store.NodeCertificate, serial string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if err := lockNode(ctx, tx, c.NodeID); err != nil {
			return err
		}
		var good bool
		err := tx.QueryRow(ctx, `SELECT revoked_at IS NULL AND node_id = $2 AND key_sha256 = $3 FROM node_certificates
			WHERE serial = $1 FOR UPDATE`, serial, c.NodeID, c.Key[:]).Scan(&good)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if !good {
			return &engine.Error{Code: engine.CodeForbidden,
				Message: fmt.Sprintf("The certificate of the node %s is not renewed: it was revoked, or is not of its key.",
					c.NodeID), Hint: freshToken}
		}
		return keepCertificate(ctx, tx, c, "")
	})
	return dberr.Failed("renewing the certificate of "+c.NodeID, err)
}

// RevokeNode implements pki.MemberStore.
func (s *Store) RevokeNode(ctx context.Context, nodeID, by string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if err := lockNode(ctx, tx, nodeID); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE node_certificates SET revoked_at = coalesce(revoked_at, now()),
			revoked_by = CASE WHEN revoked_at IS NULL THEN $2 ELSE revoked_by END
			WHERE node_id = $1 AND expires_at > now()`, nodeID, by)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return dberr.NotFound("node with a certificate called", nodeID)
		}
		// Who has taken the node over has its token too, and could join by it under any name.
		_, err = tx.Exec(ctx, `UPDATE node_tokens SET expires_at = now() WHERE expires_at > now()
			AND token_id IN (SELECT token_id FROM node_certificates WHERE node_id = $1)`, nodeID)
		return err
	})
	return dberr.Failed("revoking the node "+nodeID, err)
}

// RevokedNodes implements pki.MemberStore.
func (s *Store) RevokedNodes(ctx context.Context) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT serial FROM node_certificates
		WHERE revoked_at IS NOT NULL AND expires_at > now() - interval '1 day'`)
	if err != nil {
		return nil, dberr.Failed("reading revoked certificates", err)
	}
	serials, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return serials, dberr.Failed("reading revoked certificates", err)
}
