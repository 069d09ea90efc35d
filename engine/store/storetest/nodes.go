package storetest

import (
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
)

func nodeDesiredStates(t *testing.T, s Store) {
	ctx := t.Context()
	Must(t, s.SetNodeDesiredState(ctx, "a", nodes.DesiredDrain, "ada"))
	Must(t, s.SetNodeDesiredState(ctx, "b", nodes.DesiredRemove, "ada"))
	Must(t, s.SetNodeDesiredState(ctx, "a", nodes.DesiredRemove, "bob"))
	Must(t, s.SetNodeDesiredState(ctx, "b", nodes.DesiredNone, "bob"))
	Must(t, s.SetNodeDesiredState(ctx, "nobody", nodes.DesiredNone, "bob"))
	states, err := s.NodeDesiredStates(ctx)
	Must(t, err)
	if !maps.Equal(states, map[string]nodes.DesiredState{"a": nodes.DesiredRemove}) {
		t.Errorf("states %v", states)
	}
	if err := s.SetNodeDesiredState(ctx, "", nodes.DesiredDrain, "ada"); err == nil {
		t.Error("something was wanted of a node without a name")
	}
}

func nodeEvents(t *testing.T, s Store) {
	ctx := t.Context()
	at := engine.At(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	first := nodes.NodeEvent{At: at, NodeID: "a", Server: "s1", Kind: nodes.NodeChangedState, To: nodes.NodeActive,
		Reason: "it has\x00 introduced itself"}
	second := nodes.NodeEvent{NodeID: "b", Server: "s2", Kind: nodes.NodeRequested, Reason: "drain", By: "ada"}
	Must(t, s.AppendNodeEvents(ctx, []nodes.NodeEvent{first, second}))
	list, err := s.NodeEvents(ctx, nodes.NodeEventFilter{})
	Must(t, err)
	if len(list) != 2 || list[0].NodeID != "b" || list[0].At.IsZero() || list[0].Seq <= list[1].Seq {
		t.Fatalf("events %+v", list)
	}
	first.Seq, first.Reason = list[1].Seq, "it has introduced itself"
	if list[1] != first {
		t.Errorf("event %+v, want %+v", list[1], first)
	}
	older, err := s.NodeEvents(ctx, nodes.NodeEventFilter{Before: list[0].Seq})
	Must(t, err)
	of, err := s.NodeEvents(ctx, nodes.NodeEventFilter{NodeID: "b"})
	Must(t, err)
	if len(older) != 1 || older[0].NodeID != "a" || len(of) != 1 || of[0].By != "ada" {
		t.Errorf("older %+v, of b %+v", older, of)
	}
	if all, err := s.NodeEvents(ctx, nodes.NodeEventFilter{Before: math.MaxInt64 - 1}); err != nil || len(all) != 2 {
		t.Errorf("before the largest number there is: %+v, %v", all, err)
	}
	for i := range 10 {
		Must(t, s.AppendNodeEvents(ctx, []nodes.NodeEvent{{NodeID: fmt.Sprint(i), Kind: nodes.NodeRefused}}))
	}
	Must(t, s.PruneNodeEvents(ctx, 3))
	left, err := s.NodeEvents(ctx, nodes.NodeEventFilter{Limit: 100})
	Must(t, err)
	if len(left) != 3 || left[0].NodeID != "9" || left[2].NodeID != "7" {
		t.Errorf("left %+v", left)
	}
	Must(t, s.PruneNodeEvents(ctx, 3))
	two, err := s.NodeEvents(ctx, nodes.NodeEventFilter{Limit: 2})
	Must(t, err)
	if len(two) != 2 {
		t.Errorf("limit 2 gave %d", len(two))
	}
}
