package api_test

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/api"
)

func entry(kind, name, version string) plugin.Entry {
	return plugin.Entry{Info: plugin.Info{PluginRef: engine.PluginRef{Kind: kind, Name: name, Version: version,
		SHA256: name + version}}}
}

// TestUnknownNamesAreToldWithTheNearest holds every kind of name, in documents that are valid and in others.
func TestUnknownNamesAreToldWithTheNearest(t *testing.T) {
	t.Parallel()
	here := api.KnownNames{
		Plugins: []plugin.Entry{entry("workload", "mix", "1.0.0"), entry("workload", "sql", "1.0.0"),
			entry("adapter", "postgres", "1.0.0")},
		Connections: []store.Connection{{Name: "playground"}, {Name: "orders db"}},
	}
	for _, c := range []struct{ source, want string }{
		{"name: x\ntarget: {connection: playground, adapter: postgres}\nworkload: {plugin: mix}", ""},
		{"target: {connection: playground}\nworkload: {plugin: mix@1.0.0}", ""},
		{"target:\n  connection: {driver: postgres, dsn: x}\nworkload: {plugin: sql1.0.0}", ""},
		{"name: x\nworkload:\n  plugin: mixx\n", `3 workload.plugin there is no workload plugin "mixx" did you mean "mix"?`},
		{"workload: {plugin: mix@9}", `1 workload.plugin the workload plugin mix has no version "9" ` +
			"without a version the highest one is taken"},
		{"target:\n  table_type: POSTGRES\n  connection: plaground", `3 target.connection there is no connection "plaground" ` +
			`did you mean "playground"?`},
		{"target:\n  connection: zzzzzzzzzzz\n  adapter: postgre", `2 target.connection there is no connection "zzzzzzzzzzz" ` +
			`saved: orders db, playground
3 target.adapter there is no table type "postgre" did you mean "postgres"?`},
		// The document is wrong for other reasons too: a name is told all the same.
		{"nonsense: 1\nmatrix:\n  targets:\n    - {connection: playground}\n    - {connection: orders}",
			`5 matrix.targets[1].connection there is no connection "orders" did you mean "orders db"?`},
		{"target: [", ""},
		{"target: {connection: 5, adapter: []}\nworkload: 7", ""},
	} {
		var lines []string
		for _, f := range here.Unknown(template.References([]byte(c.source))) {
			words := []string{string(rune('0' + f.Line)), f.Field, f.Message, f.Hint}
			lines = append(lines, strings.TrimSpace(strings.Join(words, " ")))
		}
		if got := strings.Join(lines, "\n"); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.source, got, c.want)
		}
	}
	// What cannot be looked up is not judged, and an empty list is no list.
	refs := template.References([]byte("target: {connection: a}\nworkload: {plugin: b}"))
	if found := (api.KnownNames{}).Unknown(refs); found == nil || len(found) > 0 {
		t.Errorf("judged by nothing: %v", found)
	}
}
