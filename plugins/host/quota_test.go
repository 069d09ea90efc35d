package host

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

// growingGuest is a guest of 1 MB that takes so many pages more with each ls_fill, and
// traps where it gets none.
func growingGuest(name string, more int32) []byte { return openGrowingGuest(name, more).Build() }

func openGrowingGuest(name string, more int32) plugintest.Guest {
	g := plugintest.Guest{Manifest: plugintest.ManifestOf(name), Pages: 16,
		Batch: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1)))}
	if more > 0 {
		g.Code = map[string][]byte{"ls_fill": plugintest.Code(plugintest.I32(more), []byte{0x40, 0}, plugintest.I32(-1),
			[]byte{0x46, 0x04, 0x40, 0x00, 0x0b}, plugintest.I64(0))}
	}
	return g
}

// opener opens streams of a plugin, as each run worker of each live run does.
func opener(t *testing.T, h *Host, wasm []byte) func() (plugin.Stream, error) {
	t.Helper()
	info, err := h.Register(context.Background(), wasm, false)
	if err != nil {
		t.Fatal(err)
	}
	w, err := h.Workload(context.Background(), info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return func() (plugin.Stream, error) {
		return w.Open(context.Background(), plugin.OpenRequest{KeySlots: 1}, frozenList(info.Manifest.Statements))
	}
}

// refusedMemory checks an error about memory.
func refusedMemory(t *testing.T, err error, says ...string) {
	t.Helper()
	if !errors.Is(err, plugin.ErrOutOfMemory) || !errors.Is(err, plugin.ErrTrapped) {
		t.Fatalf("%v is not about memory", err)
	}
	e := engine.AsError(err)
	for _, s := range says {
		if !strings.Contains(e.Message+" "+e.Hint, s) {
			t.Errorf("%q %q, expected %q", e.Message, e.Hint, s)
		}
	}
}

func TestInstancesOfOnePluginShareItsMemory(t *testing.T) {
	h := newHost(t, Options{PluginMemory: 4 << 20, PluginsMemory: 6 << 20})
	one, other := opener(t, h, growingGuest("one", 0)), opener(t, h, growingGuest("other", 0))
	var open []plugin.Stream
	begin := func(f func() (plugin.Stream, error)) {
		t.Helper()
		s, err := f()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	for range 4 {
		begin(one)
	}
	_, err := one()
	refusedMemory(t, err, "Plugin one 1.2.3", "hold 4 MB", "limit for one plugin is 4 MB", "--plugin-memory")
	begin(other)
	begin(other)
	_, err = other()
	refusedMemory(t, err, "Plugin other 1.2.3", "holds 2 MB", "all plugins of this process hold 6 MB",
		"limit for all is 6 MB", "--plugins-memory")
	if err := open[0].Close(); err != nil {
		t.Fatal(err)
	}
	begin(other)
	for _, s := range open {
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.quota.byPlugin) > 0 || h.quota.total != 0 {
		t.Errorf("%v and %d bytes are still counted", h.quota.byPlugin, h.quota.total)
	}
}

// TestAGuestThatReportsWantOfMemoryNamesTheQuota: most guests look at what growing their
// memory answers, and say in words of their own that there was none. The limit is the reason.
func TestAGuestThatReportsWantOfMemoryNamesTheQuota(t *testing.T) {
	polite := plugintest.Guest{Manifest: plugintest.ManifestOf("polite"), Pages: 16, Error: "no room",
		Batch: plugintest.Batch(plugintest.Operation(0, plugintest.Int(1))),
		Code: map[string][]byte{"ls_fill": plugintest.Code(plugintest.I32(48), []byte{0x40, 0}, []byte{0x1a},
			plugintest.I64(-1))}}
	h := newHost(t, Options{PluginMemory: 2 << 20})
	s, err := opener(t, h, polite.Build())()
	if err != nil {
		t.Fatal(err)
	}
	var batch plugin.Batch
	refusedMemory(t, s.Fill(&batch, 1), "Plugin polite 1.2.3", "limit for one plugin is 2 MB",
		"In ls_fill it reported: no room", "--plugin-memory")
	if h.quota.total != 0 {
		t.Errorf("%d bytes are counted", h.quota.total)
	}
	// Where memory was not refused, the guest's words are all there is.
	if s, err = opener(t, newHost(t, Options{}), polite.Build())(); err != nil {
		t.Fatal(err)
	}
	if err := s.Fill(&batch, 1); !errors.Is(err, ErrReported) || errors.Is(err, plugin.ErrOutOfMemory) {
		t.Error(err)
	}
}

func TestMemoryThatGrowsIsOfTheQuota(t *testing.T) {
	h := newHost(t, Options{PluginMemory: 6 << 20})
	grows := opener(t, h, growingGuest("grows", 48))
	s, err := grows()
	if err != nil {
		t.Fatal(err)
	}
	var batch plugin.Batch
	if err := s.Fill(&batch, 1); !errors.Is(err, plugin.ErrEnded) {
		t.Fatal(err) // 4 MB
	}
	if h.quota.total < 4<<20 {
		t.Errorf("%d bytes are counted", h.quota.total)
	}
	second, err := grows()
	if err != nil {
		t.Fatal(err)
	}
	refusedMemory(t, second.Fill(&batch, 1), "Plugin grows 1.2.3", "limit for one plugin is 6 MB")
	// What failed is closed, and its memory free again.
	if h.quota.total > 5<<20 {
		t.Errorf("%d bytes are counted", h.quota.total)
	}
	if err := s.Close(); err != nil || h.quota.total != 0 {
		t.Errorf("%v, %d bytes are counted", err, h.quota.total)
	}
}
