package load_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/base/uring"
	"github.com/loadstone-db/loadstone/engine/base/uring/uringtest"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// TestARefusedRing: where the system refuses io_uring, at the start or in the middle of the load, epoll goes on, and
// nothing is lost, done twice or counted wrongly.
func TestARefusedRing(t *testing.T) {
	if err := uring.Probe(); err != nil {
		t.Skip(err)
	}
	for when, want := range map[string]string{
		"never":    "io_uring: workload.io_engine asks for it",
		"at first": "events: io_uring cannot be used: a seccomp profile refuses io_uring_setup",
		"later":    "events: io_uring cannot be used: a seccomp profile refuses io_uring_enter",
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "/proc/self/exe")
			cmd.Env = append(os.Environ(), asRefused+"="+when)
			out, err := cmd.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != want {
				t.Errorf("%v, %q, want %q", err, out, want)
			}
		})
	}
}

// TestRingsEnd: the loops of a group end at once, each on the thread that made its ring, and leave no ring behind.
func TestRingsEnd(t *testing.T) {
	if err := uring.Probe(); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), asRefused+"="+endingRings)
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "0 mappings" {
		t.Errorf("%v, %q", err, out)
	}
}

const (
	endingRings  = "many"
	endingGroups = 48
)

// endRings is the child of TestRingsEnd: it opens and closes groups, several at once, and counts what is mapped then.
func endRings() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := nullpg.Listen(ctx, "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(server.DSN())})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	const atOnce = 4
	for range endingGroups / atOnce {
		groups := make([]*load.Group, 0, atOnce)
		for range atOnce {
			g, err := load.Open(ctx, load.Config{Plan: lookupPlan(), Stream: &lookups{rand.New(rand.NewPCG(1, 2)), 1000},
				Database: db, Sink: &counts{}, Log: zerolog.Nop(), Workload: engine.Workload{IOEngine: engine.IOUring}}, 16, nil)
			if err != nil {
				return err
			}
			g.Start(engine.PhaseMeasurement)
			groups = append(groups, g)
		}
		for _, g := range groups {
			g.Stop()
		}
		for _, g := range groups {
			if err := errors.Join(g.Drain(ctx), g.Close()); err != nil {
				return err
			}
			if g.IOEngine() != string(engine.IOUring) {
				return fmt.Errorf("%s: %s", g.IOEngine(), g.IOReason())
			}
		}
	}
	var mappings int
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) { // loops end after their group
		maps, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			return err
		}
		if mappings = strings.Count(string(maps), "[io_uring]"); mappings == 0 || time.Now().After(end) {
			break
		}
	}
	fmt.Println(mappings, "mappings")
	return nil
}

// refusedBatches of operations are executed, which takes a while.
const refusedBatches = 500

// loadWhileRefused is the child of TestARefusedRing and TestRingsEnd.
func loadWhileRefused(when string) int {
	act := func() error { return loadRefused(when) }
	if when == endingRings {
		act = endRings
	}
	if err := act(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func loadRefused(when string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if when == "at first" {
		if err := uringtest.Forbid(unix.EPERM); err != nil {
			return err
		}
	}
	server, err := nullpg.Listen(ctx, "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(server.DSN())})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	sink := &counts{}
	g, err := load.Open(
		ctx,
		load.Config{Plan: lookupPlan(), Stream: &limited{&lookups{rand.New(rand.NewPCG(1, 2)), 1000}, refusedBatches},
			Database: db, Sink: sink, Log: zerolog.Nop(),
			Workload: engine.Workload{IOEngine: engine.IOUring, ConcurrentConnections: 24}},
		24,
		nil,
	)
	if err != nil {
		return err
	}
	g.Start(engine.PhaseMeasurement)
	for g.Totals().Started < 1000 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if when == "later" {
		if err := uringtest.Forbid(unix.EPERM); err != nil {
			return err
		}
	}
	g.SetTarget(30, 0) // those that come enter a loop like the others
	select {
	case <-g.Done():
	case <-ctx.Done():
	}
	if err := errors.Join(g.Drain(ctx), g.Close()); err != nil {
		return err
	}
	if n := g.Totals(); n.Failed > 0 || n.Succeeded != refusedBatches*64 || n.Recorded != n.Started ||
		n.Scheduled != n.Started || n.Connections.Lost > 0 || sink.executions != n.Started {
		return fmt.Errorf("%+v, %+v", n, sink)
	}
	fmt.Printf("%s: %s\n", g.IOEngine(), g.IOReason())
	return nil
}
