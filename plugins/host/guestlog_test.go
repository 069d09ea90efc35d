package host

import (
	"context"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/plugin/plugintest"
)

// TestWhatAnAdapterLogsReachesItsCaller: in the call in which it was logged, with its level, and
// without what would move a terminal's cursor.
func TestWhatAnAdapterLogsReachesItsCaller(t *testing.T) {
	ctx := context.Background()
	h := newHost(t, Options{})
	const at = 64 // beside everything the guest has
	store := func(to int32, b byte) []byte {
		return plugintest.Code(plugintest.I32(to), plugintest.I32(int32(b)), []byte{0x3a, 0, 0}) // i32.store8
	}
	var code [][]byte
	for n, b := range []byte("\x1b[2Jhi\u202e") {
		code = append(code, store(at+int32(n), b))
	}
	code = append(code, plugintest.I32(2), plugintest.I32(at), plugintest.I32(9), plugintest.Call(0), plugintest.I64(0))
	info, err := h.Register(ctx, plugintest.Guest{Manifest: `{"kind":"adapter","name":"mysql","driver":"postgres"}`,
		Answer: "{}", Imports: [][2]string{{"ls", "log"}},
		ImportType: plugintest.TypeLog, Code: map[string][]byte{"ls_call": plugintest.Code(code...)}}.Build(), false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := h.Adapter(ctx, info.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context) {
		t.Helper()
		var answer map[string]any
		if err := a.Call(ctx, map[string]string{"op": "session"}, &answer); err != nil {
			t.Fatal(err)
		}
	}
	var first, second []plugin.LogLine
	ask(plugin.WithLog(ctx, func(l plugin.LogLine) { first = append(first, l) }))
	ask(ctx) // of nobody, on the same instance
	ask(plugin.WithLog(ctx, func(l plugin.LogLine) { second = append(second, l) }))
	want := plugin.LogLine{Plugin: "mysql", Level: engine.LogWarning, Text: "[2Jhi"}
	if len(first) != 1 || first[0] != want || len(second) != 1 || second[0] != want {
		t.Errorf("%+v, %+v", first, second)
	}
}
