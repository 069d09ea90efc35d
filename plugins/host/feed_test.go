package host

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

// TestAManifestOfManyValuesIsRefused: the door of the host has that bound.
func TestAManifestOfManyValuesIsRefused(t *testing.T) {
	manifest := `{"kind":"workload","name":"x","version":"1","statements":[` + strings.Repeat("{},", 200_000) + `{}]}`
	_, err := newHost(t, Options{}).Register(context.Background(),
		plugintest.Guest{Manifest: manifest, Pages: 3 + uint32(len(manifest)>>16)}.Build(), false)
	if !errors.Is(err, plugin.ErrRefused) || !strings.Contains(err.Error(), "more than 200000 values") {
		t.Error(err)
	}
}

// TestFeedIsOnTheStreamsFuel: a guest that computes while it is fed holds up a run
// for no longer than one that does so while it gives operations.
func TestFeedIsOnTheStreamsFuel(t *testing.T) {
	ctx := context.Background()
	// 50 million rounds of at least 4 units: more than a stream's call has, less than others have.
	count := plugintest.Code([]byte{0x03, 0x40, 0x20, 0, 0x41, 1, 0x6a, 0x22, 0}, plugintest.I32(50_000_000),
		[]byte{0x49, 0x0d, 0, 0x0b, 0x41, 0})
	h := newHost(t, Options{})
	info, err := h.Register(ctx, plugintest.Guest{Code: map[string][]byte{"ls_feed": count}}.Build(), false)
	if err != nil {
		t.Fatal(err)
	}
	w, err := h.Workload(ctx, info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	i, err := w.(*workload).registered.module.instantiate(ctx, h)
	if err != nil {
		t.Fatal(err)
	}
	defer i.close()
	s := &stream{instance: i, feed: emptyFeed{}}
	if err := s.feedOnce(0); !errors.Is(err, plugin.ErrOutOfFuel) {
		t.Error(err)
	}
	if _, err := i.export(ctx, "ls_feed", 0, 0); err != nil {
		t.Errorf("the same call with the fuel of others: %v", err)
	}
}

// emptyFeed is a feed of nothing.
type emptyFeed struct{}

func (emptyFeed) Next(*plugin.Batch) error { return plugin.ErrEnded }
func (emptyFeed) Close() error             { return nil }
