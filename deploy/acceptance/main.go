// Command acceptance goes through the checklist for runs on several nodes, line by line: each is PASS or FAIL
// with what was seen. It starts the program as operators do (a server and two nodes in processes of their own, on a
// real Postgres), speaks to it over its API and its socket, and looks for what it says in the control store.
//
//	go run ./acceptance -program ../bin/loadstone
//
// With -prove it breaks something real before each line and expects that line to fail: a check that
// cannot fail shows nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/loadstone-db/loadstone/deploy/program"
)

// line is one of the checklist.
type line struct {
	name string
	// against says what the line is held to, and what stands in for what cannot be had here.
	against string
	check   func(ctx context.Context, s *stage) (seen string, err error)
	// spoil breaks what the line looks at; for -prove.
	spoil spoil
}

// spoil is what is done to a stage so that a line has something to find.
type spoil string

const (
	intact       spoil = ""
	startAtOnce  spoil = "the run is started as it is created"
	oneNode      spoil = "one node instead of two"
	frozenStart  spoil = "a node is stopped (SIGSTOP) just before START"
	frozenLoad   spoil = "a node is stopped (SIGSTOP) as soon as both have begun"
	silentLoad   spoil = "one of the two nodes is killed as soon as both have begun"
	noWarmup     spoil = "the run has a second of warm-up instead of three"
	frozenStop   spoil = "a node is stopped (SIGSTOP) just before STOP"
	endsByItself spoil = "the run ends before it is stopped"
	leftBehind   spoil = "a node is not told to end"
)

var checklist = []line{
	{"Run creation", "run_status has a row with status PREPARED", created, startAtOnce},
	{"Worker registration", "worker_heartbeats has both run workers, on two nodes", registered, oneNode},
	{"START propagation", "both RUNNING within 2 s of the START event", begun, frozenStart},
	{"Metrics flow", "worker_metrics_snapshots grows by both for 3 s", flowing, frozenLoad},
	{"Aggregation", "the socket's rate is the sum of both run workers', and what the target counts", aggregated,
		silentLoad},
	{"Phase transition", "WARMUP for 3 s, then MEASUREMENT (0.5 s either way)", phased, noWarmup},
	{"STOP propagation", "both have ended within 10 s of STOP, and no session is left on the target", stopped, frozenStop},
	{"Final status", "run_status has CANCELLED", cancelled, endsByItself},
	{"Cleanup", "all processes end with 0 on SIGTERM, and none is left", cleaned, leftBehind},
}

func main() {
	binary := flag.String("program", "../bin/loadstone", "the binary that is tried")
	prove := flag.Bool("prove", false, "break something before each line, and expect that it fails")
	flag.Parse()
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer end()
	if err := try(ctx, *binary, *prove); err != nil {
		fmt.Fprintln(os.Stderr, "acceptance:", err)
		os.Exit(1)
	}
}

func try(ctx context.Context, binary string, prove bool) error {
	path, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	kept, err := program.Folder("loadstone-acceptance-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(kept) }()
	if prove {
		return proveAll(ctx, path, kept)
	}
	return accept(ctx, path, kept)
}

// proofs is how often something is broken before a check that does not see it is said to be blind.
const proofs = 3

// result is what a line has come to.
type result struct {
	line
	seen string
	err  error
}

// play goes through the checklist once. A line after one that has failed is looked at all the same, so that
// one fault does not hide another; all of them are failures.
func play(ctx context.Context, binary, kept string, broken spoil) ([]result, error) {
	s, err := open(ctx, binary, kept, broken)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var all []result
	for _, l := range checklist {
		seen, err := l.check(ctx, s)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = append(all, result{l, seen, err})
		if broken == intact {
			report(all[len(all)-1])
		}
	}
	return all, nil
}

func report(r result) {
	if r.err != nil {
		fmt.Printf("[FAIL] %s: %v\n", r.name, r.err)
		return
	}
	fmt.Printf("[PASS] %s: %s\n", r.name, r.seen)
}

func accept(ctx context.Context, binary, kept string) error {
	all, err := play(ctx, binary, kept, intact)
	if err != nil {
		return err
	}
	failed := 0
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "LINE\tRESULT\tHELD TO")
	for _, r := range all {
		word := "PASS"
		if r.err != nil {
			word = "FAIL"
			failed++
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", r.name, word, r.against)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("\nStand-ins: Postgres for Snowflake as the control store; sockets of the API for the page.\n%d of %d "+
		"checks passed.\n",
		len(all)-failed, len(all))
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(all))
	}
	return nil
}

// proveAll breaks something for each line and expects that the line fails.
func proveAll(ctx context.Context, binary, kept string) error {
	var blind []string
	for _, l := range checklist {
		found := false
		// What has to be broken within a moment may be broken too late on a busy machine: that proves nothing.
		for try := 1; try <= proofs && !found; try++ {
			all, err := play(ctx, binary, kept, l.spoil)
			if err != nil {
				return fmt.Errorf("with %s: %w", l.spoil, err)
			}
			for _, r := range all {
				switch {
				case r.name != l.name:
				case r.err == nil:
					fmt.Printf("[BLIND %d of %d] %s: %s, and it says %s\n", try, proofs, l.name, l.spoil, r.seen)
				default:
					found = true
					fmt.Printf("[FAILS AS IT SHOULD] %s: %s: %v\n", l.name, l.spoil, r.err)
				}
			}
		}
		if !found {
			blind = append(blind, l.name)
		}
	}
	if len(blind) > 0 {
		return fmt.Errorf("%d checks cannot fail: %s", len(blind), strings.Join(blind, ", "))
	}
	fmt.Printf("\nAll %d checks can fail.\n", len(checklist))
	return nil
}
