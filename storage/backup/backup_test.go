package backup_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/backup"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	storagepostgres "github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
	"github.com/loadstone-db/loadstone/storage/results"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dsn, key string) *storagepostgres.Store {
	t.Helper()
	keys, err := keyring.Open(key)
	must(t, err)
	s, err := storagepostgres.Open(t.Context(), dsn, keys, postgres.NewDriver())
	must(t, err)
	return s
}

type bytesSource []byte

func (b bytesSource) Open(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(b)), nil
}

const part = "not really Parquet"

// filledPlace is one whose control store has something of everything, and so has its record.
func filledPlace(t testing.TB) place {
	t.Helper()
	ctx, at := t.Context(), newPlaceOn(t, postgrestest.NewControl(t))
	s := open(t, at.dsn, at.key)
	defer s.Close()
	_, err := s.SaveConnection(ctx, store.Connection{Name: "shop", Driver: "postgres",
		DSN: "postgres://ada:secret@db.example:5432/shop"})
	must(t, err)
	template, err := s.CreateTemplate(ctx, store.Template{Name: "orders\t\\N\n", Config: engine.Scenario{Name: "orders"},
		Source: "name: orders # ünïcode \\.\n\\.\n"})
	must(t, err)
	must(t, s.CreateRun(ctx, engine.Run{RunID: "r1", ResultID: "r1", RunName: "first", TemplateID: template.TemplateID}))
	for _, to := range []engine.Status{engine.StatusRunning, engine.StatusStopping, engine.StatusCompleted} {
		phase := engine.PhaseMeasurement
		if to.Terminal() {
			phase = engine.PhaseNone
		}
		_, err := s.Transition(ctx, store.Transition{RunID: "r1", To: to, Phase: &phase,
			Events: []engine.Event{{Type: engine.EventStop}}})
		must(t, err)
	}
	a := engine.Artifact{RunID: "r1", ResultID: "r1", Kind: "executions", Name: "executions-1.parquet", SizeBytes: 18,
		SHA256: backup.Sum([]byte(part))}
	must(t, at.record.Put(ctx, a, bytesSource(part)))
	must(t, s.SaveArtifact(ctx, 0, a))
	_, err = s.SaveRunNote(ctx, store.RunNote{RunID: "r1", Text: "kept"})
	must(t, err)
	must(t, s.AppendAudit(ctx, store.AuditEntry{Action: "run.start", Object: "r1"}))
	_, err = s.SaveSetting(ctx, store.Setting{Name: "notifications", Value: []byte(`{}`), Secret: []byte("hush")})
	must(t, err)
	return at
}

func write(t testing.TB, dsn, path string, o backup.Options) backup.Manifest {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	m, err := backup.Write(t.Context(), dsn, f, o)
	must(t, err)
	return m
}

// place is where a server keeps what it has.
type place struct {
	dsn, key string
	record   *results.Results
}

// newPlace is one whose database is empty.
func newPlace(t testing.TB) place {
	t.Helper()
	return newPlaceOn(t, pgtest.Start(t).NewDatabase(t))
}

func newPlaceOn(t testing.TB, dsn string) place {
	t.Helper()
	record, err := results.Open(t.TempDir())
	must(t, err)
	return place{dsn, filepath.Join(t.TempDir(), "key"), record}
}

// TestABackupInARotation has the key of all that is in it, whatever becomes sealed meanwhile, and goes on with no rotation
// that another server has begun.
func TestABackupInARotation(t *testing.T) {
	ctx, from, to := t.Context(), filledPlace(t), newPlace(t)
	keys, err := keyring.Open(from.key)
	must(t, err)
	s, err := storagepostgres.Open(ctx, from.dsn, keys, postgres.NewDriver())
	must(t, err)
	path := filepath.Join(t.TempDir(), "b")
	write(t, from.dsn, path, backup.Options{Key: func() ([]byte, error) {
		key, err := os.ReadFile(from.key)
		must(t, err)
		next, err := keys.AddKey()
		must(t, err)
		must(t, s.BeginKeyRotation(ctx, next))
		must(t, s.UseNextKey(ctx))
		_, err = s.Reseal(ctx, func(storagepostgres.Resealed) {})
		must(t, err)
		return key, nil
	}})
	other := filepath.Join(t.TempDir(), "b")
	write(t, from.dsn, other, backup.Options{Key: func() ([]byte, error) { return os.ReadFile(from.key) }})
	s.Close()
	for _, path := range []string{path, other} {
		b, err := backup.Open(path)
		must(t, err)
		defer b.Close()
		must(t, b.Restore(ctx, to.dsn, backup.RestoreOptions{Replace: true}))
		must(t, os.WriteFile(to.key, b.Key, 0o600))
		s := open(t, to.dsn, to.key)
		if _, _, err := s.OpenDSN(ctx, engine.ConnectionRef{Name: "shop"}); err != nil {
			t.Errorf("the connection: %v", err)
		}
		if r, err := s.KeyRotation(ctx); err != nil || r.Next != "" || r.Sealing == "" {
			t.Errorf("%+v, %v", r, err)
		}
		s.Close()
	}
}

