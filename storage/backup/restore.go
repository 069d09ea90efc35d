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
	"io/fs"
	"os"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/jsonx"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/sql"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// Backup is an open backup all of which was read and compared with its sums.
type Backup struct {
	Manifest
	zip *zip.ReadCloser
	// Key is the key that secrets are sealed under, nil where it is not in the backup.
	Key []byte
	// Stopped are the continuous queries that Restore has left stopped, by name.
	Stopped []string
	// Voided counts what Restore has left out or locked, because it would have brought somebody back.
	Voided Voided
}

const invalidHint = "Use another copy of it, or make a new backup."

// Open opens a backup and reads all of it: what is damaged, cut short, of another program or newer is refused.
func Open(path string) (*Backup, error) {
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, invalidBackup(fmt.Sprintf("There is no file %s.", path), "Name a file that loadstone backup wrote.", err)
	} else if err == nil && info.IsDir() {
		return nil, invalidBackup(path+" is a folder.", "Name one of the files in it.", nil)
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, invalidBackup(fmt.Sprintf("%s is not a whole backup: %v.", path, err), invalidHint, err)
	}
	b := &Backup{zip: z}
	if err := b.check(path); err != nil {
		_ = z.Close() // only read
		return nil, err
	}
	return b, nil
}

// Close closes the file.
func (b *Backup) Close() error { return b.zip.Close() }

func (b *Backup) check(path string) error {
	text, err := b.read(manifestName)
	if err != nil {
		return invalidBackup(path+" is not a backup of Loadstone: it has no manifest that can be read.", invalidHint, err)
	}
	if err := json.Unmarshal(text, &b.Manifest); err != nil || b.Format != format {
		return invalidBackup(path+" is not a backup of Loadstone.", invalidHint, err)
	}
	b.useCurrentNames()
	if err := b.checkUnique(text); err != nil {
		return invalidBackup(fmt.Sprintf("%s is damaged: %v.", path, err), invalidHint, err)
	}
	if b.FormatVersion > formatVersion || b.SchemaVersion > sql.Version {
		return invalidBackup(fmt.Sprintf("%s was made by Loadstone %s, which is newer than this one.", path, b.Program),
			"Restore it with a Loadstone that is at least as new.", nil)
	}
	known := controlTables()
	for _, t := range b.Tables {
		if !slices.Contains(known, t.Name) || transientTables[t.Name] && t.Name != keyRotation {
			return invalidBackup(fmt.Sprintf("%s has a table %.60q that this Loadstone does not know.", path, t.Name),
				"Restore it with the Loadstone that made it.", nil)
		}
		if err := b.verify(path, t.entry, t.SHA256); err != nil {
			return err
		}
	}
	for _, f := range b.Files {
		if err := b.verify(path, f.entry(), f.SHA256); err != nil {
			return err
		}
	}
	if b.Manifest.Key != "" {
		if err := b.verify(path, keyName, b.Manifest.Key); err != nil {
			return err
		}
		b.Key, err = b.read(keyName)
	}
	return err
}

// useCurrentNames gives the one table that had another name until schema version 15 its name of today.
func (b *Backup) useCurrentNames() {
	for i := range b.Tables {
		t := &b.Tables[i]
		if t.entry = "tables/" + t.Name; t.Name == "node_wishes" {
			t.Name = "node_intents"
			if c := slices.Index(t.Columns, "wish"); c >= 0 {
				t.Columns[c] = "desired_state"
			}
		}
	}
}

// checkUnique refuses a backup that holds something twice: which of both is restored, and which was looked at, need not
// be the same.
func (b *Backup) checkUnique(manifest []byte) error {
	if err := jsonx.CheckDuplicateKeys(manifest); err != nil {
		return fmt.Errorf("in its manifest, %w", err)
	}
	entries, tables, files := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range b.zip.File {
		if entries[f.Name] {
			return fmt.Errorf("the entry %.100q is there twice", f.Name)
		}
		entries[f.Name] = true
	}
	for _, t := range b.Tables {
		if tables[t.Name] {
			return fmt.Errorf("its manifest has the table %.60q twice", t.Name)
		}
		tables[t.Name] = true
	}
	for _, f := range b.Files {
		if files[f.entry()] {
			return fmt.Errorf("its manifest has the file %.100q twice", f.entry())
		}
		files[f.entry()] = true
	}
	return nil
}

func (b *Backup) read(name string) ([]byte, error) {
	f, err := b.zip.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(f)
}

func (b *Backup) verify(path, name, want string) error {
	f, err := b.zip.Open(name)
	if err == nil {
		hash := sha256.New()
		_, err = io.Copy(hash, f)
		_ = f.Close() // only read
		if err == nil && hex.EncodeToString(hash.Sum(nil)) != want {
			err = fmt.Errorf("its SHA-256 is another: %w", store.ErrDamaged)
		}
	}
	if err != nil {
		return invalidBackup(fmt.Sprintf("%s is damaged at %.100q: %v.", path, name, err), invalidHint, err)
	}
	return nil
}

