package postgres_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

func templates(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	config := newRun("x").Scenario
	made, err := s.CreateTemplate(ctx,
		store.Template{Name: "b", Description: "d", Config: config, Source: "# comment\nname: b\n", CreatedBy: "ada"})
	must(t, err)
	if made.TemplateID == "" || made.Version != 1 || made.CreatedAt.IsZero() || made.Source != "# comment\nname: b\n" {
		t.Errorf("made %+v", made)
	}
	same(t, "config", made.Config, config)
	_, err = s.CreateTemplate(ctx, store.Template{Name: "b", Config: config})
	wantTaken(t, err)
	other, err := s.CreateTemplate(ctx, store.Template{Name: "a", Config: config})
	must(t, err)

	byID, err := s.Template(ctx, made.TemplateID)
	must(t, err)
	same(t, "by id", byID, made)
	byName, err := s.TemplateByName(ctx, "b")
	must(t, err)
	same(t, "by name", byName, made)
	list, err := s.ListTemplates(ctx)
	must(t, err)
	wantList := []store.Template{other, made}
	for i := range wantList {
		wantList[i].Source, wantList[i].Config.Workload.Params = "", nil
	}
	same(t, "list by name", list, wantList)

	change := made
	change.Name, change.Description = "c", "changed"
	changed, err := s.UpdateTemplate(ctx, change)
	must(t, err)
	if changed.Version != 2 || changed.Name != "c" || changed.Description != "changed" || changed.CreatedBy != "ada" {
		t.Errorf("changed %+v", changed)
	}
	_, err = s.UpdateTemplate(ctx, change) // still names version 1
	wantError(t, err, store.ErrConflict)
	changed.Name = "a"
	_, err = s.UpdateTemplate(ctx, changed)
	wantTaken(t, err)
	_, err = s.UpdateTemplate(ctx, store.Template{TemplateID: "none", Name: "n", Version: 1, Config: config})
	wantError(t, err, store.ErrNotFound)

	run := newRun("r1")
	run.TemplateID = made.TemplateID
	must(t, s.CreateRun(ctx, run))
	must(t, s.DeleteTemplate(ctx, made.TemplateID))
	wantError(t, s.DeleteTemplate(ctx, made.TemplateID), store.ErrNotFound)
	_, err = s.Template(ctx, made.TemplateID)
	wantError(t, err, store.ErrNotFound)
	_, err = s.TemplateByName(ctx, "c")
	wantError(t, err, store.ErrNotFound)
	if _, err := s.Run(ctx, "r1"); err != nil {
		t.Errorf("the run went with its template: %v", err)
	}
}

const (
	secret = "s3cr3t-pässword"
	inline = "postgres://ada:" + secret + "@db.example:5432/shop?sslmode=disable"
	shown  = "postgres://ada:***@db.example:5432/shop?sslmode=disable"
)

func noSecret(t *testing.T, what string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	if strings.Contains(string(text), "s3cr3t") {
		t.Errorf("%s holds the password: %s", what, text)
	}
}

