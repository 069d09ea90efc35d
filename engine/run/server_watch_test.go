package run

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
)

// identified is a connection to a server that a test plays.
type identified func(ctx context.Context) (engine.ServerIdentity, error)

func (f identified) Identity(ctx context.Context) (engine.ServerIdentity, error) { return f(ctx) }

// TestTheServerThatTookOverIsSeen: what watches which server answers leaves a connection into a black hole, one to an old
// primary that lives on, and a target that could not be opened.
func TestTheServerThatTookOverIsSeen(t *testing.T) {
	for name, old := range map[string]identified{
		"black hole": func(ctx context.Context) (engine.ServerIdentity, error) {
			<-ctx.Done()
			return engine.ServerIdentity{}, ctx.Err()
		},
		"it lives on": func(context.Context) (engine.ServerIdentity, error) {
			return engine.ServerIdentity{Address: "a"}, nil
		},
		"": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newServerWatch()
			ctx, stop := context.WithCancel(t.Context())
			var routines sync.WaitGroup
			opened, closed := 0, 0
			routines.Go(func() {
				w.ask(ctx, clock.New(time.Now), func() (askedServer, error) {
					if opened++; opened == 1 && old == nil {
						return askedServer{}, errors.New("the store is away")
					}
					answers := old
					if opened > 1 {
						answers = func(context.Context) (engine.ServerIdentity, error) {
							return engine.ServerIdentity{Address: "b"}, nil
						}
					}
					return askedServer{answers, func() { closed++ }}, nil
				})
			})
			time.Sleep(45 * time.Second)
			stop()
			routines.Wait()
			seen := w.seen()
			if len(seen) == 0 || seen[len(seen)-1].Address != "b" {
				t.Errorf("%s: %+v", name, seen)
			}
			want := opened
			if old == nil {
				want--
			}
			if closed != want {
				t.Errorf("%s: %d opened, %d closed", name, opened, closed)
			}
		})
	}
}

// TestOperationsUnderWay: an open loop with nothing due has none under way; a closed one has one on each connection.
func TestOperationsUnderWay(t *testing.T) {
	var p engine.LiveState
	p.Connections.Active = 50
	open := engine.Scenario{Workload: engine.Workload{LoadMode: engine.LoadQPS}}
	if n := clientInFlight(open, p); n != 0 {
		t.Errorf("%v in an open loop", n)
	}
	search := engine.Scenario{Workload: engine.Workload{LoadMode: engine.LoadFindMax},
		FindMax: engine.FindMax{Unit: engine.FindMaxRate}}
	if n := clientInFlight(search, p); n != 0 {
		t.Errorf("%v in a search for a rate", n)
	}
	if n := clientInFlight(engine.Scenario{}, p); n != 50 {
		t.Errorf("%v in a closed loop", n)
	}
}
