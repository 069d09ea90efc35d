package backup

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Voided counts what a restore has left out of the store, or locked.
type Voided struct {
	Sessions, SignInLinks, Invitations, Tokens, ShareLinks, JoinTokens int64
	// LockedUsers were locked or deleted in the store that was replaced, and RevokedCertificates were revoked there.
	LockedUsers, RevokedCertificates int64
	// Uncompared is set where the store had no user of the backup: who left, and what was revoked, is not known.
	Uncompared bool
	// NoAdmin is set where no admin may sign in.
	NoAdmin bool
}

// rememberEnded notes whom the store that is replaced has locked out, deleted or revoked since the backup was made. An
// empty store has nothing to note.
func rememberEnded(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `
		CREATE TEMPORARY TABLE users_before ON COMMIT DROP AS SELECT user_id, disabled_at FROM users;
		CREATE TEMPORARY TABLE authority_before ON COMMIT DROP AS SELECT certificate FROM node_authority;
		CREATE TEMPORARY TABLE certificates_before ON COMMIT DROP AS
			SELECT * FROM node_certificates WHERE expires_at > now() - interval '1 day'`)
	return err
}

// voidCredentials ends what would let somebody in whom the backup does not know to be gone: a session that was signed
// out, a link that was used and a token that was revoked after the backup was made look in it as if they were good.
func (b *Backup) voidCredentials(ctx context.Context, tx pgx.Tx, keepTokens bool) error {
	for _, step := range []struct {
		count     *int64
		statement string
	}{
		{&b.Voided.Sessions, "DELETE FROM api_tokens WHERE kind = 'session'"},
		{&b.Voided.SignInLinks, "DELETE FROM api_tokens WHERE kind = 'signin'"},
		{&b.Voided.Invitations, "DELETE FROM api_tokens WHERE kind = 'invite'"},
		{&b.Voided.ShareLinks, "DELETE FROM run_shares"},
		{&b.Voided.JoinTokens, "DELETE FROM node_tokens"},
		{&b.Voided.LockedUsers, `UPDATE users u SET disabled_at = b.disabled_at FROM users_before b
			WHERE b.user_id = u.user_id AND b.disabled_at IS NOT NULL AND u.disabled_at IS NULL`},
		{&b.Voided.RevokedCertificates, `UPDATE node_certificates c SET revoked_at = b.revoked_at,
			revoked_by = b.revoked_by FROM certificates_before b
			WHERE b.serial = c.serial AND b.revoked_at IS NOT NULL AND c.revoked_at IS NULL`},
	} {
		tag, err := tx.Exec(ctx, step.statement)
		if err != nil {
			return err
		}
		*step.count = tag.RowsAffected()
	}
	// A node that joined after the backup was made has a certificate that the backup does not know. What was revoked stays
	// so, and what was not can be. Where the authority is another one none of them is accepted.
	var revoked int64
	if err := tx.QueryRow(ctx, `WITH kept AS (INSERT INTO node_certificates SELECT * FROM certificates_before
			WHERE (SELECT certificate FROM authority_before) IS NOT DISTINCT FROM (SELECT certificate FROM node_authority)
			ON CONFLICT (serial) DO NOTHING RETURNING revoked_at)
		SELECT count(*) FROM kept WHERE revoked_at IS NOT NULL`).Scan(&revoked); err != nil {
		return err
	}
	b.Voided.RevokedCertificates += revoked
	// A user whom the replaced store did not have was deleted there, where both stores are of one history: that is,
	// where they share a user. A store that a server has just made shares none.
	tag, err := tx.Exec(ctx, `UPDATE users u SET disabled_at = now()
		WHERE disabled_at IS NULL AND NOT EXISTS (SELECT FROM users_before b WHERE b.user_id = u.user_id)
			AND EXISTS (SELECT FROM users_before b JOIN users USING (user_id))`)
	if err != nil {
		return err
	}
	b.Voided.LockedUsers += tag.RowsAffected()
	if err := tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM users_before JOIN users USING (user_id)),
		NOT EXISTS (SELECT FROM users WHERE role = 'admin' AND disabled_at IS NULL)`).
		Scan(&b.Voided.Uncompared, &b.Voided.NoAdmin); err != nil {
		return err
	}
	if keepTokens {
		return nil
	}
	tag, err = tx.Exec(ctx, "DELETE FROM api_tokens WHERE kind = 'api'")
	b.Voided.Tokens = tag.RowsAffected()
	return err
}
