package host

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// Instructions of the guests below.
var (
	growMemory = []byte{0x40, 0}
	drop       = []byte{0x1a}
	endLoop    = []byte{0x0c, 0, 0x0b, 0} // again, end, unreachable
)

// guestOf registers a guest and returns what makes instances of it.
func guestOf(t *testing.T, h *Host, g plugintest.Guest) func() *instance {
	t.Helper()
	info, err := h.Register(context.Background(), g.Build(), false)
	if err != nil {
		t.Fatal(err)
	}
	c := h.find(func(r *registered) bool { return r.info.SHA256 == info.SHA256 }).module
	return func() *instance {
		i, err := c.instantiate(context.Background(), h)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
}

// whole is all memory of an instance.
func whole(t *testing.T, i *instance) []byte {
	t.Helper()
	b, ok := i.appendMemory(nil, 0, i.memory.Size())
	if !ok {
		t.Fatal("the instance is closed")
	}
	return b
}

// TestAMemoryIsGivenBackOnlyWhenNoCallRuns closes instances whose guest writes all over its memory,
// and opens others meanwhile: none of them may ever see a byte of it.
func TestAMemoryIsGivenBackOnlyWhenNoCallRuns(t *testing.T) {
	const pages = 16
	h := newHost(t, Options{})
	scribbles := guestOf(t, h, plugintest.Guest{Manifest: plugintest.ManifestOf("scribbles"), Pages: pages,
		Code: map[string][]byte{"ls_fill": plugintest.Code([]byte{0x03, 0x40}, plugintest.I32(0), plugintest.I32(0xaa),
			plugintest.I32(pages<<16), []byte{0xfc, 0x0b, 0}, endLoop)}})
	quiet := guestOf(t, h, plugintest.Guest{Manifest: plugintest.ManifestOf("quiet"), Pages: pages})
	first := quiet()
	want := whole(t, first)
	first.close()
	lent, rounds, seen := h.mappings.Lent(), 10, 0
	for range rounds {
		a := scribbles()
		began, ended := make(chan struct{}, 1), make(chan error, 1)
		a.tank.watch = func(computes bool) {
			if computes {
				select {
				case began <- struct{}{}:
				default:
				}
			}
		}
		go func() {
			_, err := a.call(a.fillFn, abi.ExportFill, 100_000_000, 1)
			ended <- err
		}()
		<-began
		a.close()
		a.close()
		if _, ok := a.appendMemory(nil, 0, 1); ok || a.write(0, []byte{1}) {
			t.Fatal("the memory of a closed instance can be used")
		}
		if _, err := a.call(a.fillFn, abi.ExportFill, 1000, 1); !errors.Is(err, plugin.ErrFailed) {
			t.Fatalf("a closed instance runs: %v", err)
		}
		for over := false; !over; {
			var others []*instance
			for range 3 {
				others = append(others, quiet())
			}
			select {
			case err := <-ended:
				if over = true; !errors.Is(err, plugin.ErrOutOfFuel) {
					t.Fatal(err)
				}
			default:
				seen++
			}
			for _, b := range others {
				if got := whole(t, b); !bytes.Equal(got, want) {
					t.Fatal("an instance has the memory of one that still runs")
				}
				b.close()
			}
		}
	}
	if seen < rounds {
		t.Errorf("only %d times was an instance looked at while a closed one ran", seen)
	}
	if n := h.mappings.Lent(); n != lent || h.quota.total != 0 {
		t.Errorf("%d mappings are in use, and %d bytes counted", n-lent, h.quota.total)
	}
}

// TestClosingTheModuleGivesNoMemoryBack: wazero frees the memories of all modules when the runtime is
// closed, whoever runs.
func TestClosingTheModuleGivesNoMemoryBack(t *testing.T) {
	h := newHost(t, Options{})
	i := guestOf(t, h, plugintest.Guest{Manifest: plugintest.ManifestOf("quiet")})()
	lent := h.mappings.Lent()
	if err := i.guest.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := h.mappings.Lent(); n != lent || lent == 0 && mapsMemory() {
		t.Errorf("%d mappings are in use, %d were", n, lent)
	}
	i.close()
	if n := h.mappings.Lent(); n != 0 || h.quota.total != 0 {
		t.Errorf("%d mappings are in use, %d bytes are counted", n, h.quota.total)
	}
}

// mapsMemory reports a system that has mappings for memories.
func mapsMemory() bool { return runtime.GOOS == "linux" }

// TestAStreamIsClosedWhileItIsFilled, as an abandoned load does: what is running fails, and
// its feed is closed once, after it.
func TestAStreamIsClosedWhileItIsFilled(t *testing.T) {
	h := newHost(t, Options{})
	for round := range 20 {
		open := opener(t, h, growingGuest("closed", 1))
		opened, err := open()
		if err != nil {
			t.Fatal(err)
		}
		s := opened.(*stream)
		f := &countedFeed{}
		s.feed = f
		ended := make(chan error, 1)
		began := make(chan struct{})
		go func() {
			var batch plugin.Batch
			for n := 0; ; n++ {
				if n == round {
					close(began)
				}
				s.ended = false // the guest gives nothing, and is asked again
				if err := s.Fill(&batch, 1); !errors.Is(err, plugin.ErrEnded) || s.refs.state.Load()&1 == 1 {
					ended <- err
					return
				}
			}
		}()
		<-began
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err == nil {
				t.Error("a closed stream gives batches")
			}
		case <-time.After(time.Minute):
			t.Fatal("a closed stream is filled for ever")
		}
		if n := h.mappings.Lent(); n != 0 || h.quota.total != 0 || f.closed != 1 {
			t.Fatalf("%d mappings are in use, %d bytes are counted, the feed was closed %d times", n, h.quota.total, f.closed)
		}
	}
}