// PartWriter keeps the files of runs.
type PartWriter interface {
	Put(ctx context.Context, a engine.Artifact, from record.Source) error
}

// RestoreOptions are what a restore does besides filling an empty control store.
type RestoreOptions struct {
	// Parts takes the parts of runs; nil leaves them.
	Parts PartWriter
	// Replace fills a store that is not empty, too.
	Replace bool
	// KeepTokens keeps the API tokens of the backup.
	KeepTokens bool
}

// Restore puts the backup into the control store at dsn, all of it or nothing. A store that is not empty is refused
// (engine.CodeConflict) unless it is to be replaced, and one that a server uses is always. Voided says afterwards which
// credentials of the backup do not work any more.
func (b *Backup) Restore(ctx context.Context, dsn string, o RestoreOptions) error {
	if err := schema.Repair(ctx, dsn); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return dberr.Failed("opening the control store", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what counts was committed
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := checkEmpty(ctx, tx, o.Replace); err != nil {
			return err
		}
		if err := b.tables(ctx, tx, o.KeepTokens); err != nil {
			return err
		}
		// Last: what fails here leaves the store as it was, and files that are there already are no obstacle.
		return b.files(ctx, o.Parts)
	})
	return dberr.Failed("restoring", err)
}

// keyRotation is the table that the first backups of schema version 17 have, and that is not restored: a rotation that
// was under way does not go on, and the first server names the key that seals once it has opened something with it.
const keyRotation = "key_rotation"

// checkEmpty is an error where there is something to lose, or somebody to surprise.
func checkEmpty(ctx context.Context, tx pgx.Tx, replace bool) error {
	var users, runs, templates, connections, people int64
	err := tx.QueryRow(ctx, `SELECT
		(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
			AND application_name = 'loadstone'),
		(SELECT count(*) FROM run_status), (SELECT count(*) FROM test_templates),
		(SELECT count(*) FROM connections WHERE NOT builtin), (SELECT count(*) FROM users)`).
		Scan(&users, &runs, &templates, &connections, &people)
	switch {
	case err != nil:
		return err
	case users > 0:
		return dberr.Conflict("A server uses this control store.", "Stop all servers of it first.")
	case !replace && runs+templates+connections > 0 || !replace && people > 1:
		return dberr.Conflict(fmt.Sprintf("This control store is not empty: it has %d runs, %d templates, %d connections "+
			"and %d users.", runs, templates, connections, people),
			"Restore into an empty one (another --data-dir), or lose what is there with --replace.")
	}
	return nil
}

func (b *Backup) tables(ctx context.Context, tx pgx.Tx, keepTokens bool) error {
	if err := rememberEnded(ctx, tx); err != nil {
		return err
	}
	var all []string
	for _, name := range controlTables() {
		if !preservedTables[name] {
			all = append(all, name)
		}
	}
	// Triggers guard what servers do, step by step; references are checked as ever.
	if err := guards(ctx, tx, all, "DISABLE"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "TRUNCATE "+columns(all)); err != nil {
		return err
	}
	order, err := b.order(ctx, tx)
	if err != nil {
		return err
	}
	for _, t := range order {
		if preservedTables[t.Name] || t.Name == keyRotation {
			continue
		}
		if err := b.load(ctx, tx, t); err != nil {
			return fmt.Errorf("filling %s: %w", t.Name, err)
		}
	}
	// The results database is another one: nothing of it was refreshed.
	_, err = tx.Exec(ctx, `UPDATE dynamic_tables SET as_of = NULL, changed_at = NULL, behind_since = NULL,
		next_refresh_due = NULL, last_seconds = 0, failures = 0, wait_seconds = 0, error = '',
		status = CASE status WHEN 'FAILED' THEN 'ACTIVE' ELSE status END`)
	if err != nil {
		return err
	}
	// The one row that a backup has not which is older than the catalog of streams.
	if _, err := tx.Exec(ctx, "INSERT INTO catalog_revision DEFAULT VALUES ON CONFLICT DO NOTHING"); err != nil {
		return err
	}
	if err := b.stopQueries(ctx, tx); err != nil {
		return err
	}
	if err := b.voidCredentials(ctx, tx, keepTokens); err != nil {
		return err
	}
	// Of what earlier versions made the name of its maker is known.
	if _, err := tx.Exec(ctx, "SELECT settle_creators()"); err != nil {
		return err
	}
	// What earlier versions let be a name may look like an id, and their documents name connections by name alone.
	if _, err := tx.Exec(ctx, "SELECT settle_names()"); err != nil {
		return err
	}
	// What is to be checked at the end of the transaction is checked now: a table may not be changed before.
	if _, err := tx.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE"); err != nil {
		return err
	}
	return guards(ctx, tx, all, "ENABLE")
}

// restoredStopReason is what a continuous query says that a restore has left stopped.
const restoredStopReason = "it came out of a backup and was left stopped: DROP it, and CREATE it again to have it run"

