package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/bundled/bundledtest"
	"github.com/loadstone-db/loadstone/plugins/host/hostiletest"
	"github.com/loadstone-db/loadstone/plugins/manifest"
)

// TestHostileAtTheGate: the parser decides about every file of the corpus, in
// process and in bounded time. The deadline is there to end a test that hangs, and
// is no measure: the gate takes milliseconds. It is one goroutine, and twenty times as
// slow under the race detector, which gets a file of each class; make test runs both.
func TestHostileAtTheGate(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	seen := map[string]bool{}
	for _, f := range hostiletest.Corpus() {
		if bundledtest.Race && seen[f.Class] {
			continue
		}
		seen[f.Class] = true
		if ctx.Err() != nil {
			t.Fatalf("%s was not reached in time", f.Name)
		}
		err := Gate(f.Bytes())
		switch {
		case f.Stage == hostiletest.Gate && !errors.Is(err, plugin.ErrRefused):
			t.Errorf("%s passed: %v", f.Name, err)
		case f.Stage == hostiletest.Gate && !strings.Contains(err.Error(), f.Message):
			t.Errorf("%s: %v, expected %q", f.Name, err, f.Message)
		case f.Stage != hostiletest.Gate && err != nil:
			t.Errorf("%s was stopped too early: %v", f.Name, err)
		case err != nil && !sentence(err):
			t.Errorf("%s: %q is no sentence to be shown", f.Name, err)
		}
	}
}

// sentence reports that an error can be shown: one line, short, and without what a
// terminal would obey.
func sentence(err error) bool {
	text := engine.AsError(err).Message
	return text != "" && text == manifest.Clean([]byte(text), 2000)
}

// TestHostileTruncations: no prefix of a small plugin passes, and few of a real one are tried.
func TestHostileTruncations(t *testing.T) {
	try := func(name string, whole []byte, step int) {
		hostiletest.Truncations(whole, step, func(n int, b []byte) {
			if err := Gate(b); !errors.Is(err, plugin.ErrRefused) {
				t.Errorf("the first %d bytes of %s: %v", n, name, err)
			}
		})
	}
	try("an honest plugin", hostiletest.Honest(), 1)
	files, err := bundledtest.Files()
	if err != nil {
		t.Fatal(err)
	}
	// The soak tries more of each, the race detector less: see TestHostileAtTheGate.
	prefixes := 4
	switch {
	case soaks():
		prefixes = 50
	case bundledtest.Race:
		prefixes = 2
	}
	for name, wasm := range files {
		try(name, wasm, len(wasm)/prefixes+1)
	}
}

// TestHostileInARun: files that behave until they are used fail with an error of
// the contract, and others go on.
func TestHostileInARun(t *testing.T) {
	h := newHost(t, Options{})
	for _, f := range hostiletest.Corpus() {
		if f.Stage != hostiletest.Run && f.Class != "later" {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			err := runHostile(h, f.Bytes())
			if f.Stage == hostiletest.Harmless {
				if err != nil && !errors.Is(err, plugin.ErrEnded) {
					t.Errorf("it does no harm, and failed: %v", err)
				}
				return
			}
			if !errors.Is(err, plugin.ErrTrapped) && !errors.Is(err, plugin.ErrInvalidBatch) &&
				!errors.Is(err, plugin.ErrFailed) {
				t.Errorf("%v is no error of the contract", err)
			} else if !strings.Contains(err.Error(), f.Message) || !sentence(err) {
				t.Errorf("%v, expected a sentence with %q", err, f.Message)
			}
		})
	}
}

func runHostile(h *Host, wasm []byte) error {
	ctx := context.Background()
	info, err := h.Register(ctx, wasm, false)
	if err != nil {
		return err
	}
	defer func() { _ = h.Unregister(ctx, info.SHA256) }()
	w, err := h.Workload(ctx, info.SHA256)
	if err != nil {
		return err
	}
	s, err := w.Open(ctx, plugin.OpenRequest{KeySlots: 1}, frozenList(info.Manifest.Statements))
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	var b plugin.Batch
	for range 100 {
		if err := s.Fill(&b, 16); err != nil {
			return err
		}
	}
	return nil
}
