package run_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/results"
)

// writable is a check of results alone.
type writable struct{ *results.Results }

func (w writable) CheckResults() error { return w.CheckWritable() }

// TestWhatIsNotReadyTakesNoRun: what readiness says is what the creation of a run does.
func TestWhatIsNotReadyTakesNoRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	dir := filepath.Join(t.TempDir(), "results")
	kept, err := results.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(link protocol.Dialer) *enginerun.Service {
		opts := enginerun.Options{Store: f.store, Results: kept, ResultsCheck: writable{kept}, Plugins: f.plugins,
			Drivers: map[string]target.Driver{f.driver.Name(): f.driver}, Log: testLog(), Version: "test", TempDir: t.TempDir()}
		if link != nil {
			opts.Nodes = []protocol.Dialer{link}
		}
		return enginerun.New(opts)
	}
	create := func(s *enginerun.Service) error {
		_, err := s.Create(t.Context(), f.scenario(nil), engine.Actor{Name: "tester"})
		return err
	}
	if f.svc.CheckNodes() != nil || f.svc.CheckResults() != nil || create(f.svc) != nil {
		t.Errorf("a server with a node: %v, %v, %v", f.svc.CheckNodes(), f.svc.CheckResults(), create(f.svc))
	}
	lonely := serve(nil)
	if err := lonely.CheckNodes(); !engine.HasCode(err, engine.CodeUnavailable) ||
		!errors.As(create(lonely), new(*engine.Error)) {
		t.Errorf("a server without a node: %v, %v", err, create(lonely))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	blind := serve(nil)
	if err := blind.CheckResults(); err == nil || !strings.Contains(create(blind).Error(), dir) {
		t.Errorf("results that are no folder: %v, %v", err, create(blind))
	}
	if waiting := enginerun.New(
		enginerun.Options{Store: fake.New(), Results: kept, WaitForNodes: 1},
	); waiting.CheckNodes() != nil {
		t.Errorf("runs wait for nodes here: %v", waiting.CheckNodes())
	}
}
