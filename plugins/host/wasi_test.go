package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

// running starts a guest that does nothing, for its memory and fuel.
func running(t *testing.T, log zerolog.Logger) (*instance, *hostEnv) {
	t.Helper()
	ctx := context.Background()
	h := newHost(t, Options{})
	h.log = log
	file := plugintest.Guest{}.Build()
	info, err := h.Register(ctx, file, false)
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
	t.Cleanup(i.close)
	return i, i.ctx.Value(hostEnvKey{}).(*hostEnv)
}

// TestHostFunctions: what guests ask of the host is bounded, and paid for.
func TestHostFunctions(t *testing.T) {
	var log bytes.Buffer
	i, s := running(t, zerolog.New(&log))
	const at, result = 4096, 64
	piece := func(n int, ptr, length uint32) {
		b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, ptr), length)
		i.memory.Write(uint32(at+8*n), b)
	}
	const pages = 3 << 16
	i.memory.Write(8192, []byte("hello\nworld\n"))
	piece(0, 8192, 12)
	piece(1, 0, pages)
	piece(2, 0, pages)
	// What is printed of the memory holds lines of the manifest besides two of its own.
	whole, _ := i.memory.Read(0, maxWritten)
	lines := 2 + int64(bytes.Count(whole, []byte("\n")))
	for _, c := range []struct {
		name  string
		call  func(*hostEnv) uint32
		want  uint32
		spent int64
	}{
		{"print", fdw(i, 1, at, 1, result), 0, (8+12)*unitsPerByte + 2*unitsPerLine},
		{"print more than is taken", fdw(i, 2, at, 3, result), 0, (24+maxWritten)*unitsPerByte + lines*unitsPerLine},
		{"print to a file", fdw(i, 3, at, 1, result), errnoBadFile, 0},
		{"print many pieces", fdw(i, 1, at, 1<<31, result), errnoInvalid, 0},
		{"print pieces outside", fdw(i, 1, pages-4, 1, result), errnoFault, 8 * unitsPerByte},
		{"random", rnd(i, at, 100), 0, 100 * unitsPerByte},
		{"much random", rnd(i, 0, 1<<20), errnoInvalid, 0},
		{"random outside", rnd(i, pages-4, 100), errnoFault, 100 * unitsPerByte},
		{"poll nothing", poll(i, at, at, 0), errnoInvalid, 0},
		{"poll so much that its size overflows", poll(i, at, at, 0x05555556), errnoInvalid, 0},
		{"poll outside", poll(i, pages-4, at, 1), errnoFault, 48 * unitsPerByte},
		{"poll", poll(i, at, 8192, 2), 0, 96 * unitsPerByte},
	} {
		i.tank.refuel(1_000_000, time.Second)
		if got := c.call(s); got != c.want {
			t.Errorf("%s: %d, expected %d", c.name, got, c.want)
		}
		if spent := 1_000_000 - i.tank.remaining(); spent != c.spent {
			t.Errorf("%s: spent %d, expected %d", c.name, spent, c.spent)
		}
	}
	if n, _ := i.memory.ReadUint32Le(result); n != 12+2*pages {
		t.Errorf("%d bytes count as written", n)
	}
	if !strings.Contains(log.String(), `"guest":"hello"`) || !strings.Contains(log.String(), `"guest":"world"`) {
		t.Error(log.String())
	}
	before := s.ticks
	if errno := clockTime(s, i.memory, []uint64{1, 0, at}); errno != 0 || s.ticks != before+1 {
		t.Errorf("errno %d, %d ticks", errno, s.ticks-before)
	}
}

func fdw(i *instance, args ...uint64) func(*hostEnv) uint32 {
	return func(s *hostEnv) uint32 { return fdWrite(s, i.memory, args) }
}

func rnd(i *instance, args ...uint64) func(*hostEnv) uint32 {
	return func(s *hostEnv) uint32 { return randomGet(s, i.memory, args) }
}

