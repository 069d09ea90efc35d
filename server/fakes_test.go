package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/store"
)

// memory is a control store in memory: the least that the handlers can tell apart.
type memory struct {
	mu          sync.Mutex
	n           int
	templates   map[string]store.Template
	connections map[string]store.Connection
	secrets     map[string]string // connection id → DSN in clear
	tokens      map[[32]byte]store.Token
	uses, pings int
	admin       *store.User
	audit       []store.AuditEntry
	runs        map[string]engine.Run
	artifacts   map[string][]engine.Artifact
	lastFilter  store.RunFilter
	down        error
	block       chan struct{} // ListTemplates waits for it when not nil
}

func newMemory() *memory {
	return &memory{templates: map[string]store.Template{}, connections: map[string]store.Connection{}, secrets: map[string]string{},
		tokens: map[[32]byte]store.Token{}, runs: map[string]engine.Run{}, artifacts: map[string][]engine.Artifact{}}
}

func (m *memory) id(prefix string) string {
	m.n++
	return fmt.Sprintf("%s-%d", prefix, m.n)
}

func (m *memory) Ping(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pings++
	return m.down
}

func (m *memory) CreateTemplate(_ context.Context, t store.Template) (store.Template, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.templates {
		if o.Name == t.Name {
			return t, fmt.Errorf("creating template: %w", store.ErrConflict)
		}
	}
	t.TemplateID, t.Version, t.CreatedAt = m.id("tpl"), 1, engine.At(time.Now())
	m.templates[t.TemplateID] = t
	return t, nil
}

func (m *memory) Template(_ context.Context, id string) (store.Template, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return store.Template{}, m.down
	}
	t, ok := m.templates[id]
	if !ok {
		return t, fmt.Errorf("reading template: %w", store.ErrNotFound)
	}
	return t, nil
}

func (m *memory) TemplateByName(_ context.Context, name string) (store.Template, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.templates {
		if t.Name == name {
			return t, nil
		}
	}
	return store.Template{}, store.ErrNotFound
}

func (m *memory) ListTemplates(ctx context.Context) ([]store.Template, error) {
	m.mu.Lock()
	block := m.block
	m.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.Template
	for _, t := range m.templates {
		all = append(all, t)
	}
	return all, nil
}

func (m *memory) UpdateTemplate(_ context.Context, t store.Template) (store.Template, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.templates[t.TemplateID]
	switch {
	case !ok:
		return t, store.ErrNotFound
	case old.Version != t.Version:
		return t, store.ErrConflict
	}
	t.Version++
	m.templates[t.TemplateID] = t
	return t, nil
}

func (m *memory) DeleteTemplate(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.templates[id]; !ok {
		return store.ErrNotFound
	}
	delete(m.templates, id)
	return nil
}

func (m *memory) SaveConnection(_ context.Context, c store.Connection) (store.Connection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.connections {
		if o.Name == c.Name && o.ConnectionID != c.ConnectionID {
			return c, store.ErrConflict
		}
	}
	if c.ConnectionID == "" {
		c.ConnectionID = m.id("con")
	}
	// The DSN is kept in clear on purpose: the handlers must hide it whatever a store returns.
	m.connections[c.ConnectionID], m.secrets[c.ConnectionID] = c, c.DSN
	return c, nil
}

func (m *memory) Connection(_ context.Context, idOrName string) (store.Connection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.connections {
		if c.ConnectionID == idOrName || c.Name == idOrName {
			return c, nil
		}
	}
	return store.Connection{}, store.ErrNotFound
}

func (m *memory) ListConnections(context.Context) ([]store.Connection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.Connection
	for _, c := range m.connections {
		all = append(all, c)
	}
	return all, nil
}

func (m *memory) DeleteConnection(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.templates {
		if t.Config.Target.Connection.Name == m.connections[id].Name {
			return store.ErrInUse
		}
	}
	delete(m.connections, id)
	return nil
}

