package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

const pluginColumns = `sha256, kind, name, version, bundled, enabled, size_bytes, manifest::text, inspection::text, uploaded_by, enabled_by, enabled_at, created_at`

func scanPlugin(row pgx.CollectableRow) (p store.Plugin, err error) {
	var manifest, inspection *string
	var enabledAt *time.Time
	err = row.Scan(&p.SHA256, &p.Kind, &p.Name, &p.Version, &p.Bundled, &p.Enabled, &p.SizeBytes, &manifest, &inspection,
		&p.UploadedBy, &p.EnabledBy, &enabledAt, &p.CreatedAt.Time)
	p.Manifest, p.Inspection = textOf(manifest), textOf(inspection)
	p.EnabledAt, p.CreatedAt = instant(enabledAt), engine.At(p.CreatedAt.Time)
	return p, err
}

func textOf(s *string) []byte {
	if s == nil {
		return nil
	}
	return []byte(*s)
}

func jsonText(doc []byte) *string {
	if len(doc) == 0 {
		return nil
	}
	text := string(store.CleanJSON(doc))
	return &text
}

// SavePlugin implements library.Store: a file is known by its hash. A bundled
// file takes the place of the bundled one of the same name and version.
func (s *Store) SavePlugin(ctx context.Context, p store.Plugin) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO plugins (sha256, kind, name, version, bundled, enabled, size_bytes, manifest)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8::json)
			ON CONFLICT (sha256) DO UPDATE SET bundled = excluded.bundled, enabled = excluded.enabled, manifest = excluded.manifest`,
			p.SHA256, p.Kind, p.Name, p.Version, p.Bundled, p.Enabled, p.SizeBytes, jsonText(p.Manifest))
		if err != nil || !p.Bundled {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE plugins SET enabled = false
			WHERE bundled AND kind = $2 AND name = $3 AND version = $4 AND sha256 <> $1`, p.SHA256, p.Kind, p.Name, p.Version)
		return err
	})
	return dberr.Failed("saving plugin", err)
}

// AddPlugin implements library.Store. Writers of the register wait for one
// another, so that the limits hold; readers do not wait.
func (s *Store) AddPlugin(ctx context.Context, p store.Plugin, wasm []byte,
	limits store.PluginLimits) (up store.PluginUpload, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "LOCK TABLE plugins IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		there, err := onePlugin(ctx, tx, p.SHA256)
		if err == nil {
			if there.Bundled {
				return dberr.Conflict(fmt.Sprintf("This file is the bundled plugin %s@%s.", there.Name, there.Version),
					"It is there already; nothing needs to be uploaded.")
			}
			up.Plugin = there
			return putFile(ctx, tx, p.SHA256, wasm)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if up.Replaced, err = makeRoom(ctx, tx, p, limits); err != nil {
			return err
		}
		_, err = tx.Exec(
			ctx,
			`INSERT INTO plugins (sha256, kind, name, version, enabled, size_bytes, manifest, inspection, uploaded_by)
			VALUES ($1, $2, $3, $4, false, $5, $6::json, $7::json, $8)`,
			p.SHA256,
			p.Kind,
			p.Name,
			p.Version,
			len(wasm),
			jsonText(p.Manifest),
			jsonText(p.Inspection),
			p.UploadedBy,
		)
		if err != nil {
			return err
		}
		if err := putFile(ctx, tx, p.SHA256, wasm); err != nil {
			return err
		}
		up.Created = true
		up.Plugin, err = onePlugin(ctx, tx, p.SHA256)
		return err
	})
	var refused *engine.Error
	if errors.As(err, &refused) {
		return store.PluginUpload{}, err
	}
	return up, dberr.Failed("storing an uploaded plugin", err)
}

// putFile writes the bytes anew also when they are there: that is how a damaged file is mended.
func putFile(ctx context.Context, tx pgx.Tx, sha string, wasm []byte) error {
	_, err := tx.Exec(ctx, `INSERT INTO plugin_files (sha256, wasm) VALUES ($1, $2)
		ON CONFLICT (sha256) DO UPDATE SET wasm = excluded.wasm WHERE plugin_files.wasm <> excluded.wasm`, sha, wasm)
	return err
}

