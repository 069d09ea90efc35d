// Command nodes measures what a server makes of many nodes, and nodes of a server: over
// real gRPC streams with TLS on loopback, between processes as they are in production.
//
//	go run ./nodes [-rounds 5] [FIGURE...]
//
// Each figure starts servers (the binary, with their own Postgres) and nodes of its own, in a folder
// that is removed afterwards, and prints what was measured beside the goal. Nodes live in
// this process, each with its own identity, listener, stream and spool, so that the server's processor
// time and memory can be measured alone; where a node is killed it is the binary. The figures:
//
//	start      START reaches every node (-nodes, 50) whose load is real, and STOP ends what all issue
//	lost       how soon a server knows of streams (-nodes, 20) that are reset, of links that swallow everything,
//	           and of processes that are killed
//	many       simulated nodes (-nodes, 1000) that report once a second: processor time and memory
//	           of the server, and how long its tick takes
//	reconnect  all streams (-nodes, 500) break at once in a run
//	pairs      two nodes beside a server against the node of a server's own process, on a Postgres, in pairs
//	outflow    a server that sends the metrics of its runs by remote-write against one that does not, in pairs
//	sockets    what 200 pages that follow a run cost the server, some of which stop to read
//	spool      10 GB of records through a node with a budget of 2 GB, and how fast they are fetched
//	queries    20 continuous queries, or rules, over every execution of a run against none, in pairs
//	stops      from the row that breaks a rule until the run has ended
//	takeover   the server that owns a run on real nodes (-nodes, 4) is killed; another one goes on with it
//
// Simulated nodes are worker.Node with a load that is played: it counts and records
// what an open loop at its rate would have, and asks nothing of a database.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/loadstone-db/loadstone/bench/measure"
)

// bench is one figure while it is measured.
type bench struct {
	loadstone string
	rounds    int
	seconds   int
	nodes     int // 0: as many as the figure is about
	env       []string
	dir       string
	closers   []func()
}

// figure is one that can be measured.
type figure struct {
	name    string
	measure func(ctx context.Context, b *bench) error
}

var figures = []figure{
	{"start", start},
	{"lost", lost},
	{"many", many},
	{"reconnect", reconnect},
	{"takeover", takeover},
	{"pairs", pairs},
	{"outflow", outflow},
	{"sockets", sockets},
	{"spool", spool},
	{"queries", queries},
	{"stops", stops},
}

func main() {
	var b bench
	flag.StringVar(&b.loadstone, "loadstone", "../bin/loadstone", "the binary (make build makes it)")
	flag.IntVar(&b.rounds, "rounds", 0, "rounds of a figure; 0 is as many as it takes")
	flag.IntVar(&b.seconds, "seconds", 0, "how long a figure measures; 0 is as long as it takes")
	flag.IntVar(&b.nodes, "nodes", 0, "how many nodes; 0 is as many as the figure is about")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, b, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// run measures the figures that are named, or all.
func run(ctx context.Context, b bench, names []string) (err error) {
	if b.loadstone, err = filepath.Abs(b.loadstone); err != nil {
		return fmt.Errorf("finding the binary: %w", err)
	}
	if _, err := os.Stat(b.loadstone); err != nil {
		return fmt.Errorf("finding the binary (make build makes it): %w", err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(figures, func(f figure) bool { return f.name == name }) {
			var known []string
			for _, f := range figures {
				known = append(known, f.name)
			}
			return fmt.Errorf("%s is none of the figures %s", name, strings.Join(known, ", "))
		}
	}
	fmt.Printf("Machine: %s, %d CPUs, %s. Load average at the beginning: %.1f.\n", measure.Machine(), runtime.NumCPU(),
		time.Now().Format(time.DateOnly), measure.LoadAverage())
	var failed error
	for _, f := range figures {
		if len(names) > 0 && !slices.Contains(names, f.name) {
			continue
		}
		fmt.Printf("\n%s (load average %.1f)\n", f.name, measure.LoadAverage())
		if err := one(ctx, b, f); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", f.name, err))
			fmt.Printf("  not measured: %v\n", err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// one measures a figure in a folder of its own.
func one(ctx context.Context, b bench, f figure) (err error) {
	if b.dir, err = os.MkdirTemp("", "loadstone-nodes-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	// The user that runs Postgres must reach the folder.
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return fmt.Errorf("opening the folder: %w", err)
	}
	defer func() {
		b.close()
		err = errors.Join(err, os.RemoveAll(b.dir))
	}()
	return f.measure(ctx, &b)
}

// onClose runs f when the figure is measured; what was opened last is closed first.
func (b *bench) onClose(f func()) { b.closers = append(b.closers, f) }

func (b *bench) close() {
	for _, f := range slices.Backward(b.closers) {
		f()
	}
	b.closers = nil
}

// or is what a flag says, and otherwise what the figure takes.
func (b *bench) or(flag, otherwise int) int {
	if flag > 0 {
		return flag
	}
	return otherwise
}

// elsewhere has a server bear no load in its own process.
var elsewhere = []string{"--local-capacity", "0"}

// server starts a server with a data directory of its own.
func (b *bench) server(ctx context.Context, name string, args ...string) (*server, error) {
	dir, err := b.folder(name)
	if err != nil {
		return nil, err
	}
	return b.serve(ctx, dir, args...)
}

// folder makes one in the figure's.
func (b *bench) folder(name string) (string, error) {
	dir := filepath.Join(b.dir, name)
	return dir, os.MkdirAll(dir, 0o755)
}

// tell prints a line of a figure: what, how much, and the goal.
func tell(what, value, goal string) {
	if goal != "" {
		goal = "  (goal: " + goal + ")"
	}
	fmt.Printf("  %s: %s%s\n", what, value, goal)
}
