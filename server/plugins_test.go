package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/library"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// shelf is a server with the real library, host and control store.
type shelf struct {
	*bench
	db  *postgres.Store
	dsn string
	lib *library.Library
	dir string
	doc document
}

func openShelf(t *testing.T, limits store.PluginLimits, quarantine library.Quarantine) *shelf {
	t.Helper()
	db, dsn := postgrestest.Open(t)
	h, err := host.New(t.Context(), host.Options{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := h.Register(t.Context(), guest("mix", "1.0.0", ""), true); err != nil {
		t.Fatal(err)
	}
	s := &shelf{db: db, dsn: dsn, dir: filepath.Join(t.TempDir(), "plugins")}
	s.lib, err = library.Open(t.Context(),
		library.Options{Host: h, Store: db, Dir: s.dir, Quarantine: quarantine, Limits: limits, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	s.bench = start(t, func(o *server.Options) {
		o.Runs, o.Store, o.Plugins = stored{o.Runs.(*orchestra), db}, db, s.lib
	})
	s.doc = openDocument(t, s.bench)
	return s
}

// plainUser makes a user who is no admin and returns a token of hers.
func (s *shelf) plainUser(t *testing.T) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(),
		"INSERT INTO users (user_id, user_name, role) VALUES ('u-grace', 'grace', 'operator')"); err != nil {
		t.Fatal(err)
	}
	secret, hash := auth.NewSecret(auth.PrefixAPI)
	if _, err := s.db.CreateToken(t.Context(), store.Token{UserID: "u-grace", Kind: auth.KindAPI, Name: "test"},
		hash); err != nil {
		t.Fatal(err)
	}
	return secret
}

// guest is a small honest workload plugin; extra are more members of its manifest.
func guest(name, version, extra string) []byte {
	manifest := fmt.Sprintf(`{"kind": "workload", "name": %q, "version": %q`, name, version) + extra
	for _, member := range []string{
		`"parameters": {"type": "object", "properties": {"step": {"type": "integer", "minimum": 1}}}`,
		`"statements": [{"id": "s", "kind": "GENERIC_SQL", "sql": {"postgres": "SELECT 1"}}]`,
	} {
		if name, _, _ := strings.Cut(member, ":"); !strings.Contains(extra, name) {
			manifest += ", " + member
		}
	}
	manifest += "}"
	return plugintest.Guest{Manifest: manifest, Pages: 3 + uint32(len(manifest)>>16)}.Build()
}

func (s *shelf) send(wasm []byte, header ...string) answer {
	return s.do("POST", "/api/plugins", wasm, append([]string{"Content-Type", "application/wasm"}, header...)...)
}

func (s *shelf) upload(wasm []byte, status int) plugin.Entry {
	s.t.Helper()
	a := s.send(wasm).want(s.t, status)
	s.doc.conforms(s.t, "POST", "/api/plugins", a)
	return decode[plugin.Entry](s.t, a)
}

func TestPluginLife(t *testing.T) {
	t.Parallel()
	s := openShelf(t, store.PluginLimits{}, nil)
	e := s.upload(guest("counters", "1.0.0", ""), 201)
	if e.Enabled || e.State != plugin.StateDisabled || e.Origin != plugin.OriginUploaded || e.UploadedBy != "admin" ||
		e.UploadedAt.IsZero() || e.Name != "counters" || len(e.Exports) == 0 {
		t.Errorf("uploaded %+v", e)
	}
	info, err := os.Stat(filepath.Join(s.dir, e.SHA256+".wasm"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v", info, err)
	}
	if folder, err := os.Stat(s.dir); err != nil || folder.Mode().Perm() != 0o700 {
		t.Errorf("folder %v, %v", folder, err)
	}
	if second := s.upload(guest("counters", "1.0.0", ""), 200); second.SHA256 != e.SHA256 {
		t.Errorf("again %+v", second)
	}

	// Nothing can be made with it before an admin has enabled it.
	config := scenario("count")
	config["workload"].(map[string]any)["plugin"] = "counters"
	p := s.do("POST", "/api/templates", map[string]any{"config": config}).problem(t, 422, engine.CodePlugin)
	if p.Detail != "The plugin counters@1.0.0 is disabled." || !strings.Contains(p.Hint, "admin can enable") ||
		p.Errors[0].Field != "workload.plugin" {
		t.Errorf("problem %+v", p)
	}
	if _, err := s.lib.Workload(t.Context(), "counters"); !errors.Is(err, plugin.ErrDisabled) {
		t.Errorf("a disabled plugin: %v", err)
	}
	a := s.do("POST", "/api/plugins/counters/enable", nil).want(t, 200)
	s.doc.conforms(t, "POST", "/api/plugins/{name}/enable", a)
	if e = decode[plugin.Entry](t, a); !e.Enabled || !e.Default || e.EnabledBy != "admin" || e.EnabledAt.IsZero() {
		t.Errorf("enabled %+v", e)
	}
	if w, err := s.lib.Workload(t.Context(), "counters"); err != nil || w.Info().SHA256 != e.SHA256 {
		t.Errorf("an enabled plugin: %v", err)
	}
	tpl := decode[store.Template](t, s.do("POST", "/api/templates", map[string]any{"config": config}).want(t, 201))

	// Versions side by side: the bare name means the highest enabled one.
	s.send(guest("counters", "1.0.0", `, "title": "changed"`)).problem(t, 409, engine.CodeConflict)
	old := s.upload(guest("counters", "0.9.0", ""), 201)
	next := s.upload(guest("counters", "1.10.0", ""), 201)
	replaced := next.SHA256
	next = s.upload(guest("counters", "1.10.0", `, "title": "better"`), 201)
	s.do("GET", "/api/plugins/"+replaced, nil).problem(t, 404, engine.CodeNotFound)
	if _, err := os.Stat(filepath.Join(s.dir, replaced+".wasm")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of a replaced upload: %v", err)
	}
	meant := func(want string) {
		t.Helper()
		if w, err := s.lib.Workload(t.Context(), "counters"); err != nil || w.Info().Version != want {
			t.Errorf("the bare name means %v, want %s (%v)", w, want, err)
		}
	}
	s.do("POST", "/api/plugins/counters@0.9.0/enable", nil).want(t, 200)
	meant("1.0.0")
	s.do("POST", "/api/plugins/"+next.SHA256+"/enable", nil).want(t, 200)
	meant("1.10.0")
	list := decode[api.PluginList](t, s.do("GET", "/api/plugins", nil).want(t, 200))
	var shown []string
	for _, p := range list.Plugins {
		shown = append(shown, fmt.Sprintf("%s@%s %s %t %d", p.Name, p.Version, p.State, p.Default, len(p.Templates)))
		if len(p.Manifest.Statements) > 0 {
			t.Errorf("the list has the statements of %s", p.Name)
		}
	}
	if got := strings.Join(shown,
		", "); got != "mix@1.0.0 enabled true 0, counters@1.10.0 enabled true 1, counters@1.0.0 enabled false 0, "+
		"counters@0.9.0 enabled false 0" {
		t.Errorf("list %s", got)
	}
	one := s.do("GET", "/api/plugins/counters@1.0.0", nil).want(t, 200)
	s.doc.conforms(t, "GET", "/api/plugins/{name}", one)
	if !bytes.Contains(one.body, []byte("SELECT 1")) {
		t.Errorf("inspection %s", one.body)
	}

	// A template that names it keeps it; bundled plugins stay as they are.
	p = s.do("DELETE", "/api/plugins/counters@1.10.0", nil).problem(t, 409, engine.CodeConflict)
	if p.Detail != `A template uses the plugin counters@1.10.0: "count".` {
		t.Errorf("problem %+v", p)
	}
	s.do("DELETE", "/api/plugins/"+old.SHA256, nil).want(t, 204)
	s.do("POST", "/api/plugins/counters@1.10.0/disable", nil).want(t, 200)
	meant("1.0.0")
	s.do("DELETE", "/api/plugins/counters@1.10.0", nil).want(t, 204)
	s.do("DELETE", "/api/plugins/counters", nil).problem(t, 409, engine.CodeConflict)
	s.do("DELETE", "/api/templates/"+tpl.TemplateID, nil).want(t, 204)
	s.do("DELETE", "/api/plugins/counters", nil).want(t, 204)
	s.do("DELETE", "/api/plugins/counters", nil).problem(t, 404, engine.CodeNotFound)
	s.do("DELETE", "/api/plugins/mix", nil).problem(t, 409, engine.CodeConflict)
	s.do("POST", "/api/plugins/mix/disable", nil).problem(t, 409, engine.CodeConflict)
	s.send(guest("mix", "2.0.0", "")).problem(t, 409, engine.CodeConflict)
	s.send(guest("mix", "1.0.0", "")).problem(t, 409, engine.CodeConflict)
	if left, err := os.ReadDir(s.dir); err != nil || len(left) != 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
	entries, err := s.db.ListAudit(t.Context(), store.AuditFilter{Limit: 100, Outcome: store.OutcomeDone})
	if err != nil {
		t.Fatal(err)
	}
	did := map[string]int{}
	for _, e := range entries {
		did[e.Action]++
	}
	if did["plugin.upload"] != 5 || did["plugin.enable"] != 3 || did["plugin.disable"] != 1 || did["plugin.delete"] != 3 {
		t.Errorf("audit %v", did)
	}
}

// TestPluginOfALiveRun keeps what a run has frozen, whatever its name means by then.
func TestPluginOfALiveRun(t *testing.T) {
	t.Parallel()
	s := openShelf(t, store.PluginLimits{}, nil)
	e := s.upload(guest("counters", "1.0.0", ""), 201)
	s.do("POST", "/api/plugins/counters/enable", nil).want(t, 200)
	sc := scenario("count")
	sc["workload"].(map[string]any)["plugin"] = "counters"
	run := decode[engine.Run](t, s.do("POST", "/api/runs", map[string]any{"scenario": sc}).want(t, 201))
	if _, err := s.db.Transition(t.Context(),
		store.Transition{RunID: run.RunID, From: []engine.Status{engine.StatusPrepared}, To: engine.StatusRunning,
			StartTime: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := s.db.SaveResult(t.Context(),
		engine.RunResult{ResultID: run.RunID, RunID: run.RunID, RunName: "count", Status: engine.StatusRunning,
			EnrichmentStatus: "PENDING",
			Plan:             &engine.Plan{Workload: e.PluginRef, Adapter: engine.PluginRef{SHA256: "ff"}}}); err != nil {
		t.Fatal(err)
	}
	s.upload(guest("counters", "2.0.0", ""), 201)
	s.do("POST", "/api/plugins/counters@2.0.0/enable", nil).want(t, 200)
	p := s.do("DELETE", "/api/plugins/counters@1.0.0", nil).problem(t, 409, engine.CodeConflict)
	if p.Detail != `A live run executes the plugin counters@1.0.0: "count".` {
		t.Errorf("problem %+v", p)
	}
	s.do("POST", "/api/plugins/counters@1.0.0/disable", nil).want(t, 200)
	if _, err := s.lib.ByHash().Workload(t.Context(), e.SHA256); err != nil {
		t.Errorf("a worker of the live run: %v", err)
	}
	s.do("DELETE", "/api/plugins/counters@2.0.0", nil).want(t, 204)
}

// TestDamagedPlugin changes files behind the server's back.
func TestDamagedPlugin(t *testing.T) {
	t.Parallel()
	s := openShelf(t, store.PluginLimits{}, nil)
	wasm := guest("counters", "1.0.0", "")
	e := s.upload(wasm, 201)
	file := filepath.Join(s.dir, e.SHA256+".wasm")
	changed := bytes.Replace(wasm, []byte("SELECT 1"), []byte("SELECT 2"), 1)
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	shown := decode[plugin.Entry](t, s.do("GET", "/api/plugins/counters", nil).want(t, 200))
	if shown.State != plugin.StateDamaged || shown.Problem == "" {
		t.Errorf("shown %+v", shown)
	}
	p := s.do("POST", "/api/plugins/counters/enable", nil).problem(t, 422, engine.CodePlugin)
	if p.Detail != "The plugin counters@1.0.0 is damaged: its file was changed after it was uploaded. It was not "+
		"executed." {
		t.Errorf("problem %+v", p)
	}
	// The right bytes mend it.
	if e = s.upload(wasm, 200); e.State != plugin.StateDisabled {
		t.Errorf("mended %+v", e)
	}
	s.do("POST", "/api/plugins/counters/enable", nil).want(t, 200)

	// Also one that has been loaded is not used on when its file changes.
	if _, err := s.lib.Workload(t.Context(), "counters"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, changed[:len(changed)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]plugin.Host{"a new run": s.lib, "a worker": s.lib.ByHash()} {
		ref := "counters"
		if name == "a worker" {
			ref = e.SHA256
		}
		if _, err := h.Workload(t.Context(), ref); !errors.Is(err, plugin.ErrDamaged) ||
			!strings.Contains(err.Error(), "counters@1.0.0") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.do("GET", "/healthz", nil).want(t, 200)
	s.do("GET", "/api/plugins/mix", nil).want(t, 200)

	// A lost copy comes back from the control store; bytes changed there are seen too.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	second, err := library.Open(
		t.Context(),
		library.Options{Host: newHost(t), Store: s.db, Dir: s.dir, Log: zerolog.Nop()},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Workload(t.Context(), "counters"); err != nil {
		t.Errorf("after the loss of the data directory: %v", err)
	}
	if back, err := os.ReadFile(file); err != nil || !bytes.Equal(back, wasm) {
		t.Errorf("the copy: %v", err)
	}
	forged := forgedStore{Store: s.db, wasm: changed}
	other, err := library.Open(t.Context(),
		library.Options{Host: newHost(t), Store: forged, Dir: t.TempDir(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Workload(t.Context(), "counters"); !errors.Is(err, plugin.ErrDamaged) {
		t.Errorf("forged bytes in the store: %v", err)
	}
}

func newHost(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.New(t.Context(), host.Options{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	return h
}

// forgedStore answers other bytes than were stored.
type forgedStore struct {
	library.Store
	wasm []byte
}

func (f forgedStore) PluginFile(context.Context, string) ([]byte, error) { return f.wasm, nil }

func TestOnlyAdminsDecide(t *testing.T) {
	t.Parallel()
	s := openShelf(t, store.PluginLimits{}, nil)
	token := s.plainUser(t)
	mine := []string{"Authorization", "Bearer " + token}
	s.send(guest("counters", "1.0.0", ""), mine...).want(t, 201)
	for _, call := range [][2]string{{"POST", "/api/plugins/counters/enable"}, {"POST", "/api/plugins/counters/disable"},
		{"DELETE", "/api/plugins/counters"}} {
		p := s.do(call[0], call[1], nil, mine...).problem(t, 403, engine.CodeForbidden)
		if !strings.Contains(p.Detail, "Only an admin may") {
			t.Errorf("%v: %+v", call, p)
		}
	}
	e := decode[plugin.Entry](t, s.do("GET", "/api/plugins/counters", nil, mine...).want(t, 200))
	if e.UploadedBy != "grace" || e.Enabled {
		t.Errorf("entry %+v", e)
	}
}

// TestVersionWithBuild: every version that a manifest may have can be asked for by name.
func TestVersionWithBuild(t *testing.T) {
	t.Parallel()
	s := openShelf(t, store.PluginLimits{}, nil)
	version := "1.0.0+" + strings.Repeat("b", 58)
	name := strings.Repeat("p", 64)
	e := s.upload(guest(name, version, ""), 201)
	for _, ref := range []string{name + "@" + version, name, e.SHA256} {
		if got := decode[plugin.Entry](t, s.do("GET", "/api/plugins/"+ref, nil).want(t, 200)); got.SHA256 != e.SHA256 {
			t.Errorf("%s is %s", ref, got.SHA256)
		}
	}
	s.do("POST", "/api/plugins/"+name+"@"+version+"/enable", nil).want(t, 200)
}