type countedFeed struct{ closed int }

func (f *countedFeed) Next(*plugin.Batch) error { return plugin.ErrEnded }
func (f *countedFeed) Close() error             { f.closed++; return nil }

// TestWhatAGuestSaidOutlivesItsMemory: a manifest and an answer are copies, although the next instance
// writes where they lay.
func TestWhatAGuestSaidOutlivesItsMemory(t *testing.T) {
	h := newHost(t, Options{})
	g := plugintest.Guest{Manifest: plugintest.ManifestOf("said"), Answer: `{"said":"this"}`}
	info, err := h.Register(context.Background(), g.Build(), false)
	if err != nil {
		t.Fatal(err)
	}
	r := h.find(func(r *registered) bool { return r.info.SHA256 == info.SHA256 })
	answer, err := r.ask(context.Background(), []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.pool.drop()
	other := guestOf(t, h, plugintest.Guest{Manifest: plugintest.ManifestOf("other"), Pages: 16})()
	defer other.close()
	if !other.write(0, bytes.Repeat([]byte{0xaa}, 16<<16)) {
		t.Fatal("nothing was written")
	}
	if string(answer) != g.Answer {
		t.Errorf("the answer is %q now", answer)
	}
	if info.Name != "said" || info.Manifest.Name != "said" {
		t.Errorf("the manifest is of %q now", info.Name)
	}
}

// TestMemoriesWithoutMappings: where the system maps nothing, memories are Go's, and all is as it was.
func TestMemoriesWithoutMappings(t *testing.T) {
	h := newHost(t, Options{PluginMemory: 6 << 20})
	h.mappings = newMappingPool(1 << 50) // more addresses than there are
	open := opener(t, h, growingGuest("grows", 48))
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	i := s.(*stream).instance
	if i.linear.mapped != nil {
		t.Fatal("it has a mapping")
	}
	if !i.write(1<<20-4, []byte("kept")) {
		t.Fatal("nothing was written")
	}
	var batch plugin.Batch
	if err := s.Fill(&batch, 1); !errors.Is(err, plugin.ErrEnded) {
		t.Fatal(err) // 4 MB
	}
	if got := whole(t, i); len(got) != 4<<20 || string(got[1<<20-4:1<<20]) != "kept" {
		t.Errorf("%d bytes after growing, %q", len(got), got[1<<20-4:1<<20])
	}
	second, err := open()
	if err != nil {
		t.Fatal(err)
	}
	refusedMemory(t, second.Fill(&batch, 1), "Plugin grows 1.2.3", "limit for one plugin is 6 MB")
	if err := s.Close(); err != nil || h.quota.total != 0 {
		t.Errorf("%v, %d bytes are counted", err, h.quota.total)
	}
}

// TestMemoryThatTheSystemRefuses: growing fails with the reason, and counts nothing.
func TestMemoryThatTheSystemRefuses(t *testing.T) {
	if !mapsMemory() {
		t.Skip("memories are Go's here")
	}
	h := newHost(t, Options{})
	h.mappings = newMappingPool(2 << 20)
	s, err := opener(t, h, growingGuest("refused", 48))()
	if err != nil {
		t.Fatal(err)
	}
	var batch plugin.Batch
	refusedMemory(t, s.Fill(&batch, 1), "Plugin refused 1.2.3", "it needs 4 MB", "the system refuses memory", "ulimit")
	if h.quota.total != 0 {
		t.Errorf("%d bytes are counted", h.quota.total)
	}
}

// TestAPluginThatReachesItsOwnLimitIsTold names which limit it was, and that or how it can be raised.
func TestAPluginThatReachesItsOwnLimitIsTold(t *testing.T) {
	var batch plugin.Batch
	s, err := opener(t, newHost(t, Options{}), growingGuest("greedy", 512))()
	if err != nil {
		t.Fatal(err)
	}
	refusedMemory(t, s.Fill(&batch, 1), "Plugin greedy 1.2.3", "asked for 33 MB", "may have 32 MB", "ls_fill",
		"cannot be raised")
	polite := plugintest.Guest{Manifest: plugintest.ManifestOf("polite"), MaxPages: 32, Pages: 16, Error: "no room",
		Code: map[string][]byte{"ls_fill": plugintest.Code(plugintest.I32(17), growMemory, drop, plugintest.I64(-1))}}
	if s, err = opener(t, newHost(t, Options{}), polite.Build())(); err != nil {
		t.Fatal(err)
	}
	refusedMemory(t, s.Fill(&batch, 1), "Plugin polite 1.2.3", "asked for 3 MB", "declares at most 2 MB", "no room",
		"Build the plugin")
	// Within its own limit it grows.
	polite.MaxPages = 33
	if s, err = opener(t, newHost(t, Options{}), polite.Build())(); err != nil {
		t.Fatal(err)
	}
	if err := s.Fill(&batch, 1); !errors.Is(err, ErrReported) || errors.Is(err, plugin.ErrOutOfMemory) {
		t.Error(err)
	}
}

// TestAMemoryThatGrowsLeavesNoGarbage: garbage of guests that grow page by page was what held others up.
func TestAMemoryThatGrowsLeavesNoGarbage(t *testing.T) {
	if !mapsMemory() {
		t.Skip("memories are Go's here, which move")
	}
	h := newHost(t, Options{})
	i := guestOf(t, h, openGrowingGuest("steps", 1))()
	defer i.close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	at := i.linear.mapped
	for pages := uint32(17); pages <= abi.MaxMemoryPages; pages++ {
		if _, err := i.call(i.fillFn, abi.ExportFill, fuelFor(1), 1); err != nil || i.memory.Size() != pages*abi.PageSize {
			t.Fatalf("%d bytes, %v", i.memory.Size(), err)
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 || at != i.linear.mapped {
		t.Errorf("growing to 32 MB left %d bytes to the collector", got)
	}
	if h.quota.total != abi.MaxMemoryPages*abi.PageSize {
		t.Errorf("%d bytes are counted", h.quota.total)
	}
}
