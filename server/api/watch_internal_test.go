package api

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/watch"
)

// TestEventsHaveTheFieldsOfTheDesign: {"type": "SNAPSHOT", "data": […]}, then {"type": "EVENT", "op": …, "key": …} with
// the row that there is, beside event and rows.
func TestEventsHaveTheFieldsOfTheDesign(t *testing.T) {
	v, err := watch.Parse("WATCH SELECT id, state, capacity FROM workers WHERE state = 'ACTIVE'")
	if err != nil {
		t.Fatal(err)
	}
	shown := func(states ...catalog.WorkerState) watch.ViewRows {
		t.Helper()
		var c catalog.Contents
		for i, s := range states {
			c.Workers = append(c.Workers, catalog.Worker{Host: "w" + string(rune('1'+i)), Slots: 4, State: s})
		}
		rows, err := v.Apply(t.Context(), memory.Limits{}.Open(memory.Holder{}, 0, nil),
			catalog.FromContents(c).Rows()["workers"])
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	before, after := shown(catalog.Active, catalog.Active), shown(catalog.Unreachable, catalog.Active, catalog.Active)
	events := append([]watch.Event{v.SnapshotEvent(before, "1"), v.SnapshotEvent(nil, "1")},
		watch.Changes(before, after, "2")...)
	var out bytes.Buffer
	if err := sendEvents(&out, events); err != nil {
		t.Fatal(err)
	}
	const w1, w2, w3 = `{"capacity":4,"id":"w1","state":"ACTIVE"}`, `{"capacity":4,"id":"w2","state":"ACTIVE"}`,
		`{"capacity":4,"id":"w3","state":"ACTIVE"}`
	var got []string
	for block := range strings.SplitSeq(strings.TrimSpace(out.String()), "\n\n") {
		_, data, _ := strings.Cut(block, "data: ")
		var e struct {
			Event, Type, Op, Key string
			Rows                 []json.RawMessage
			Data                 json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		text := e.Event + " " + e.Type + " " + e.Op + " " + e.Key + " " + string(e.Data) + " "
		for _, r := range e.Rows {
			text += string(r)
		}
		got = append(got, text)
	}
	want := []string{"SNAPSHOT SNAPSHOT   [" + w1 + "," + w2 + "] " + w1 + w2, "SNAPSHOT SNAPSHOT   [] ",
		"DROP EVENT DROP w1  " + w1, "CREATE EVENT CREATE w3 " + w3 + " " + w3}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for key, want := range map[string]string{"00000000000000000017": "17", "00000000000000000017node-a": "17/node-a",
		"00000000000000000000": "0", "w1": "w1", "": ""} {
		if got := catalog.ShownKey(key); got != want {
			t.Errorf("%q is shown as %q", key, got)
		}
	}
}
