// Package backup copies the control state of a server into one file, and puts it into an empty store.
//
// A backup is a zip: the rows of each table as COPY writes them, taken in one transaction that sees one moment; on
// demand the parts of runs and the key that secrets are sealed under; and, last, a manifest with the versions and the
// SHA-256 of everything. What is for the moment alone (turns, queues, claims of refreshes) is left out, and what is
// made of the record (the results database) is made anew.
package backup

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/sql"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

const (
	format        = "loadstone-backup"
	formatVersion = 1
	manifestName  = "manifest.json"
	keyName       = "loadstone.key"
)

// Manifest says what is in a backup.
type Manifest struct {
	Format        string    `json:"format"`
	FormatVersion int       `json:"format_version"`
	Program       string    `json:"program_version"`
	SchemaVersion int       `json:"schema_version"`
	CreatedAt     time.Time `json:"created_at"`
	Tables        []Table   `json:"tables"`
	// Files are parts of runs; Missing are those that were not where they should be.
	Files   []File   `json:"files"`
	Missing []string `json:"missing"`
	// Key is the SHA-256 of the key that secrets are sealed under; empty where it is not in the backup.
	Key string `json:"key_sha256,omitempty"`
}

// Table is one table of a backup.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
	SHA256  string   `json:"sha256"`

	entry string // of the file
}

// File is a part of a run.
type File struct {
	RunID  string `json:"run_id"`
	Name   string `json:"name"`
	Size   int64  `json:"size_bytes"`
	SHA256 string `json:"sha256"`
}

func (f File) entry() string { return "files/" + f.RunID + "/" + f.Name }

// Rows is how many rows a table of the backup has.
func (m Manifest) Rows(table string) int64 {
	for _, t := range m.Tables {
		if t.Name == table {
			return t.Rows
		}
	}
	return 0
}

// PartReader reads the files of runs.
type PartReader interface {
	Open(ctx context.Context, runID, name string) (io.ReadSeekCloser, int64, error)
}

// Options are what a backup holds besides the control state.
type Options struct {
	Program string
	// Parts are the files of runs, nil for none.
	Parts PartReader
	// Key reads the file that secrets are sealed under, nil for none. It is called once the moment of the backup has
	// come: a key is in the file before anything is sealed under it.
	Key func() ([]byte, error)
}

// transientTables are tables that are for the moment alone; the first three are not emptied either.
var transientTables = map[string]bool{
	"schema_version":         true,
	"server_leases":          true,
	"server_keyrings":        true,
	"key_rotation":           true,
	"guess_counts":           true,
	"run_admission_lock":     true,
	"run_reservations":       true,
	"run_queue":              true,
	"run_commands":           true,
	"rights_revision":        true,
	"pending_file_deletions": true,
	"result_stores":          true,
	"refresh_subtasks":       true,
	"pending_refreshes":      true,
	"refresh_claims":         true,
	"refresh_history":        true,
	"refresh_bounds":         true,
	"refresh_workers":        true,
}

// preservedTables are tables that a restore leaves as they are: the last five are words of the schema, which an older
// backup has not, or not all of them.
var preservedTables = map[string]bool{
	"schema_version":        true,
	"server_leases":         true,
	"run_admission_lock":    true,
	"worker_states":         true,
	"global_query_states":   true,
	"query_fragment_states": true,
	"source_types":          true,
	"sink_types":            true,
}

var createdTable = regexp.MustCompile(`(?m)^CREATE TABLE IF NOT EXISTS ([a-z_]+)`)

