// Command peers compares Loadstone with pgbench and sysbench.
//
// pgbench and Loadstone do the same script on the same tables (-script: lookups
// by primary key, or TPC-B), sysbench its own lookups on a table of the same size, all in one
// private Postgres, over the same socket (-sockets: unix, tcp), in rounds that take turns, so
// that a noisy machine is noisy for all. For each kind of socket and number of connections it prints a Markdown table
// with the medians and ranges over the rounds, and says so when the rounds of a client
// differ too much for the table to mean anything:
//
//	go run ./peers -rounds 5 -seconds 10 -connections 16
//	go run ./peers -rounds 7 -connections 16,64 -sockets unix,tcp -io io_uring,events -peers pgbench
//
// TPS are operations per second. Client CPU is user plus system time of the
// client process divided by its operations. For Loadstone that is its own
// process from the start of the measurement until its last Parquet part is on
// disk, so the recording of every operation is in it; its embedded Postgres,
// like the one under test, is another process and is not. For pgbench and
// sysbench it is the whole life of the process. The ratio is the median of the
// rounds' own ratios.
//
// The column of the whole process has, for Loadstone too, everything from its start to
// its end: plugins made ready, warm-up (its operations count), figures. It is read ten times a second, so up to
// a tenth of a second at the end is missing. What does not grow with the run weighs less in
// a longer one.
//
// Beside it each round says on standard error what else a query took: the server's CPU,
// context switches of the whole machine, and how much of it was idle or taken
// by its hypervisor. A round in which other processes took more than 4 % of
// the machine is run again, three times at most.
//
// pgbench and Loadstone select one integer, sysbench a text of 120 characters.
//
// pgbench's percentiles come from the log of a short round of its own, because
// writing the log slows it down; sysbench's from its histogram, whose
// buckets are about 2 % wide; Loadstone's are exact, from all executions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

type config struct {
	rounds, seconds, warmup, connections, scale int
	loadstone, before, script, io, peers        string
	workers                                     int
	noisy                                       bool
	dir                                         string
	// what is compared one after the other
	sockets, counts, engines string

	host, user, database string
	port                 string // "" for the usual
	dsn                  string // of the database under test, as Loadstone gets it
	server               int    // process id
}

// sample is the result of one round of one client.
type sample struct {
	tps        float64
	p50, p99   float64 // ms
	cpu        float64 // µs a query
	whole      float64 // the same of the process from its start to its end
	operations int64
	rest       rest
	others     float64 // share of the machine
}

// client is one of the peers.
type client struct {
	name    string
	prepare func(ctx context.Context) error
	round   func(ctx context.Context) (sample, error)
}

