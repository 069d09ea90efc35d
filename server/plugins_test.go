package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
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
	"github.com/loadstone-db/loadstone/server/transfer"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
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
	dsn := pgtest.Start(t).NewDatabase(t)
	if err := schema.Apply(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Setenv(keyring.KeyEnv, "")
	keys, err := keyring.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), dsn, keys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
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
		"INSERT INTO users (user_id, user_name, role) VALUES ('u-grace', 'grace', 'user')"); err != nil {
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
	manifest := fmt.Sprintf(`{"kind": "workload", "name": %q, "version": %q, "parameters": {"type": "object", "properties": {"step": {"type": "integer", "minimum": 1}}},
		"statements": [{"id": "s", "kind": "GENERIC_SQL", "sql": {"postgres": "SELECT 1"}}]%s}`, name, version, extra)
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
	if again := s.upload(guest("counters", "1.0.0", ""), 200); again.SHA256 != e.SHA256 {
		t.Errorf("again %+v", again)
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
	entries, err := s.db.ListAudit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	did := map[string]int{}
	for _, e := range entries {
		did[e.Action]++
	}
	if did["plugin.upload"] != 4 || did["plugin.enable"] != 3 || did["plugin.disable"] != 1 || did["plugin.delete"] != 3 {
		t.Errorf("audit %v", did)
	}
}

// TestPluginOfALiveRun keeps what a run has frozen, whatever its name means by then.
func TestPluginOfALiveRun(t *testing.T) {
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
	again, err := library.Open(t.Context(), library.Options{Host: newHost(t), Store: s.db, Dir: s.dir, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Workload(t.Context(), "counters"); err != nil {
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
	s := openShelf(t, store.PluginLimits{}, nil)
	version := "1.0.0+" + strings.Repeat("b", 58)
	name := strings.Repeat("a", 64)
	e := s.upload(guest(name, version, ""), 201)
	for _, ref := range []string{name + "@" + version, name, e.SHA256} {
		if got := decode[plugin.Entry](t, s.do("GET", "/api/plugins/"+ref, nil).want(t, 200)); got.SHA256 != e.SHA256 {
			t.Errorf("%s is %s", ref, got.SHA256)
		}
	}
	s.do("POST", "/api/plugins/"+name+"@"+version+"/enable", nil).want(t, 200)
}

// TestUploadLimits sends many files: what is kept is bounded, and says so.
func TestUploadLimits(t *testing.T) {
	s := openShelf(t, store.PluginLimits{Versions: 3, Files: 5, Bytes: 1 << 20}, nil)
	for i := range 3 {
		s.upload(guest("counters", fmt.Sprintf("1.%d.0", i), ""), 201)
	}
	p := s.send(guest("counters", "2.0.0", "")).problem(t, 409, engine.CodeConflict)
	if p.Detail != "There are 3 versions of the plugin counters, and no more are kept." || p.Hint == "" {
		t.Errorf("problem %+v", p)
	}
	s.upload(guest("a", "1", ""), 201)
	s.upload(guest("b", "1", ""), 201)
	s.send(guest("c", "1", "")).problem(t, 409, engine.CodeConflict)
	same := guest("b", "1", "")
	for range 200 {
		s.send(same).want(t, 200)
	}
	if list := decode[api.PluginList](t, s.do("GET", "/api/plugins", nil).want(t, 200)); len(list.Plugins) != 6 {
		t.Errorf("%d plugins are listed", len(list.Plugins))
	}
}

// TestUploadsWaitTheirTurn holds quarantine: a bounded number wait, the others are told.
func TestUploadsWaitTheirTurn(t *testing.T) {
	held := make(chan struct{})
	s := openShelf(t, store.PluginLimits{}, func(ctx context.Context, _ []byte) (plugin.Info, error) {
		select {
		case <-held:
		case <-ctx.Done():
		}
		return plugin.Info{}, &engine.Error{Code: engine.CodePlugin, Message: "The file was held up.",
			Cause: plugin.ErrRefused}
	})
	answers := make(chan answer, 12)
	for i := range cap(answers) {
		go func() { answers <- s.send(guest("g", fmt.Sprint(i), "")) }()
	}
	for range 12 - 8 {
		(<-answers).problem(t, 503, engine.CodeUnavailable)
	}
	close(held)
	for range 8 {
		(<-answers).problem(t, 422, "plugin_refused")
	}
}

func form(field string, files ...[]byte) (body []byte, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range files {
		part, err := w.CreateFormFile(field, "../../x<b>.wasm")
		if err != nil {
			panic(err)
		}
		_, _ = part.Write(f)
	}
	_ = w.Close()
	return b.Bytes(), w.FormDataContentType()
}

// TestBadUploads sends what must be refused, with a sentence, and what must not.
func TestBadUploads(t *testing.T) {
	s := openShelf(t, store.PluginLimits{}, nil)
	honest := guest("counters", "1.0.0", "")
	ok, okType := form("file", honest)
	two, twoType := form("file", honest, honest)
	wrong, wrongType := form("plugin", honest)
	big, bigType := form("file", make([]byte, transfer.MaxUpload+1))
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 64<<20))
	_ = z.Close()
	component := append([]byte("\x00asm"), 0x0d, 0, 1, 0)
	for name, c := range map[string]struct {
		body   []byte
		header []string
		status int
		code   engine.Code
		says   string
	}{
		"nothing": {nil, nil, 400, "malformed", "no file"},
		"text":    {[]byte("hello"), nil, 422, "plugin_refused", "not a plugin"},
		"an ELF file": {append([]byte("\x7fELF"), make([]byte, 200)...), nil, 422, "plugin_refused",
			"not a plugin"},
		"a component":             {component, nil, 422, "plugin_refused", "not a plugin"},
		"cut off":                 {honest[:len(honest)-7], nil, 422, "plugin_refused", "not a plugin"},
		"JSON":                    {[]byte(`{}`), []string{"Content-Type", "application/json"}, 415, "media_type", ""},
		"no type":                 {honest, []string{"Content-Type", ""}, 415, "media_type", ""},
		"a wrong type":            {honest, []string{"Content-Type", "text/html"}, 415, "media_type", ""},
		"compressed":              {honest, []string{"Content-Encoding", "gzip"}, 415, "media_type", "compressed"},
		"a gzip bomb":             {bomb.Bytes(), []string{"Content-Encoding", "gzip"}, 415, "media_type", "compressed"},
		"a gzip bomb, undeclared": {bomb.Bytes(), nil, 422, "plugin_refused", ""},
		"too large":               {make([]byte, transfer.MaxUpload+1), nil, 413, "too_large", "8 MB"},
		"much too large":          {make([]byte, 3*transfer.MaxUpload), nil, 413, "too_large", "8 MB"},
		"a large form":            {big, []string{"Content-Type", bigType}, 413, "too_large", "8 MB"},
		"two files":               {two, []string{"Content-Type", twoType}, 422, "invalid", ""},
		"a wrong field":           {wrong, []string{"Content-Type", wrongType}, 422, "invalid", ""},
		"a form without its end":  {ok[:len(ok)-10], []string{"Content-Type", okType}, 400, "malformed", ""},
		"a form without boundary": {ok, []string{"Content-Type", "multipart/form-data"}, 400, "malformed", ""},
		"HTML in the name":        {guest("<script>", "1.0.0", ""), nil, 422, "plugin_refused", "its name"},
		"a path as name":          {guest("../../etc/passwd", "1.0.0", ""), nil, 422, "plugin_refused", "its name"},
		"a path as version":       {guest("x", "../1", ""), nil, 422, "plugin_refused", "its version"},
		"a malformed schema":      {guest("x", "1", `, "parameters": {"type": 7}`), nil, 422, "plugin_refused", "parameters"},
		"large parameters": {guest("x", "1", `, "parameters": {"description": "`+strings.Repeat("x", 70<<10)+`"}`),
			nil, 422, "plugin_refused", "parameters"},
		"parameters without end": {
			guest("x", "1", `, "parameters": `+strings.Repeat(`{"properties": {"a": `, 40)+`{}`+strings.Repeat("}}", 40)), nil,
			422, "plugin_refused", "nested"},
		"SQL of 2 MB": {guest("x", "1", `, "statements": [{"id": "s", "sql": "`+strings.Repeat("x", 2<<20)+`"}]`),
			nil, 422, "plugin_refused", "KB"},
		"terminal escapes": {guest("x", "1", `, "statements": [{"id": "s", "sql": "SELECT \u001b[2J"}]`), nil, 422,
			"plugin_refused", "control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			p := s.send(c.body, c.header...).problem(t, c.status, c.code)
			if !strings.Contains(p.Detail+p.Hint, c.says) || strings.Count(p.Detail, "\n") > 0 {
				t.Errorf("problem %+v", p)
			}
		})
	}
	s.do("POST", "/api/plugins?x=1", honest, "Content-Type", "application/wasm").problem(t, 422, engine.CodeInvalid)
	if left, err := os.ReadDir(s.dir); err != nil || len(left) != 0 {
		t.Errorf("files of refused uploads: %v, %v", left, err)
	}
	// Texts are kept as text: whoever shows them escapes them.
	e := s.upload(guest("counters", "1.0.0", `, "title": "<img src=x onerror=alert(1)>\u001b[31m"`), 201)
	if e.Manifest.Title != "<img src=x onerror=alert(1)>[31m" {
		t.Errorf("title %q", e.Manifest.Title)
	}
	s.do("POST", "/api/plugins", ok, "Content-Type", okType).want(t, 201)
}

// raw sends bytes as they are and returns what comes back until the connection ends.
func (s *shelf) raw(t *testing.T, request string, body []byte) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, strings.ReplaceAll(request, "TOKEN", s.token))
	_, _ = conn.Write(body)
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	text, _ := io.ReadAll(conn)
	return string(text)
}