// stopQueries stops the continuous queries that were wanted in the backup. They would stop runs, and tell others, as
// soon as a server starts: maybe beside the server that the backup is of, which does the same. Those that were being
// dropped are gone.
func (b *Backup) stopQueries(ctx context.Context, tx pgx.Tx) error {
	const dropped = "DELETE FROM queries WHERE desired_state = 'STOPPED' AND execution_state <> 'STOPPED'"
	if _, err := tx.Exec(ctx, dropped); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE query_fragments SET desired_state = 'STOPPED', retry_at = NULL, execution_state =
		CASE WHEN execution_state IN ('TERMINATED', 'FAILED') THEN execution_state ELSE 'STOPPED' END`)
	if err != nil {
		return err
	}
	// One that had failed keeps its failure; nobody owns any of them.
	if _, err := tx.Exec(ctx, `UPDATE queries SET owner = NULL, epoch = epoch + 1, execution_state =
		CASE execution_state WHEN 'TERMINATING' THEN 'FAILED' ELSE execution_state END`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "DELETE FROM query_owners"); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `UPDATE queries SET execution_state = 'STOPPED', desired_state = 'STOPPED', failure = $1,
		graceful = false, state_since = now() WHERE execution_state NOT IN ('STOPPED', 'TERMINATED', 'FAILED')
		RETURNING name`, restoredStopReason)
	if err != nil {
		return err
	}
	b.Stopped, err = pgx.CollectRows(rows, pgx.RowTo[string])
	slices.Sort(b.Stopped)
	return err
}

func guards(ctx context.Context, tx pgx.Tx, tables []string, how string) error {
	for _, name := range tables {
		if _, err := tx.Exec(ctx, "ALTER TABLE "+pgx.Identifier{name}.Sanitize()+" "+how+" TRIGGER USER"); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backup) load(ctx context.Context, tx pgx.Tx, t Table) error {
	there, err := columnsOf(ctx, tx, t.Name)
	if err != nil {
		return err
	}
	for _, c := range t.Columns {
		if !slices.Contains(there, c) {
			return invalidBackup(fmt.Sprintf("The backup has a column %s.%.60s that this Loadstone does not know.", t.Name, c),
				"Restore it with the Loadstone that made it.", nil)
		}
	}
	name := pgx.Identifier{t.Name}.Sanitize()
	f, err := b.zip.Open(t.entry)
	if err != nil {
		return err
	}
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, f, "COPY "+name+" ("+columns(t.Columns)+") FROM STDIN")
	_ = f.Close() // only read
	if err != nil {
		return err
	}
	if tag.RowsAffected() != t.Rows {
		return fmt.Errorf("%d rows instead of %d: %w", tag.RowsAffected(), t.Rows, store.ErrDamaged)
	}
	for _, c := range t.Columns {
		var sequence *string
		if err := tx.QueryRow(ctx, "SELECT pg_get_serial_sequence($1, $2)", t.Name, c).Scan(&sequence); err != nil {
			return err
		}
		if sequence == nil || t.Rows == 0 {
			continue
		}
		if _, err := tx.Exec(ctx, "SELECT setval($1::text::regclass, (SELECT max("+pgx.Identifier{c}.Sanitize()+") FROM "+
			name+"))", *sequence); err != nil {
			return err
		}
	}
	return nil
}

// order puts tables behind those that they refer to.
func (b *Backup) order(ctx context.Context, tx pgx.Tx) ([]Table, error) {
	rows, err := tx.Query(ctx, `SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint
		WHERE contype = 'f' AND conrelid <> confrelid`)
	if err != nil {
		return nil, err
	}
	needs := map[string][]string{}
	for rows.Next() {
		var from, to string
		if err := rows.Scan(&from, &to); err != nil {
			return nil, err
		}
		needs[from] = append(needs[from], to)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	var out []Table
	placed := map[string]bool{}
	rest := slices.Clone(b.Tables)
	for len(rest) > 0 {
		waits := func(t Table) bool {
			return slices.ContainsFunc(needs[t.Name], func(on string) bool {
				return slices.ContainsFunc(rest, func(r Table) bool { return r.Name == on && !placed[on] })
			})
		}
		i := slices.IndexFunc(rest, func(t Table) bool { return !waits(t) })
		if i < 0 {
			return nil, fmt.Errorf("tables refer to each other in a circle: %s", rest[0].Name)
		}
		placed[rest[i].Name] = true
		out = append(out, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return out, nil
}

// zippedPart is a part of a run, in the backup.
type zippedPart struct {
	b    *Backup
	name string
}

// Open implements record.Source.
func (z zippedPart) Open(context.Context) (io.ReadCloser, error) { return z.b.zip.Open(z.name) }

func (b *Backup) files(ctx context.Context, to PartWriter) error {
	if to == nil {
		return nil
	}
	for _, f := range b.Files {
		a := engine.Artifact{RunID: f.RunID, Name: f.Name, SizeBytes: f.Size, SHA256: f.SHA256}
		if err := to.Put(ctx, a, zippedPart{b, f.entry()}); err != nil {
			return fmt.Errorf("putting %s of run %s: %w", f.Name, f.RunID, err)
		}
	}
	return nil
}