func (m *memory) OpenDSN(ctx context.Context, ref engine.ConnectionRef) (string, string, error) {
	c, err := m.Connection(ctx, ref.Name)
	if err != nil {
		return "", "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return c.Driver, m.secrets[c.ConnectionID], nil
}

func (m *memory) EnsureAdmin(_ context.Context, name string) (store.User, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.admin == nil {
		m.admin = &store.User{UserID: "u-1", Name: name, Role: "admin", CreatedAt: engine.At(time.Now())}
	}
	return *m.admin, nil
}

func (m *memory) CreateToken(_ context.Context, t store.Token, hash [32]byte) (store.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t.TokenID, t.CreatedAt = m.id("tok"), engine.At(time.Now())
	if t.Scope == "" {
		t.Scope = "write"
	}
	for other, o := range m.tokens {
		if t.Kind == "signin" && o.Kind == "signin" {
			delete(m.tokens, other)
		}
	}
	m.tokens[hash] = t
	return t, nil
}

func (m *memory) UseToken(_ context.Context, kind string, hash [32]byte) (store.Token, store.User, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses++
	if m.down != nil {
		return store.Token{}, store.User{}, m.down
	}
	t, ok := m.tokens[hash]
	if !ok || t.Kind != kind || !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(time.Now()) {
		return t, store.User{}, store.ErrNotFound
	}
	if kind == "signin" {
		delete(m.tokens, hash)
	}
	return t, *m.admin, nil
}

func (m *memory) ListTokens(_ context.Context, userID, kind string) ([]store.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.Token
	for _, t := range m.tokens {
		if (userID == "" || t.UserID == userID) && t.Kind == kind {
			all = append(all, t)
		}
	}
	return all, nil
}

func (m *memory) DeleteToken(_ context.Context, userID, tokenID string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for hash, t := range m.tokens {
		if t.TokenID == tokenID && t.UserID == userID {
			delete(m.tokens, hash)
			return nil
		}
	}
	return store.ErrNotFound
}

func (m *memory) AppendAudit(_ context.Context, e store.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.audit = append(m.audit, e)
	return nil
}

func (m *memory) ListAudit(context.Context, int) ([]store.AuditEntry, error) { return m.audit, nil }

func (m *memory) actions() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, e := range m.audit {
		all = append(all, e.Action)
	}
	return all
}

func (m *memory) Run(_ context.Context, id string) (engine.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.runs[id]
	if !ok {
		return r, fmt.Errorf("reading run: %w", store.ErrNotFound)
	}
	return r, nil
}

func (m *memory) ListRuns(_ context.Context, f store.RunFilter) (store.RunList, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastFilter = f
	list := store.RunList{Total: int64(len(m.runs))}
	for _, r := range m.runs {
		list.Runs = append(list.Runs, store.RunRow{Run: r})
	}
	return list, nil
}

func (m *memory) LiveRuns(context.Context) ([]engine.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var live []engine.Run
	for _, r := range m.runs {
		if r.Status.Live() {
			live = append(live, r)
		}
	}
	return live, nil
}

func (m *memory) Series(context.Context, string, store.Window) ([]engine.Point, float64, error) {
	return []engine.Point{{ElapsedSeconds: 1, Phase: engine.PhaseMeasurement, QPS: 10, QPSByKind: map[engine.Kind]float64{engine.KindInsert: 10}}}, 1, nil
}

func (*memory) WarehouseSlots(context.Context, string, store.Window) ([]engine.WarehouseSlot, error) {
	return nil, nil
}

func (*memory) WarehousePolls(context.Context, string, store.Window) ([]engine.WarehousePoint, float64, error) {
	return nil, 5, nil
}

func (m *memory) WorkerSeries(_ context.Context, _, worker string, _ store.Window) ([]store.WorkerPoint, float64, error) {
	return []store.WorkerPoint{{WorkerID: worker, Phase: engine.PhaseWarmup}}, 1, nil
}

func (m *memory) EventPage(context.Context, string, int64, int) ([]engine.Event, int64, error) {
	return []engine.Event{{EventID: "e", Type: engine.EventStart, SequenceID: 1}}, 1, nil
}

func (m *memory) ArtifactPage(ctx context.Context, id, _ string, _ int) ([]engine.Artifact, int64, error) {
	parts, err := m.Artifacts(ctx, id)
	return parts, int64(len(parts)), err
}

