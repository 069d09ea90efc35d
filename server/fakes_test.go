package server_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/run/admission"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// memory is a store as a test wants it: it counts what it is asked, can
// be down, and tells every secret in clear, which the handlers must hide whatever a
// store returns.
type memory struct {
	*postgres.Store
	dsn         string
	mu          sync.Mutex
	uses, pings int
	hashes      [][32]byte // of the tokens that were made
	lastFilter  store.RunFilter
	down        error
	block       chan struct{} // ListTemplates waits for it when not nil
	deleting    func()        // happens before DeleteConnection when not nil
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	s, dsn := postgrestest.Open(t, slices.Collect(maps.Values(drivers()))...)
	return &memory{Store: s, dsn: dsn}
}

func (m *memory) Ping(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pings++
	return cmp.Or(m.down, m.Store.Ping(ctx))
}

func (m *memory) fault() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.down
}

func (m *memory) CreateToken(ctx context.Context, t store.Token, hash [32]byte) (store.Token, error) {
	m.mu.Lock()
	m.hashes = append(m.hashes, hash)
	m.mu.Unlock()
	return m.Store.CreateToken(ctx, t, hash)
}

func (m *memory) UseToken(ctx context.Context, kind string, hash [32]byte) (store.Token, store.User, error) {
	m.mu.Lock()
	m.uses++
	m.mu.Unlock()
	if err := m.fault(); err != nil {
		return store.Token{}, store.User{}, err
	}
	return m.Store.UseToken(ctx, kind, hash)
}

func (m *memory) FindToken(ctx context.Context, kind string, hash [32]byte) (store.Token, store.User, error) {
	m.mu.Lock()
	m.uses++
	m.mu.Unlock()
	if err := m.fault(); err != nil {
		return store.Token{}, store.User{}, err
	}
	return m.Store.FindToken(ctx, kind, hash)
}

func (m *memory) DeleteConnection(ctx context.Context, id string, version int64) error {
	m.mu.Lock()
	happens := m.deleting
	m.mu.Unlock()
	if happens != nil {
		happens()
	}
	return m.Store.DeleteConnection(ctx, id, version)
}

func (m *memory) LiveRuns(ctx context.Context) ([]engine.Run, error) {
	if err := m.fault(); err != nil {
		return nil, err
	}
	return m.Store.LiveRuns(ctx)
}

func (m *memory) ListRuns(ctx context.Context, f store.RunFilter) (store.RunList, error) {
	m.mu.Lock()
	m.lastFilter = f
	m.mu.Unlock()
	return m.Store.ListRuns(ctx, f)
}

// actions are those of the audit log, oldest first.
func (m *memory) actions() []string {
	entries, _ := m.ListAudit(context.Background(), store.AuditFilter{Limit: 1000,
		Outcome: store.OutcomeDone})
	var all []string
	for _, e := range slices.Backward(entries) {
		all = append(all, e.Action)
	}
	return all
}

// secret is the connection string of a saved connection.
func (m *memory) secret(t *testing.T, id string) string {
	t.Helper()
	c, err := m.Store.Connection(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	_, dsn, err := m.OpenDSN(t.Context(), engine.ConnectionRef{Name: c.Name})
	if err != nil {
		t.Fatal(err)
	}
	return dsn.Reveal()
}

// clearConnection and clearTemplate put the secrets back.
func (m *memory) clearConnection(c store.Connection, err error) (store.Connection, error) {
	if err == nil {
		var dsn secret.Secret
		_, dsn, err = m.OpenDSN(context.Background(), engine.ConnectionRef{Name: c.Name})
		c.DSN = dsn.Reveal()
	}
	return c, err
}

func (m *memory) clearTemplate(t store.Template, err error) (store.Template, error) {
	for _, c := range t.Config.Connections() {
		if err != nil || !c.Ref.Inline() {
			continue
		}
		var dsn secret.Secret
		shown := c.Ref.DSN
		_, dsn, err = m.OpenDSN(context.Background(), *c.Ref)
		c.Ref.DSN = dsn.Reveal()
		t.Source, c.Ref.DSNSealed = strings.ReplaceAll(t.Source, shown, c.Ref.DSN), ""
	}
	return t, err
}

func (m *memory) SaveConnection(ctx context.Context, c store.Connection) (store.Connection, error) {
	return m.clearConnection(m.Store.SaveConnection(ctx, c))
}

func (m *memory) Connection(ctx context.Context, id string) (store.Connection, error) {
	return m.clearConnection(m.Store.Connection(ctx, id))
}

func (m *memory) ConnectionByName(ctx context.Context, name string) (store.Connection, error) {
	return m.clearConnection(m.Store.ConnectionByName(ctx, name))
}

func (m *memory) ListConnections(ctx context.Context) ([]store.Connection, error) {
	list, err := m.Store.ListConnections(ctx)
	for i := range list {
		list[i], err = m.clearConnection(list[i], err)
	}
	return list, err
}

func (m *memory) CreateTemplate(ctx context.Context, t store.Template) (store.Template, error) {
	return m.clearTemplate(m.Store.CreateTemplate(ctx, t))
}

func (m *memory) UpdateTemplate(ctx context.Context, t store.Template) (store.Template, error) {
	return m.clearTemplate(m.Store.UpdateTemplate(ctx, t))
}

func (m *memory) Template(ctx context.Context, id string) (store.Template, error) {
	if err := m.fault(); err != nil {
		return store.Template{}, err
	}
	return m.clearTemplate(m.Store.Template(ctx, id))
}

func (m *memory) TemplateByName(ctx context.Context, name string) (store.Template, error) {
	return m.clearTemplate(m.Store.TemplateByName(ctx, name))
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
	list, err := m.Store.ListTemplates(ctx)
	for i := range list {
		list[i], err = m.clearTemplate(list[i], err)
	}
	return list, err
}

// measured gives a run one second, two run workers' and three lines of its log.
func (m *memory) measured(t *testing.T, runID string) {
	t.Helper()
	at := engine.At(time.Now())
	second := store.Tick{RunID: runID,
		Point: &engine.Point{Timestamp: at, ElapsedSeconds: 1, Phase: engine.PhaseMeasurement, QPS: 10,
			QPSByKind: map[engine.Kind]float64{engine.KindInsert: 10}}}
	for i := range 2 {
		second.Snapshots = append(second.Snapshots,
			engine.WorkerSnapshot{WorkerID: fmt.Sprint("worker-", i), WorkerGroupID: i, Tick: 1, Timestamp: at,
				Phase:        engine.PhaseWarmup,
				PhaseSeconds: 1, TickSeconds: 1, TickStarted: 5})
	}
	for seq := range int64(3) {
		second.Logs = append(second.Logs, engine.LogEntry{Seq: seq + 1, Level: engine.LogInfo, Message: "line"})
	}
	if err := m.SaveTick(t.Context(), second); err != nil {
		t.Fatal(err)
	}
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
		Manifest: plugin.Manifest{Kind: "workload", Name: "mix", Version: "1.0.0", Kinds: engine.Kinds(),
			Parameters: json.RawMessage(`{"type":"object"}`)}}
	return []plugin.Entry{{Info: info, Bundled: true, Enabled: true, State: plugin.StateEnabled,
		Origin: plugin.OriginBundled, Default: true,
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

// demand is what runs need of nodes.
type demand struct{}

func (demand) ScalingNeeds(context.Context) (admission.ScalingNeeds, error) {
	return admission.ScalingNeeds{WantedNodes: 2}, nil
}