func TestUploadsOnTheWire(t *testing.T) {
	s := openShelf(t, store.PluginLimits{}, nil)
	wasm := guest("counters", "1.0.0", "")
	large := append(guest("counters", "1.1.0", ""),
		append([]byte{0, 0xc2, 0x9a, 0x0c, 1, 'x'}, make([]byte, 200_000)...)...)
	head := "POST /api/plugins HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/wasm\r\n"
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n", n) }
	for name, c := range map[string]struct {
		request string
		body    []byte
		want    string
	}{
		"announced more than is sent": {head + length(len(wasm)+10), wasm, "HTTP/1.1 400"},
		// More than what is read before the handler begins.
		"a large file that breaks off": {head + length(len(large)+10), large, "HTTP/1.1 400"},
		"announced less than is sent":  {head + length(len(wasm)-10), wasm, "HTTP/1.1 422"},
		"announced far too much":       {head + length(1<<40), wasm, "HTTP/1.1 4"},
		"a stranger": {strings.Replace(head, "TOKEN", "nobody", 1) + length(len(wasm)), wasm,
			"HTTP/1.1 401"},
		"a stranger with a large file": {strings.Replace(head, "TOKEN", "nobody", 1) + length(transfer.MaxUpload),
			make([]byte, transfer.MaxUpload), "HTTP/1.1 401"},
		"endless chunks": {head + "Transfer-Encoding: chunked\r\n\r\n",
			bytes.Repeat([]byte("100000\r\n"+strings.Repeat("x", 1<<20)+"\r\n"), 12), "HTTP/1.1 413"},
		"broken chunks": {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", wasm, "HTTP/1.1 400"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.raw(t, c.request, c.body); !strings.HasPrefix(got, c.want) || strings.Count(got, "HTTP/1.1 2") > 0 {
				t.Errorf("answer %.300q, want %s", got, c.want)
			}
		})
	}
	// In chunks, and then another request on the same connection.
	chunked := fmt.Appendf(nil, "%x\r\n%s\r\n0\r\n\r\n", len(wasm), wasm)
	got := s.raw(t, head+"Transfer-Encoding: chunked\r\n\r\n",
		append(chunked, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"...))
	if !strings.HasPrefix(got, "HTTP/1.1 201") || !strings.Contains(got, "HTTP/1.1 200 OK") {
		t.Errorf("answers %.2600q", got)
	}
}

// TestSlowUpload is cut off, whether it stops at its beginning or later, and holds nobody up.
func TestSlowUpload(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(o *server.Options)
		announced int
		sent      int
	}{
		"at its beginning": {func(o *server.Options) { o.ReadTimeout = 300 * time.Millisecond }, 5_000, 4},
		"later":            {func(o *server.Options) { o.UploadTimeout = 300 * time.Millisecond }, 100_000, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, c.change)
			conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, _ = fmt.Fprintf(conn, "POST /api/plugins HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
				"application/wasm\r\nContent-Length: %d\r\n\r\n%s",
				b.token, c.announced, strings.Repeat("x", c.sent))
			b.do("GET", "/healthz", nil).want(t, http.StatusOK)
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			text, err := io.ReadAll(conn)
			if err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 408")) ||
				!bytes.Contains(text, []byte(`"code":"timeout"`)) || !bytes.Contains(text, []byte("Connection: close")) {
				t.Errorf("answer %q, %v", text, err)
			}
		})
	}
}