func (m *memory) Overviews(context.Context, string) ([]engine.TestResult, error) { return nil, nil }

func (m *memory) Logs(_ context.Context, id string, after int64, _ engine.LogLevel, limit int) ([]engine.LogEntry, error) {
	var lines []engine.LogEntry
	for seq := after + 1; seq <= 3 && len(lines) < limit; seq++ {
		lines = append(lines, engine.LogEntry{Seq: seq, RunID: id, Level: engine.LogInfo, Message: "line"})
	}
	return lines, nil
}

func (m *memory) Artifacts(_ context.Context, id string) ([]engine.Artifact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.artifacts[id], nil
}

// folder keeps parts in memory.
type folder struct {
	mu    sync.Mutex
	parts map[string][]byte
	open  int
	endless,
	broken, panics bool
}

type part struct {
	*bytes.Reader
	f *folder
}

func (p part) Read(b []byte) (int, error) {
	p.f.mu.Lock()
	panics := p.f.panics
	p.f.mu.Unlock()
	if panics {
		panic("a torn part")
	}
	return p.Reader.Read(b)
}

// WriteTo hides the reader's own, which does not panic.
func (p part) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{p}) }

func (p part) Close() error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.open--
	return nil
}

func (f *folder) Open(_ context.Context, runID, name string) (io.ReadSeekCloser, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.parts[runID+"/"+name]
	if !ok {
		return nil, 0, store.ErrNotFound
	}
	f.open++
	return part{bytes.NewReader(data), f}, int64(len(data)), nil
}

// WriteCSV writes a few lines, fails half way, or never ends.
func (f *folder) WriteCSV(ctx context.Context, _ string, w io.Writer) error {
	f.mu.Lock()
	endless, broken, panics := f.endless, f.broken, f.panics
	f.open++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.open--
		f.mu.Unlock()
	}()
	if panics {
		panic("a torn row")
	}
	line := []byte("a,b\n")
	for endless {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := w.Write(bytes.Repeat(line, 1000)); err != nil {
			return err
		}
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	if broken {
		return errors.New("disk is gone")
	}
	return nil
}

func (f *folder) opened() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// plugins is a library with one bundled plugin; plugins_test.go has the real one.
type plugins struct{}

func (plugins) Entries(context.Context) ([]plugin.Entry, error) {
	ref := engine.PluginRef{Kind: "workload", Name: "mix", Version: "1.0.0", SHA256: "aa"}
	info := plugin.Info{PluginRef: ref, ABI: "1.0", Imports: []string{}, Exports: []string{"ls_fill"},
		Manifest: plugin.Manifest{Kind: "workload", Name: "mix", Version: "1.0.0", Kinds: engine.Kinds(), Parameters: json.RawMessage(`{"type":"object"}`)}}
	return []plugin.Entry{{Info: info, Bundled: true, Enabled: true, State: plugin.StateEnabled, Origin: plugin.OriginBundled, Default: true,
		Templates: []plugin.Use{}, LiveRuns: []plugin.Use{}}}, nil
}

func (p plugins) Entry(ctx context.Context, ref string) (plugin.Entry, error) {
	entries, err := p.Entries(ctx)
	if e := entries[0]; ref == e.Name || ref == e.Name+"@"+e.Version || ref == e.SHA256 {
		return e, err
	}
	return plugin.Entry{}, store.ErrNotFound
}

func (plugins) Upload(context.Context, []byte, string) (plugin.Entry, bool, error) {
	return plugin.Entry{}, false, store.ErrConflict
}

func (p plugins) Enable(ctx context.Context, ref, _ string) (plugin.Entry, error) {
	return p.Entry(ctx, ref)
}

func (plugins) Disable(context.Context, string, string) (plugin.Entry, error) {
	return plugin.Entry{}, store.ErrConflict
}

func (plugins) Delete(context.Context, string) (engine.PluginRef, error) {
	return engine.PluginRef{}, store.ErrConflict
}

func (plugins) Usable(context.Context, string, string) error { return nil }