func templateSecrets(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	config := newRun("x").Scenario
	config.Target.Connection = engine.ConnectionRef{Driver: "postgres", DSN: inline}
	made, err := s.CreateTemplate(ctx, store.Template{Name: "t", Config: config,
		Source: "# was " + secret + ", before that postgres://bob:another-s3cr3t@old/shop\ntarget:\n  connection: " +
			"{driver: postgres, dsn: \"" + inline + "\"}\n"})
	must(t, err)
	noSecret(t, "template", made)
	ref := made.Config.Target.Connection
	if ref.DSN != shown || ref.DSNSealed == "" || !strings.Contains(made.Source, shown) {
		t.Fatalf("reference %+v, source %q", ref, made.Source)
	}
	opens := func(what string, ref engine.ConnectionRef, want string) {
		t.Helper()
		driver, dsn, err := s.OpenDSN(ctx, ref)
		if err != nil || driver != "postgres" || dsn.Reveal() != want {
			t.Errorf("%s: %q %q %v, want %q", what, driver, dsn, err, want)
		}
	}
	opens("sealed", ref, inline)
	opens("in clear", engine.ConnectionRef{Driver: "postgres", DSN: inline}, inline)
	opens("from the redacted source", engine.ConnectionRef{Driver: "postgres", DSN: shown}, inline)

	// Saved from a page that never saw the sealed text.
	change := made
	change.Config.Target.Connection.DSNSealed = ""
	change.Description = "edited"
	changed, err := s.UpdateTemplate(ctx, change)
	must(t, err)
	opens("after an edit", changed.Config.Target.Connection, inline)
	// A hidden password must not be sent to another host.
	for _, ref := range []engine.ConnectionRef{
		{Driver: "postgres", DSN: strings.Replace(shown, "db.example", "evil.example", 1)},
		{Driver: "postgres", DSN: strings.Replace(shown, "db.example", "evil.example", 1), DSNSealed: ref.DSNSealed},
	} {
		moved := changed
		moved.Config.Target.Connection = ref
		if _, err := s.UpdateTemplate(ctx, moved); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("a hidden password moved to another host: %v", err)
		}
		run := newRun("evil")
		run.Scenario.Target.Connection = ref
		if err := s.CreateRun(ctx, run); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("a run took a hidden password to another host: %v", err)
		}
	}
	for id, ref := range map[string]engine.ConnectionRef{"from-template": changed.Config.Target.Connection,
		"inline": {Driver: "postgres", DSN: inline}, "redacted": {Driver: "postgres", DSN: shown}} {
		run := newRun(id)
		run.Scenario.Target.Connection = ref
		must(t, s.CreateRun(ctx, run))
		got, err := s.Run(ctx, id)
		must(t, err)
		noSecret(t, "run", got)
		opens(id, got.Scenario.Target.Connection, inline)
	}
	// Another spelling in the source cannot be hidden, so the source goes.
	odd := config
	odd.Target.Connection.DSN = "host=h user=u password='x y'"
	kept, err := s.CreateTemplate(ctx,
		store.Template{Name: "odd", Config: odd, Source: `dsn: "host=h user=u password='x\u0020y'"`})
	must(t, err)
	if kept.Source != "" || kept.Config.Target.Connection.DSN != "host=h user=u password=***" {
		t.Errorf("kept %+v", kept)
	}
	opens("key/value", kept.Config.Target.Connection, "host=h user=u password='x y'")
}

func connections(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	made, err := s.SaveConnection(ctx, store.Connection{Name: "shop", Driver: "postgres", DSN: inline, Description: "d"})
	must(t, err)
	noSecret(t, "connection", made)
	if made.ConnectionID == "" || made.DSN != shown || made.Builtin {
		t.Errorf("made %+v", made)
	}
	_, err = s.SaveConnection(ctx, store.Connection{Name: "shop", Driver: "postgres", DSN: "host=h"})
	wantTaken(t, err)
	got, err := s.Connection(ctx, made.ConnectionID)
	must(t, err)
	same(t, "connection", got, made)
	got, err = s.ConnectionByName(ctx, "shop")
	must(t, err)
	same(t, "connection", got, made)
	for _, none := range []func() (store.Connection, error){
		func() (store.Connection, error) { return s.Connection(ctx, "shop") },
		func() (store.Connection, error) { return s.ConnectionByName(ctx, made.ConnectionID) },
		func() (store.Connection, error) { return store.FindConnection(ctx, s, uuid.NewString()) },
	} {
		if found, err := none(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("found %+v, %v", found, err)
		}
	}
	_, err = s.SaveConnection(ctx, store.Connection{Name: made.ConnectionID, Driver: "postgres", DSN: "host=h"})
	if !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a connection named as the id of another: %v", err)
	}
	list, err := s.ListConnections(ctx)
	must(t, err)
	same(t, "list", list, []store.Connection{made})
	opens := func(want string) {
		t.Helper()
		driver, dsn, err := s.OpenDSN(ctx, engine.ConnectionRef{Name: "shop"})
		if err != nil || driver != "postgres" || dsn.Reveal() != want {
			t.Errorf("opened %q %q, %v, want %q", driver, dsn, err, want)
		}
	}
	opens(inline)
	made.Description, made.Version = "edited, password hidden", 0
	_, err = s.SaveConnection(ctx, made)
	must(t, err)
	opens(inline)
	made.DSN = strings.Replace(made.DSN, "db.example", "evil.example", 1)
	if _, err = s.SaveConnection(ctx, made); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a hidden password moved to another host: %v", err)
	}
	made.DSN = "host=/tmp dbname=x"
	_, err = s.SaveConnection(ctx, made)
	must(t, err)
	opens("host=/tmp dbname=x")
	_, err = s.SaveConnection(ctx, store.Connection{ConnectionID: "none", Name: "n", Driver: "postgres", DSN: "host=h"})
	wantError(t, err, store.ErrNotFound)
	_, _, err = s.OpenDSN(ctx, engine.ConnectionRef{Name: "none"})
	wantError(t, err, store.ErrNotFound)
	must(t, s.DeleteConnection(ctx, made.ConnectionID, 0))
	wantError(t, s.DeleteConnection(ctx, made.ConnectionID, 0), store.ErrNotFound)
	_, err = s.ConnectionByName(ctx, "shop")
	wantError(t, err, store.ErrNotFound)
}