// TestRestored: what is restored is what was backed up, secrets included, and it goes on from there.
func TestRestored(t *testing.T) {
	ctx := t.Context()
	from, to := filledPlace(t), newPlace(t)
	readKey := func() ([]byte, error) { return os.ReadFile(from.key) }
	path := filepath.Join(t.TempDir(), "b")
	m := write(t, from.dsn, path, backup.Options{Program: "1.2.3", Parts: from.record, Key: readKey})
	if m.Rows("run_status") != 1 || m.Rows("connections") != 1 || len(m.Files) != 1 || len(m.Missing) != 0 {
		t.Errorf("manifest: %+v", m)
	}
	b, err := backup.Open(path)
	must(t, err)
	defer b.Close()
	must(t, b.Restore(ctx, to.dsn, backup.RestoreOptions{Parts: to.record}))
	must(t, os.WriteFile(to.key, b.Key, 0o600))
	s := open(t, to.dsn, to.key)
	defer s.Close()
	run, err := s.Run(ctx, "r1")
	must(t, err)
	template, err := s.TemplateByName(ctx, "orders\t\\N\n")
	if err != nil || template.Source != "name: orders # ünïcode \\.\n\\.\n" || run.TemplateID != template.TemplateID ||
		run.Status != engine.StatusCompleted {
		t.Errorf("template %+v, run %+v, %v", template, run, err)
	}
	if _, dsn, err := s.OpenDSN(
		ctx,
		engine.ConnectionRef{Name: "shop"},
	); err != nil ||
		!strings.Contains(dsn.Reveal(), "secret") {
		t.Errorf("the connection: %q, %v", dsn, err)
	}
	setting, err := s.Setting(ctx, "notifications")
	if err != nil || string(setting.Secret) != "hush" {
		t.Errorf("the setting: %q, %v", setting.Secret, err)
	}
	file, _, err := to.record.Open(ctx, "r1", "executions-1.parquet")
	must(t, err)
	text, err := io.ReadAll(file)
	file.Close()
	if err != nil || string(text) != part {
		t.Errorf("the part: %q, %v", text, err)
	}
	// Guards hold again, and numbers go on.
	if err := s.CreateRun(ctx, engine.Run{RunID: "r1", ResultID: "r1"}); err == nil {
		t.Error("the run can be made twice")
	}
	must(t, s.AppendAudit(ctx, store.AuditEntry{Action: "later"}))
	lines, err := s.ListAudit(ctx, store.AuditFilter{})
	if err != nil || len(lines) != 2 || lines[0].Action != "later" {
		t.Errorf("the audit log: %+v, %v", lines, err)
	}
	conn, err := pgx.Connect(ctx, to.dsn)
	must(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "UPDATE audit_log SET action = 'x'"); err == nil {
		t.Error("the audit log can be changed")
	}
	must(t, schema.Compare(ctx, to.dsn))
}