func main() {
	var c config
	flag.IntVar(&c.rounds, "rounds", 5, "rounds of every client, in turn")
	flag.IntVar(&c.seconds, "seconds", 10, "measured seconds of a round")
	flag.IntVar(&c.warmup, "warmup", 2, "Loadstone's warm-up in seconds; the others have none, the cache is warm")
	flag.StringVar(&c.counts, "connections", "16", "connections of every client; several numbers are measured in turn")
	flag.StringVar(&c.sockets, "sockets", "unix", "unix, tcp, or both")
	flag.IntVar(&c.scale, "scale", 10, "table size in units of 100 000 rows")
	flag.IntVar(&c.workers, "workers", 1, "run workers that share Loadstone's connections")
	flag.BoolVar(&c.noisy, "noisy", false, "count rounds beside which others were at work: only their ratios say anything")
	flag.StringVar(&c.script, "script", "select-only",
		"what all do: select-only, tpcb-like or simple-update (sysbench only the first)")
	flag.StringVar(&c.peers, "peers", "pgbench,sysbench", "whom to compare with")
	flag.StringVar(&c.engines, "io", "auto",
		"Loadstone's I/O engine: auto, io_uring, events or goroutines; of several each is a client")
	flag.StringVar(&c.loadstone, "loadstone", "../bin/loadstone", "the binary; empty leaves Loadstone out")
	flag.StringVar(&c.before, "before", "",
		"a binary of an earlier version: the ratios are then against it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, c config) (err error) {
	for _, binary := range []*string{&c.loadstone, &c.before} {
		if *binary == "" {
			continue
		}
		if *binary, err = filepath.Abs(*binary); err != nil {
			return fmt.Errorf("finding the binary: %w", err)
		}
		if _, err := os.Stat(*binary); err != nil {
			return fmt.Errorf("finding the binary (make build makes it): %w", err)
		}
	}
	if c.dir, err = os.MkdirTemp("", "loadstone-peers-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	// The user that runs Postgres must reach the folder.
	if err := os.Chmod(c.dir, 0o755); err != nil {
		return fmt.Errorf("opening the folder: %w", err)
	}
	// Whoever reaches it over the loopback may do anything: it is this comparison's own.
	hba := filepath.Join(c.dir, "hba.conf")
	if err := os.WriteFile(hba, []byte("local all all trust\nhost all all 127.0.0.1/32 trust\n"), 0o644); err != nil {
		return fmt.Errorf("writing who may connect: %w", err)
	}
	settings := map[string]string{}
	if strings.Contains(c.sockets, "tcp") {
		settings["listen_addresses"], settings["hba_file"] = "127.0.0.1", hba
	}
	pg, err := embedded.Start(ctx, embedded.Options{DataDir: filepath.Join(c.dir, "server"), Settings: settings,
		Log: zerolog.New(os.Stderr).Level(zerolog.WarnLevel)})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		err = errors.Join(err, pg.Stop(closing))
	}()
	c.user, c.database = "playground", "playground"
	c.server = pg.PID()
	fmt.Printf("Machine: %s.\n", measure.Machine())
	for _, socket := range strings.Split(c.sockets, ",") {
		c.host, c.port, c.dsn = pg.SocketDir(), "", pg.DSN("playground")
		if socket == "tcp" {
			at, err := pgconn.ParseConfig(c.dsn)
			if err != nil {
				return fmt.Errorf("reading the address: %w", err)
			}
			c.host, c.port = "127.0.0.1", strconv.Itoa(int(at.Port))
			c.dsn = fmt.Sprintf("host=%s port=%s user=%s dbname=%s sslmode=disable", c.host, c.port, c.user, c.database)
		}
		for _, count := range strings.Split(c.counts, ",") {
			if c.connections, err = strconv.Atoi(count); err != nil {
				return fmt.Errorf("reading -connections: %w", err)
			}
			if err := measureOne(ctx, c, socket, pg.Version()); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureOne compares the clients over one kind of socket, with so many connections.
func measureOne(ctx context.Context, c config, socket, version string) error {
	var clients []client
	peers := []client{pgbench(c)}
	if c.script == "select-only" {
		peers = append(peers, sysbench(c))
	}
	for _, peer := range peers {
		if !slices.Contains(strings.Split(c.peers, ","), peer.name) {
			continue
		}
		if _, err := exec.LookPath(peer.name); err != nil {
			fmt.Fprintf(os.Stderr, "%s is not installed: left out\n", peer.name)
			continue
		}
		clients = append(clients, peer)
	}
	if c.before != "" {
		c.io, _, _ = strings.Cut(c.engines, ",")
		clients = append(clients, loadstone(c, "before", c.before))
	}
	for _, io := range strings.Split(c.engines, ",") {
		name := "loadstone"
		if io != c.engines {
			name = io
		}
		if c.io = io; c.loadstone != "" {
			clients = append(clients, loadstone(c, name, c.loadstone))
		}
	}
	samples, err := compare(ctx, c, clients)
	if err != nil {
		return err
	}
	fmt.Printf("\nPostgres %s, %s/%s, %d CPUs (clients and server share them), %d connections over %s, %d rows, "+
		"%d rounds of %d s.\n\n", version, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), c.connections, socket,
		c.scale*100_000, c.rounds, c.seconds)
	base := "pgbench"
	if c.before != "" {
		base = "before"
	}
	fmt.Print(table(clients, samples, base))
	if note := disturbed(clients, samples); note != "" {
		fmt.Print("\n" + note)
	}
	return nil
}

// compare prepares every client and runs the rounds; the client that begins
// changes from round to round.
func compare(ctx context.Context, c config, clients []client) (map[string][]sample, error) {
	for _, peer := range clients {
		fmt.Fprintf(os.Stderr, "preparing %s\n", peer.name)
		if err := peer.prepare(ctx); err != nil {
			return nil, fmt.Errorf("preparing %s: %w", peer.name, err)
		}
	}
	samples := map[string][]sample{}
	for round := range c.rounds {
		for i := range clients {
			peer := clients[(round+i)%len(clients)]
			s, err := undisturbed(ctx, c, peer)
			if err != nil {
				return nil, fmt.Errorf("running %s: %w", peer.name, err)
			}
			samples[peer.name] = append(samples[peer.name], s)
			fmt.Fprintf(os.Stderr, "round %d  %-9s %8.0f TPS  %6.2f µs/query  %s, others %.1f %%\n", round+1, peer.name, s.tps,
				s.cpu, s.rest, 100*s.others)
		}
	}
	return samples, nil
}

const (
	// maxOthers is the share of the machine that other processes may take in a round that counts.
	maxOthers = 0.04
	tries     = 4
)

// undisturbed runs a round, again when other processes were at work. A machine
// that does not become quiet gives the last one.
func undisturbed(ctx context.Context, c config, peer client) (sample, error) {
	for try := 1; ; try++ {
		before := accountNow(c.server)
		s, err := peer.round(ctx)
		if err != nil {
			return sample{}, err
		}
		time.Sleep(200 * time.Millisecond) // the server's sessions end
		s.others = accountNow(c.server).others(before)
		if s.others <= maxOthers || try == tries || c.noisy {
			return s, nil
		}
		fmt.Fprintf(os.Stderr, "again: other processes took %.0f %% of the machine\n", 100*s.others)
	}
}