// builtins: a connection of the server's own is kept up to date by it, and by nobody else.
func builtins(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	mine, err := s.SaveConnection(ctx, store.Connection{Name: "aaa", Driver: "postgres", DSN: "host=mine"})
	must(t, err)
	must(t, s.EnsureBuiltin(ctx, store.Connection{Name: "aaa", Driver: "postgres", DSN: "host=theirs"}))
	if _, dsn, err := s.OpenDSN(ctx, engine.ConnectionRef{Name: "aaa"}); err != nil || dsn.Reveal() != "host=mine" {
		t.Errorf("a user's connection became %q, %v", dsn, err)
	}
	for _, dsn := range []string{inline, inline, "host=moved"} {
		must(t, s.EnsureBuiltin(ctx, store.Connection{Name: "playground", Driver: "postgres", DSN: dsn}))
		if _, got, err := s.OpenDSN(ctx, engine.ConnectionRef{Name: "playground"}); err != nil || got.Reveal() != dsn {
			t.Errorf("the built-in connection opens %q, %v, want %q", got, err, dsn)
		}
	}
	list, err := s.ListConnections(ctx)
	must(t, err)
	if len(list) != 2 || list[0].Name != "playground" || !list[0].Builtin || list[1].ConnectionID != mine.ConnectionID ||
		list[1].Builtin {
		t.Fatalf("list %+v", list)
	}
	change := list[0]
	change.DSN = "host=evil"
	_, err = s.SaveConnection(ctx, change)
	wantError(t, err, store.ErrConflict)
	wantError(t, s.DeleteConnection(ctx, change.ConnectionID, 0), store.ErrConflict)
}

func connectionInUse(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	c, err := s.SaveConnection(ctx, store.Connection{Name: "shop", Driver: "postgres", DSN: "host=h"})
	must(t, err)
	run := newRun("r1")
	run.Scenario.Target.Connection = engine.ConnectionRef{Name: "shop"}
	template, err := s.CreateTemplate(ctx, store.Template{Name: "t", Config: run.Scenario})
	must(t, err)
	wantError(t, s.DeleteConnection(ctx, c.ConnectionID, 0), store.ErrInUse)
	renamed := c
	renamed.Name = "store"
	_, err = s.SaveConnection(ctx, renamed)
	wantError(t, err, store.ErrInUse)
	must(t, s.DeleteTemplate(ctx, template.TemplateID))
	must(t, s.CreateRun(ctx, run))
	move(t, s, "r1", engine.StatusRunning)
	wantError(t, s.DeleteConnection(ctx, c.ConnectionID, 0), store.ErrInUse)
	move(t, s, "r1", engine.StatusCancelling, engine.StatusCancelled)
	must(t, s.DeleteConnection(ctx, c.ConnectionID, 0))
}

func plugins(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	p := store.Plugin{PluginRef: engine.PluginRef{Kind: "workload", Name: "mix", Version: "1.0.0", SHA256: "aa"},
		Bundled: true, Enabled: true,
		SizeBytes: 100, Manifest: []byte(`{"kind":  "workload"}`)}
	must(t, s.SavePlugin(ctx, p))
	must(t, s.SavePlugin(ctx, p))
	list, err := s.ListPlugins(ctx)
	must(t, err)
	if len(list) != 1 || string(list[0].Manifest) != string(p.Manifest) || list[0].CreatedAt.IsZero() {
		t.Fatalf("plugins %+v", list)
	}
	p.CreatedAt = list[0].CreatedAt
	same(t, "plugin", list[0], p)
	rebuilt := p
	rebuilt.SHA256 = "bb"
	must(t, s.SavePlugin(ctx, rebuilt))
	list, err = s.ListPlugins(ctx)
	must(t, err)
	enabled := map[string]bool{}
	for _, p := range list {
		enabled[p.SHA256] = p.Enabled
	}
	if len(list) != 2 || enabled["aa"] || !enabled["bb"] {
		t.Errorf("after a new bundled build: %v", enabled)
	}
}

func upload(name, version, sha string) store.Plugin {
	return store.Plugin{PluginRef: engine.PluginRef{Kind: "workload", Name: name, Version: version, SHA256: sha},
		SizeBytes: 4, Manifest: []byte(`{"name":  "x"}`), Inspection: []byte(`{"abi": "1.0"}`), UploadedBy: "ada"}
}