// makeRoom removes the upload whose place p may take, and checks the limits.
func makeRoom(ctx context.Context, tx pgx.Tx, p store.Plugin, limits store.PluginLimits) (replaced string, err error) {
	var old string
	var used bool
	err = tx.QueryRow(ctx, `SELECT sha256, enabled_at IS NOT NULL FROM plugins
		WHERE NOT bundled AND kind = $1 AND name = $2 AND version = $3`, p.Kind, p.Name, p.Version).Scan(&old, &used)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return "", err
	case used:
		return "", dberr.Conflict(fmt.Sprintf(
			"Version %s of the plugin %s has been uploaded before with other bytes, and has "+
				"been enabled.", p.Version, p.Name),
			"Give the changed plugin another version, so that everyone knows which one a run used.")
	default:
		if _, err := tx.Exec(ctx, "DELETE FROM plugins WHERE sha256 = $1", old); err != nil {
			return "", err
		}
		replaced = old
	}
	var versions, files int
	var bytes int64
	err = tx.QueryRow(
		ctx,
		`SELECT count(*) FILTER (WHERE kind = $1 AND name = $2), count(*), coalesce(sum(size_bytes), 0) FROM plugins WHERE NOT bundled`,
		p.Kind,
		p.Name,
	).Scan(
		&versions,
		&files,
		&bytes,
	)
	if err != nil {
		return "", err
	}
	const hint = "Delete versions that nothing uses, on the Plugins page."
	switch {
	case limits.Versions > 0 && versions >= limits.Versions:
		return "", dberr.Conflict(fmt.Sprintf("There are %d versions of the plugin %s, and no more are kept.", versions,
			p.Name),
			hint)
	case limits.Files > 0 && files >= limits.Files:
		return "", dberr.Conflict(fmt.Sprintf("There are %d uploaded plugins, and no more are kept.", files), hint)
	case limits.Bytes > 0 && bytes+p.SizeBytes > limits.Bytes:
		return "", dberr.Conflict(fmt.Sprintf(
			"The uploaded plugins take %d MB; with this one they would take more than the %d "+
				"MB that are kept.", bytes>>20, limits.Bytes>>20), hint)
	}
	return replaced, nil
}

func onePlugin(ctx context.Context, q interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, sha string) (store.Plugin, error) {
	rows, err := q.Query(ctx, "SELECT "+pluginColumns+" FROM plugins WHERE sha256 = $1", sha)
	if err != nil {
		return store.Plugin{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanPlugin)
}

// Plugin implements library.Store.
func (s *Store) Plugin(ctx context.Context, sha string) (store.Plugin, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	p, err := onePlugin(ctx, s.pool, sha)
	return p, dberr.Reading("plugin", sha, err)
}

// ListPlugins implements library.Store; they are ordered by kind, name and age, newest first.
func (s *Store) ListPlugins(ctx context.Context) ([]store.Plugin, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT "+pluginColumns+" FROM plugins ORDER BY kind, name, created_at DESC, sha256")
	if err != nil {
		return nil, dberr.Failed("listing plugins", err)
	}
	plugins, err := pgx.CollectRows(rows, scanPlugin)
	return plugins, dberr.Failed("listing plugins", err)
}

// PluginFile implements library.Store.
func (s *Store) PluginFile(ctx context.Context, sha string) (wasm []byte, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err = s.pool.QueryRow(ctx, "SELECT wasm FROM plugin_files WHERE sha256 = $1", sha).Scan(&wasm)
	return wasm, dberr.Reading("file of the plugin", sha, err)
}

// EnablePlugin implements library.Store.
func (s *Store) EnablePlugin(ctx context.Context, sha string, enabled bool, by string) (p store.Plugin, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if p, err = onePlugin(ctx, tx, sha); err != nil || p.Enabled == enabled {
			return err
		}
		if p.Bundled {
			return bundledPlugin(p, "disabled")
		}
		_, err := tx.Exec(ctx, `UPDATE plugins SET enabled = $2, enabled_by = CASE WHEN $2 THEN $3 ELSE enabled_by END,
			enabled_at = CASE WHEN $2 THEN now() ELSE enabled_at END WHERE sha256 = $1`, sha, enabled, by)
		if err != nil {
			return err
		}
		p, err = onePlugin(ctx, tx, sha)
		return err
	})
	var refused *engine.Error
	if errors.As(err, &refused) {
		return p, err
	}
	return p, dberr.Reading("plugin", sha, err)
}

// DeletePlugin implements library.Store.
func (s *Store) DeletePlugin(ctx context.Context, sha string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		p, err := onePlugin(ctx, tx, sha)
		if err != nil {
			return err
		}
		if p.Bundled {
			return bundledPlugin(p, "deleted")
		}
		_, err = tx.Exec(ctx, "DELETE FROM plugins WHERE sha256 = $1", sha)
		return err
	})
	var refused *engine.Error
	if errors.As(err, &refused) {
		return err
	}
	return dberr.Reading("plugin", sha, err)
}

func bundledPlugin(p store.Plugin, verb string) error {
	return dberr.Conflict(fmt.Sprintf("The plugin %s@%s came with Loadstone and cannot be %s.", p.Name, p.Version, verb),
		"Templates that do not name it are not affected by it.")
}