// TestABackupWithOldNamesIsRestored: until schema version 15 a table of a backup, and a column of it, had other names.
func TestABackupWithOldNamesIsRestored(t *testing.T) {
	ctx, from, to := t.Context(), filledPlace(t), newPlace(t)
	s := open(t, from.dsn, from.key)
	must(t, s.SetNodeDesiredState(ctx, "n-1", nodes.DesiredDrain, "ada"))
	s.Close()
	path := filepath.Join(t.TempDir(), "b")
	write(t, from.dsn, path, backup.Options{})
	r, err := zip.OpenReader(path)
	must(t, err)
	defer r.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		in, err := f.Open()
		must(t, err)
		content, err := io.ReadAll(in)
		must(t, err)
		if f.Name == "manifest.json" {
			var m backup.Manifest
			must(t, json.Unmarshal(content, &m))
			i := slices.IndexFunc(m.Tables, func(t backup.Table) bool { return t.Name == "node_intents" })
			m.Tables[i].Name, m.SchemaVersion = "node_wishes", 15
			m.Tables[i].Columns[slices.Index(m.Tables[i].Columns, "desired_state")] = "wish"
			content, err = json.Marshal(m)
			must(t, err)
		}
		entry, err := w.Create(strings.Replace(f.Name, "node_intents", "node_wishes", 1))
		must(t, err)
		_, err = entry.Write(content)
		must(t, err)
	}
	must(t, w.Close())
	must(t, os.WriteFile(path, out.Bytes(), 0o600))
	b, err := backup.Open(path)
	must(t, err)
	defer b.Close()
	must(t, b.Restore(ctx, to.dsn, backup.RestoreOptions{Parts: to.record}))
	s = open(t, to.dsn, from.key)
	defer s.Close()
	if states, err := s.NodeDesiredStates(ctx); err != nil || states["n-1"] != nodes.DesiredDrain {
		t.Errorf("restored: %v, %v", states, err)
	}
}

// TestNotEmpty: what is there is not overwritten without being asked, and never under a server.
func TestNotEmpty(t *testing.T) {
	ctx := t.Context()
	from, to := filledPlace(t), filledPlace(t)
	s := open(t, to.dsn, to.key)
	must(t, s.DeleteRun(ctx, "r1"))
	path := filepath.Join(t.TempDir(), "b")
	write(t, from.dsn, path, backup.Options{})
	b, err := backup.Open(path)
	must(t, err)
	defer b.Close()
	for _, replace := range []bool{false, true} {
		if err := b.Restore(ctx, to.dsn, backup.RestoreOptions{Replace: replace}); !engine.HasCode(err, engine.CodeConflict) {
			t.Errorf("under a server: %v", err)
		}
	}
	s.Close()
	if err := b.Restore(ctx, to.dsn, backup.RestoreOptions{}); !engine.HasCode(err, engine.CodeConflict) ||
		!strings.Contains(engine.AsError(err).Message, "0 runs, 1 templates, 1 connections") {
		t.Errorf("into a store that is not empty: %v", err)
	}
	must(t, b.Restore(ctx, to.dsn, backup.RestoreOptions{Replace: true}))
	s = open(t, to.dsn, from.key)
	defer s.Close()
	if _, err := s.Run(ctx, "r1"); err != nil {
		t.Error(err)
	}
}

// edited is a backup with each of its entries changed; nil leaves one out.
func edited(t *testing.T, whole []byte, change func(name string, content []byte) []byte) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	must(t, err)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		in, err := f.Open()
		must(t, err)
		content, err := io.ReadAll(in)
		must(t, err)
		if content = change(f.Name, content); content == nil {
			continue
		}
		to, err := w.Create(f.Name)
		must(t, err)
		_, err = to.Write(content)
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

// twice is a backup with one of its entries once more, and another content in it.
func twice(t *testing.T, whole []byte, name string) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	must(t, err)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		must(t, w.Copy(f))
	}
	to, err := w.Create(name)
	must(t, err)
	_, err = to.Write([]byte("other"))
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}