func uploadedPlugins(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	file := []byte{0, 'a', 's', 'm'}
	limits := store.PluginLimits{Versions: 3, Files: 5, Bytes: 1000}
	first, err := s.AddPlugin(ctx, upload("counters", "1.0.0", "c1"), file, limits)
	must(t, err)
	if !first.Created || first.Enabled || first.Bundled || first.UploadedBy != "ada" || first.SizeBytes != 4 ||
		!first.EnabledAt.IsZero() ||
		first.CreatedAt.IsZero() || string(first.Inspection) != `{"abi": "1.0"}` ||
		string(first.Manifest) != `{"name":  "x"}` {
		t.Fatalf("uploaded %+v", first)
	}
	again, err := s.AddPlugin(ctx, upload("counters", "1.0.0", "c1"), file, limits)
	must(t, err)
	if again.Created || again.Replaced != "" {
		t.Errorf("the same bytes again: %+v", again)
	}
	same(t, "the same bytes again", again.Plugin, first.Plugin)
	got, err := s.PluginFile(ctx, "c1")
	must(t, err)
	if string(got) != string(file) {
		t.Errorf("file %q", got)
	}
	// One that was never enabled gives way; one that was does not.
	second, err := s.AddPlugin(ctx, upload("counters", "1.0.0", "c2"), file, limits)
	must(t, err)
	if !second.Created || second.Replaced != "c1" {
		t.Errorf("replacing: %+v", second)
	}
	_, err = s.Plugin(ctx, "c1")
	wantError(t, err, store.ErrNotFound)
	_, err = s.PluginFile(ctx, "c1")
	wantError(t, err, store.ErrNotFound)
	enabled, err := s.EnablePlugin(ctx, "c2", true, "grace")
	must(t, err)
	if !enabled.Enabled || enabled.EnabledBy != "grace" || enabled.EnabledAt.IsZero() {
		t.Errorf("enabled %+v", enabled)
	}
	disabled, err := s.EnablePlugin(ctx, "c2", false, "ada")
	must(t, err)
	if disabled.Enabled || disabled.EnabledBy != "grace" || disabled.EnabledAt != enabled.EnabledAt {
		t.Errorf("disabled %+v", disabled)
	}
	stored, err := s.Plugin(ctx, "c2")
	must(t, err)
	same(t, "plugin", stored, disabled)
	_, err = s.AddPlugin(ctx, upload("counters", "1.0.0", "c3"), file, limits)
	wantError(t, err, store.ErrConflict)
	_, err = s.EnablePlugin(ctx, "nope", true, "grace")
	wantError(t, err, store.ErrNotFound)
	wantError(t, s.DeletePlugin(ctx, "nope"), store.ErrNotFound)
	must(t, s.DeletePlugin(ctx, "c2"))
	_, err = s.PluginFile(ctx, "c2")
	wantError(t, err, store.ErrNotFound)

	// A bundled plugin can be neither replaced, disabled nor deleted.
	bundled := store.Plugin{PluginRef: engine.PluginRef{Kind: "workload", Name: "mix", Version: "1.0.0", SHA256: "bb"},
		Bundled: true, Enabled: true}
	must(t, s.SavePlugin(ctx, bundled))
	_, err = s.AddPlugin(ctx, upload("mix", "1.0.0", "bb"), file, limits)
	wantError(t, err, store.ErrConflict)
	_, err = s.EnablePlugin(ctx, "bb", false, "grace")
	wantError(t, err, store.ErrConflict)
	wantError(t, s.DeletePlugin(ctx, "bb"), store.ErrConflict)
	if _, err := s.EnablePlugin(ctx, "bb", true, "grace"); err != nil {
		t.Errorf("enabling an enabled bundled plugin: %v", err)
	}
}

func pluginLimits(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	limits := store.PluginLimits{Versions: 3, Files: 5, Bytes: 20}
	add := func(name, version string, size int) error {
		p := upload(name, version, fmt.Sprintf("%s-%s-%d", name, version, size))
		p.SizeBytes = int64(size)
		_, err := s.AddPlugin(ctx, p, make([]byte, size), limits)
		return err
	}
	// Uploads at the same time do not pass a limit together.
	var wait sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wait.Go(func() { results[i] = add("a", fmt.Sprint(i), 1) })
	}
	wait.Wait()
	stored := 0
	for _, err := range results {
		if err == nil {
			stored++
			continue
		}
		wantError(t, err, store.ErrConflict)
	}
	if stored != limits.Versions {
		t.Errorf("%d versions of one name are stored, the limit is %d", stored, limits.Versions)
	}
	wantError(t, add("b", "1", 18), store.ErrConflict)
	must(t, add("b", "1", 17))
	limits.Bytes = 0
	must(t, add("c", "1", 17))
	wantError(t, add("d", "1", 1), store.ErrConflict)
	// A replacement takes no new place.
	must(t, add("c", "1", 3))
}