func poll(i *instance, in, out, n uint64) func(*hostEnv) uint32 {
	return func(s *hostEnv) uint32 { return pollOneoff(s, i.memory, []uint64{in, out, n, 96}) }
}

// TestLogFlood: a guest that logs without end runs out of fuel, and few of its lines are written.
func TestLogFlood(t *testing.T) {
	ctx := context.Background()
	var log bytes.Buffer
	h := newHost(t, Options{CallFuel: 20_000_000})
	h.log = zerolog.New(&log)
	flood := plugintest.Code([]byte{0x03, 0x40}, plugintest.I32(1), plugintest.I32(0), plugintest.I32(1<<30),
		plugintest.Call(0), []byte{0x0c, 0, 0x0b, 0})
	_, err := h.Register(ctx, plugintest.Guest{Imports: [][2]string{{"ls", "log"}}, ImportType: plugintest.TypeLog,
		Code: map[string][]byte{"ls_describe": flood}}.Build(), false)
	if !errors.Is(err, plugin.ErrOutOfFuel) || !errors.Is(err, plugin.ErrRefused) {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "\n"); n > 2*logBurst {
		t.Errorf("%d lines were written", n)
	}
}

// TestLastWords: what a guest logs as an error before it traps is its explanation.
func TestLastWords(t *testing.T) {
	ctx := context.Background()
	h := newHost(t, Options{})
	log := func(level, at, n int32) []byte {
		return plugintest.Code(plugintest.I32(level), plugintest.I32(at), plugintest.I32(n), plugintest.Call(0))
	}
	const begin = 1024 // where the manifest lies
	code := plugintest.Code(log(3, begin+2, 4), log(1, begin, 1), plugintest.Unreachable)
	_, err := h.Register(ctx, plugintest.Guest{Imports: [][2]string{{"ls", "log"}}, ImportType: plugintest.TypeLog,
		Code: map[string][]byte{"ls_describe": code}}.Build(), false)
	if err == nil || !strings.Contains(err.Error(), "unreachable. It said: kind") {
		t.Error(err)
	}
}

// TestWhatAPluginLogsReachesItsRun: from information on, with the level, and with how many lines the limit left out.
func TestWhatAPluginLogsReachesItsRun(t *testing.T) {
	ctx := context.Background()
	h := newHost(t, Options{})
	log := func(level, at, n int32) []byte {
		return plugintest.Code(plugintest.I32(level), plugintest.I32(at), plugintest.I32(n), plugintest.Call(0))
	}
	const begin = 1024 // where the manifest lies: {"kind" …
	var lines [][]byte
	for range logBurst + 5 {
		lines = append(lines, log(2, begin+2, 4))
	}
	code := plugintest.Code(append(append([][]byte{log(0, begin+2, 4), log(1, begin+2, 4)}, lines...),
		plugintest.Unreachable)...)
	info, err := h.Register(ctx, plugintest.Guest{Imports: [][2]string{{"ls", "log"}}, ImportType: plugintest.TypeLog,
		Code: map[string][]byte{"ls_fill": code}}.Build(), false)
	if err != nil {
		t.Fatal(err)
	}
	w, err := h.Workload(ctx, info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	var got []engine.LogLevel
	dropped := 0
	s, err := w.Open(ctx, plugin.OpenRequest{KeySlots: 1, Log: func(level engine.LogLevel, text string, n int) {
		if text != "kind" {
			t.Errorf("it logged %q", text)
		}
		got = append(got, level)
		dropped += n
	}}, frozenList(info.Manifest.Statements))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Fill(&plugin.Batch{}, 1); !errors.Is(err, plugin.ErrTrapped) {
		t.Fatal(err)
	}
	// The line for debugging took one of the burst.
	if len(got) != logBurst-1 || got[0] != engine.LogInfo || got[1] != engine.LogWarning {
		t.Errorf("%d lines: %v, %d dropped", len(got), got, dropped)
	}
}