// TestBadFiles: what is damaged, cut short, of another program or newer is refused before anything is changed.
func TestBadFiles(t *testing.T) {
	from := filledPlace(t)
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	write(t, from.dsn, good, backup.Options{Parts: from.record})
	whole, err := os.ReadFile(good)
	must(t, err)
	edited := func(change func(name string, content []byte) []byte) []byte { return edited(t, whole, change) }
	// anew is the backup with its manifest read into one of a type, changed and written again.
	anew := func(m any, change func()) []byte {
		return edited(func(name string, content []byte) []byte {
			if name != "manifest.json" {
				return content
			}
			must(t, json.Unmarshal(content, m))
			change()
			text, err := json.Marshal(m)
			must(t, err)
			return text
		})
	}
	manifest := func(set map[string]any) []byte {
		var m map[string]any
		return anew(&m, func() { maps.Copy(m, set) })
	}
	var tables, files backup.Manifest
	r, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	must(t, err)
	at, err := r.File[0].DataOffset()
	must(t, err)
	flipped := bytes.Clone(whole)
	flipped[at+5] ^= 1
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":         {nil, "not a whole backup"},
		"text":          {[]byte("hello"), "not a whole backup"},
		"truncated":     {whole[:len(whole)-100], "not a whole backup"},
		"a flipped bit": {flipped, "damaged"},
		"another zip": {edited(func(n string, c []byte) []byte {
			return map[bool][]byte{true: c}[n == "tables/users"]
		}), "no manifest"},
		"a table that was changed": {edited(func(n string, c []byte) []byte {
			if n == "tables/users" {
				return append(c, 'x')
			}
			return c
		}), "damaged"},
		"a table that is gone": {edited(func(n string, c []byte) []byte {
			if n == "tables/users" {
				return nil
			}
			return c
		}), "damaged"},
		"a member twice": {edited(func(n string, c []byte) []byte {
			if n == "manifest.json" {
				return bytes.Replace(c, []byte("{"), []byte(`{"key_sha256": "",`+"\n"+`"Key_sha256": "",`), 1)
			}
			return c
		}), `the member "Key_sha256" is there twice`},
		"a table twice":  {anew(&tables, func() { tables.Tables = append(tables.Tables, tables.Tables[0]) }), "twice"},
		"a file twice":   {anew(&files, func() { files.Files = append(files.Files, files.Files[0]) }), "twice"},
		"an entry twice": {twice(t, whole, "tables/users"), `the entry "tables/users" is there twice`},
		"foreign":        {manifest(map[string]any{"format": "other"}), "not a backup"},
		"newer format":   {manifest(map[string]any{"format_version": 2}), "newer"},
		"newer schema":   {manifest(map[string]any{"schema_version": 9999}), "newer"},
		"a table of nobody's": {manifest(map[string]any{"tables": []any{map[string]any{"name": "pg_authid"}}}),
			"does not know"},
		"a table for the moment": {manifest(map[string]any{"tables": []any{map[string]any{"name": "server_leases"}}}),
			"does not know"},
	} {
		path := filepath.Join(dir, "bad")
		must(t, os.WriteFile(path, c.content, 0o600))
		b, err := backup.Open(path)
		if err == nil {
			b.Close()
			t.Errorf("%s is taken", name)
			continue
		}
		if e := engine.AsError(err); e.Code != engine.CodeInvalid || !strings.Contains(e.Message, c.want) || e.Hint == "" {
			t.Errorf("%s: %s: %s (%s), want %q", name, e.Code, e.Message, e.Hint, c.want)
		}
	}
	for path, want := range map[string]string{filepath.Join(dir, "nowhere"): "There is no file", dir: "is a folder"} {
		_, err := backup.Open(path)
		if e := engine.AsError(err); e.Code != engine.CodeInvalid || !strings.Contains(e.Message, want) ||
			!strings.Contains(e.Message, path) || strings.Contains(e.Message, "whole") {
			t.Errorf("%s: %s: %s", path, e.Code, e.Message)
		}
	}
}

// TestOfOneMoment: while runs come and go, each in one transaction with its row of results, a backup has both or
// neither.
func TestOfOneMoment(t *testing.T) {
	from := filledPlace(t)
	s := open(t, from.dsn, from.key)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			id := "busy-" + time.Now().Format("150405.000000000")
			_ = s.CreateRun(ctx, engine.Run{RunID: id, ResultID: id}) // ctx ends it
			if i%2 == 1 {
				_ = s.DeleteRun(ctx, id)
			}
		}
	})
	defer func() { cancel(); busy.Wait() }()
	for range 5 {
		path := filepath.Join(t.TempDir(), "b")
		m := write(t, from.dsn, path, backup.Options{})
		if runs, rows := m.Rows("run_status"), m.Rows("test_results"); runs != rows {
			t.Errorf("%d runs and %d rows of results", runs, rows)
		}
		b, err := backup.Open(path)
		must(t, err)
		must(t, b.Restore(t.Context(), pgtest.Start(t).NewDatabase(t), backup.RestoreOptions{}))
		b.Close()
	}
}