func admin(t *testing.T, s *postgres.Store) {
	users := make([]store.User, 6)
	var wait sync.WaitGroup
	for i := range users {
		wait.Go(func() {
			var err error
			if users[i], err = s.EnsureAdmin(t.Context(), "admin"); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, u := range users {
		if u.UserID == "" || u.UserID != users[0].UserID || u.Role != "admin" || u.Name != "admin" {
			t.Errorf("admin %+v", u)
		}
	}
}

func tokens(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	u, err := s.EnsureAdmin(ctx, "admin")
	must(t, err)
	hash := func(text string) [32]byte { return sha256.Sum256([]byte(text)) }
	api, err := s.CreateToken(ctx, store.Token{UserID: u.UserID, Kind: "api", Name: "ci"}, hash("api"))
	must(t, err)
	if api.TokenID == "" || api.CreatedAt.IsZero() || !api.LastUsedAt.IsZero() {
		t.Errorf("token %+v", api)
	}
	_, err = s.CreateToken(ctx, store.Token{UserID: "none", Kind: "api"}, hash("orphan"))
	wantError(t, err, store.ErrNotFound)
	used, owner, err := s.UseToken(ctx, "api", hash("api"))
	must(t, err)
	if used.TokenID != api.TokenID || owner.UserID != u.UserID || used.LastUsedAt.IsZero() {
		t.Errorf("used %+v by %+v", used, owner)
	}
	for name, c := range map[string]struct{ kind, secret string }{"wrong secret": {"api", "x"},
		"wrong kind": {"session", "api"}} {
		if _, _, err := s.UseToken(ctx, c.kind, hash(c.secret)); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			wantError(t, err, store.ErrNotFound)
		}
	}
	_, err = s.CreateToken(ctx, store.Token{UserID: u.UserID, Kind: "session",
		ExpiresAt: engine.At(time.Now().Add(-time.Second))}, hash("old"))
	must(t, err)
	_, _, err = s.UseToken(ctx, "session", hash("old"))
	wantError(t, err, store.ErrNotFound)

	_, err = s.CreateToken(ctx, store.Token{UserID: u.UserID, Kind: "signin",
		ExpiresAt: engine.At(time.Now().Add(time.Hour))}, hash("link"))
	must(t, err)
	won := make([]bool, 5)
	var wait sync.WaitGroup
	for i := range won {
		wait.Go(func() {
			_, _, err := s.UseToken(ctx, "signin", hash("link"))
			won[i] = err == nil
		})
	}
	wait.Wait()
	count := 0
	for _, w := range won {
		if w {
			count++
		}
	}
	if count != 1 {
		t.Errorf("a sign-in link was used %d times", count)
	}
	for _, secret := range []string{"older link", "newer link"} {
		_, err = s.CreateToken(ctx, store.Token{UserID: u.UserID, Kind: "signin",
			ExpiresAt: engine.At(time.Now().Add(time.Hour))}, hash(secret))
		must(t, err)
	}
	_, _, err = s.UseToken(ctx, "signin", hash("older link"))
	wantError(t, err, store.ErrNotFound)
	if _, _, err = s.UseToken(ctx, "signin", hash("newer link")); err != nil {
		t.Errorf("the newest link: %v", err)
	}
	for _, scope := range []string{"read", "run", "metrics", "admin"} {
		narrow, err := s.CreateToken(ctx, store.Token{UserID: u.UserID, Kind: "session", Scope: scope}, hash(scope))
		must(t, err)
		if api.Scope != "write" || narrow.Scope != scope {
			t.Errorf("scopes %q and %q, of which that is to be %q", api.Scope, narrow.Scope, scope)
		}
	}
	list, err := s.ListTokens(ctx, u.UserID, "api")
	must(t, err)
	if len(list) != 1 || list[0].TokenID != api.TokenID {
		t.Errorf("tokens %+v", list)
	}
	wantError(t, s.DeleteToken(ctx, "someone", api.TokenID), store.ErrNotFound)
	must(t, s.DeleteToken(ctx, u.UserID, api.TokenID))
	_, _, err = s.UseToken(ctx, "api", hash("api"))
	wantError(t, err, store.ErrNotFound)
}
