package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// The spool's figure: so many bytes go through a node, under such a budget.
const (
	spoolBudget = 2 << 30
	spoolBytes  = 10 << 30
)

// spool: records go through a node that may keep a fifth of them, and are fetched by the server.
func spool(ctx context.Context, b *bench) error {
	s, err := b.server(ctx, "server", elsewhere...)
	if err != nil {
		return err
	}
	o := simulated(1, false)
	o.budget, o.node.OpenLoad = spoolBudget, openNamed
	f, _, err := b.joined(ctx, s, o)
	if err != nil {
		return err
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	var most atomic.Int64
	watched := make(chan error, 1)
	go func() { watched <- watch(watching, f.nodes[0].spool, &most) }()
	const fetched = "loadstone_artifact_fetched_bytes_total"
	const seconds = "loadstone_artifact_fetch_seconds_sum"
	var m metrics
	begin := time.Now()
	for runs := 1; m.value(fetched) < spoolBytes; runs++ {
		run, err := s.run(ctx, template("spool", 1, 1_000_000, b.or(b.seconds, 60)))
		if err != nil {
			return err
		}
		d, err := s.settled(ctx, run.RunID)
		if err != nil {
			return err
		}
		if m, err = s.metrics(ctx); err != nil {
			return err
		}
		fmt.Printf("  run %d: %s; %.1f GB fetched, at most %d MB on the node's disk, %.0f s\n", runs, account(d),
			m.value(fetched)/1e9, most.Load()>>20, time.Since(begin).Seconds())
		// It has its figures, and its end is on its way.
		if err := s.await(ctx, "its removal", func() (bool, error) {
			err := s.call(ctx, http.MethodDelete, "/api/runs/"+run.RunID, nil, nil)
			if err != nil && strings.Contains(err.Error(), "409 Conflict") {
				return false, nil
			}
			return err == nil, err
		}); err != nil {
			return err
		}
	}
	end()
	if err := <-watched; err != nil {
		return err
	}
	tell(fmt.Sprintf("%.1f GB of parts through a node with a budget of %d MB: at most on its disk",
		m.value(fetched)/1e9, spoolBudget>>20), fmt.Sprintf("%d MB", most.Load()>>20), "≤ 2048 MB")
	tell("fetching them over TLS, stored and checked: bytes by the time of fetches", fmt.Sprintf("%.0f MB/s",
		m.value(fetched)/1e6/m.value(seconds)), "≥ 200 MB/s")
	return nil
}

// watch looks again and again how much a folder holds, and keeps the most.
func watch(ctx context.Context, dir string, most *atomic.Int64) error {
	for ctx.Err() == nil {
		var sum int64
		err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if errors.Is(err, os.ErrNotExist) {
				return nil // deleted meanwhile
			}
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			if err == nil {
				sum += info.Size()
			}
			return err
		})
		if err != nil {
			return err
		}
		most.Store(max(most.Load(), sum))
		_ = pause(ctx, 20*time.Millisecond)
	}
	return nil
}
