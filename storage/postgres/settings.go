// This part keeps what admins decide in Postgres, and whose turn it is to do what one server does for all.

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// SettingSealer keeps what nobody is shown.
type SettingSealer interface {
	Seal(plain []byte, context string) string
	Open(sealed, context string) ([]byte, error)
}

// Settings implements store.Settings. Its calls last as long as their context and the pool allow.
type Settings struct {
	Pool *pgxpool.Pool
	Keys SettingSealer
}

var _ store.Settings = Settings{}

// settingBound is what a secret is sealed for, so that it opens under its own name alone.
func settingBound(name string) string { return "setting:" + name }

// Setting implements store.Settings.
func (s Settings) Setting(ctx context.Context, name string) (store.Setting, error) {
	v := store.Setting{Name: name}
	var sealed *string
	err := s.Pool.QueryRow(ctx, `SELECT setting_value, secret_sealed, version, updated_by, updated_at FROM server_settings
		WHERE setting_name = $1`, name).Scan(&v.Value, &sealed, &v.Version, &v.UpdatedBy, &v.UpdatedAt.Time)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Setting{Name: name}, nil
	}
	if err != nil {
		return v, dberr.Failed("reading a setting", err)
	}
	v.UpdatedAt = engine.At(v.UpdatedAt.Time)
	if sealed != nil {
		if v.Secret, err = s.Keys.Open(*sealed, settingBound(name)); err != nil {
			return v, &engine.Error{Code: engine.CodeInternal, Cause: err,
				Message: "The secrets of the setting " + name + " cannot be opened with this server's key.",
				Hint:    "Start it with the key that they were saved with, or save them again."}
		}
	}
	return v, nil
}

// SaveSetting implements store.Settings.
func (s Settings) SaveSetting(ctx context.Context, v store.Setting) (store.Setting, error) {
	var sealed *string
	if len(v.Secret) > 0 {
		text := s.Keys.Seal(v.Secret, settingBound(v.Name))
		sealed = &text
	}
	statement := `INSERT INTO server_settings (setting_name, setting_value, secret_sealed, updated_by)
		SELECT $1, $2, $3, $4 WHERE $5::bigint = 0 ON CONFLICT DO NOTHING RETURNING version, updated_at`
	if v.Version != 0 {
		statement = `UPDATE server_settings SET setting_value = $2, secret_sealed = $3, updated_by = $4,
			version = version + 1, updated_at = clock_timestamp()
			WHERE setting_name = $1 AND version = $5 RETURNING version, updated_at`
	}
	saved := v
	err := s.Pool.QueryRow(ctx, statement, v.Name, v.Value, sealed, store.CleanText(v.UpdatedBy), v.Version).
		Scan(&saved.Version, &saved.UpdatedAt.Time)
	switch {
	case err == nil:
		saved.UpdatedAt = engine.At(saved.UpdatedAt.Time)
		return saved, nil
	case !errors.Is(err, pgx.ErrNoRows):
		return v, dberr.Failed("saving a setting", err)
	}
	there, err := s.Setting(ctx, v.Name)
	if err != nil && there.Version == 0 {
		return v, err
	}
	return v, store.ConcurrentEditError("setting", v.Name, there.UpdatedBy, there.UpdatedAt, there.Version)
}

// AcquireTaskLease implements store.Settings.
func (s Settings) AcquireTaskLease(ctx context.Context, name, owner string, lasts time.Duration) (bool, error) {
	tag, err := s.Pool.Exec(ctx, `INSERT INTO server_leases (lease_name, owner, until)
		VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
		ON CONFLICT (lease_name) DO UPDATE SET owner = excluded.owner, until = excluded.until
		WHERE server_leases.owner = excluded.owner OR server_leases.until <= clock_timestamp()`,
		name, owner, lasts.Seconds())
	return err == nil && tag.RowsAffected() == 1, dberr.Failed("taking a turn", err)
}

// ReleaseTaskLease implements store.Settings.
func (s Settings) ReleaseTaskLease(ctx context.Context, name, owner string) error {
	_, err := s.Pool.Exec(ctx, "DELETE FROM server_leases WHERE lease_name = $1 AND owner = $2", name, owner)
	return dberr.Failed("yielding a turn", err)
}
