package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// SavePlugin implements store.Plugins: a file is known by its hash. A bundled
// file takes the place of the bundled one of the same name and version.
func (s *Store) SavePlugin(ctx context.Context, p store.Plugin) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var manifest *string
	if len(p.Manifest) > 0 {
		text := string(withoutNUL(p.Manifest))
		manifest = &text
	}
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO plugins (sha256, kind, name, version, bundled, enabled, size_bytes, manifest)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8::json)
			ON CONFLICT (sha256) DO UPDATE SET bundled = excluded.bundled, enabled = excluded.enabled, manifest = excluded.manifest`,
			p.SHA256, p.Kind, p.Name, p.Version, p.Bundled, p.Enabled, p.SizeBytes, manifest)
		if err != nil || !p.Bundled {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE plugins SET enabled = false
			WHERE bundled AND kind = $2 AND name = $3 AND version = $4 AND sha256 <> $1`, p.SHA256, p.Kind, p.Name, p.Version)
		return err
	})
	return failed("saving plugin", err)
}

// ListPlugins implements store.Plugins; they are ordered by kind, name and age, newest first.
func (s *Store) ListPlugins(ctx context.Context) ([]store.Plugin, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT sha256, kind, name, version, bundled, enabled, size_bytes, manifest::text, created_at
		FROM plugins ORDER BY kind, name, created_at DESC, sha256`)
	if err != nil {
		return nil, failed("listing plugins", err)
	}
	plugins, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p store.Plugin, err error) {
		var manifest *string
		err = row.Scan(&p.SHA256, &p.Kind, &p.Name, &p.Version, &p.Bundled, &p.Enabled, &p.SizeBytes, &manifest, &p.CreatedAt.Time)
		if manifest != nil {
			p.Manifest = []byte(*manifest)
		}
		p.CreatedAt = engine.At(p.CreatedAt.Time)
		return p, err
	})
	return plugins, failed("listing plugins", err)
}