// controlTables are all tables of the control store.
func controlTables() (names []string) {
	for _, f := range sql.Schema() {
		for _, m := range createdTable.FindAllStringSubmatch(f.Text, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// Write writes a backup of the control store at dsn to w. Runs may go on meanwhile.
func Write(ctx context.Context, dsn string, w io.Writer, o Options) (Manifest, error) {
	m := Manifest{Format: format, FormatVersion: formatVersion, Program: o.Program, SchemaVersion: sql.Version,
		CreatedAt: time.Now().UTC().Truncate(time.Millisecond), Tables: []Table{}, Files: []File{}, Missing: []string{}}
	if err := schema.CheckDSN(dsn); err != nil {
		return m, err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return m, dberr.Failed("opening the control store", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing was written
	if err := schema.Check(ctx, conn); err != nil {
		return m, err
	}
	z := zip.NewWriter(w)
	var key []byte
	moment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, conn, moment, func(tx pgx.Tx) error {
		var err error
		if key, err = o.key(ctx, tx); err != nil {
			return err
		}
		for _, name := range controlTables() {
			if transientTables[name] || preservedTables[name] {
				continue
			}
			t, err := table(ctx, tx, z, name)
			if err != nil {
				return fmt.Errorf("copying %s: %w", name, err)
			}
			m.Tables = append(m.Tables, t)
		}
		if o.Parts == nil {
			return nil
		}
		return m.parts(ctx, tx, z, o.Parts)
	})
	if err != nil {
		return m, dberr.Failed("backing up", err)
	}
	if key != nil {
		m.Key = Sum(key)
		if err := writeEntry(z, keyName, key); err != nil {
			return m, err
		}
	}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return m, fmt.Errorf("writing the manifest: %w", err)
	}
	if err := writeEntry(z, manifestName, text); err != nil {
		return m, err
	}
	if err := z.Close(); err != nil {
		return m, fmt.Errorf("writing the backup: %w", err)
	}
	return m, nil
}

// key reads the key, nil for none, in a transaction that has just begun.
func (o Options) key(ctx context.Context, tx pgx.Tx) ([]byte, error) {
	if o.Key == nil {
		return nil, nil
	}
	// The first statement of the transaction is what decides of which moment it is.
	if _, err := tx.Exec(ctx, "SELECT 1"); err != nil {
		return nil, err
	}
	return o.Key()
}

func writeEntry(z *zip.Writer, name string, content []byte) error {
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	return nil
}

// Sum is the SHA-256 of content in hexadecimal digits.
func Sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

func columns(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = pgx.Identifier{n}.Sanitize()
	}
	return strings.Join(quoted, ", ")
}

// columnsOf are the columns of a table that hold what somebody wrote.
func columnsOf(ctx context.Context, tx pgx.Tx, name string) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT attname::text FROM pg_attribute
		WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`, name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func table(ctx context.Context, tx pgx.Tx, z *zip.Writer, name string) (t Table, err error) {
	t.Name = name
	if t.Columns, err = columnsOf(ctx, tx, name); err != nil {
		return t, err
	}
	w, err := z.Create("tables/" + name)
	if err != nil {
		return t, err
	}
	hash := sha256.New()
	tag, err := tx.Conn().PgConn().CopyTo(ctx, io.MultiWriter(w, hash),
		"COPY "+pgx.Identifier{name}.Sanitize()+" ("+columns(t.Columns)+") TO STDOUT")
	t.Rows, t.SHA256 = tag.RowsAffected(), hex.EncodeToString(hash.Sum(nil))
	return t, err
}

// parts copies the files that the index of the same moment names.
func (m *Manifest) parts(ctx context.Context, tx pgx.Tx, z *zip.Writer, from PartReader) error {
	rows, err := tx.Query(ctx, "SELECT run_id, name FROM query_execution_artifacts ORDER BY run_id, name")
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f File, err error) {
		return f, row.Scan(&f.RunID, &f.Name)
	})
	if err != nil {
		return err
	}
	for _, f := range list {
		file, _, err := from.Open(ctx, f.RunID, f.Name)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) {
			m.Missing = append(m.Missing, f.RunID+"/"+f.Name)
			continue
		}
		if err != nil {
			return fmt.Errorf("opening %s of run %s: %w", f.Name, f.RunID, err)
		}
		// Parquet is compressed already.
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.entry(), Method: zip.Store})
		if err == nil {
			hash := sha256.New()
			f.Size, err = io.Copy(io.MultiWriter(w, hash), file)
			f.SHA256 = hex.EncodeToString(hash.Sum(nil))
		}
		_ = file.Close() // only read
		if err != nil {
			return fmt.Errorf("copying %s of run %s: %w", f.Name, f.RunID, err)
		}
		m.Files = append(m.Files, f)
	}
	return nil
}

// invalidBackup is the error about a file that is no backup that can be restored.
func invalidBackup(what, hint string, cause error) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: what, Hint: hint, Cause: cause}
}
