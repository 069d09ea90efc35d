package derived

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
)

// TestOnlyWhoseEndHelpsIsEnded: the largest sessions go first, those of definitions last, and a small query never in the
// place of what is large.
func TestOnlyWhoseEndHelpsIsEnded(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	limits := DefaultSettings().Sessions
	for name, c := range map[string]struct {
		// queries and definitions have so many megabytes each.
		queries, definitions []uint64
		ended                string
	}{
		"enough for all":                    {[]uint64{60, 60, 60}, []uint64{160}, ""},
		"queries are enough":                {[]uint64{5, 60, 64, 50}, []uint64{160, 160}, "[64 60]"},
		"definitions alone":                 {[]uint64{5, 5, 5}, []uint64{220, 230}, "[230]"},
		"many small queries spare no table": {[]uint64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, []uint64{200, 190}, "[200]"},
		"all":                               {[]uint64{5, 60}, []uint64{500, 450}, "[500 450]"},
	} {
		var sessions []session
		sizes := map[uint32]uint64{}
		add := func(size uint64, application string) {
			pid := uint32(len(sessions) + 1)
			sessions = append(sessions, session{PID: pid, Leader: pid, Reader: true, Application: application})
			sizes[pid] = size * mb
		}
		for _, size := range c.definitions {
			add(size, "loadstone")
		}
		for i, size := range c.queries {
			add(size, []string{consoleName, "loadstone query abc def"}[i%2])
		}
		var ended []uint64
		for _, s := range excess(sessions, sizes, limits) {
			ended = append(ended, sizes[s.PID]/mb)
		}
		if got := fmt.Sprint(ended); got != c.ended && (c.ended != "" || len(ended) > 0) {
			t.Errorf("%s: %v are ended, want %s", name, got, c.ended)
		}
	}
}

// TestASupervisorThatCannotLookSaysSo, once.
func TestASupervisorThatCannotLookSaysSo(t *testing.T) {
	t.Parallel()
	owner, err := pgxpool.New(t.Context(), "host="+t.TempDir()+" user=keeper dbname=kept")
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	var log bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 3*superviseEvery)
	defer cancel()
	err = (&Database{Settings: DefaultSettings(), owner: owner}).Supervise(
		ctx,
		Supervision{Guard: true, Log: zerolog.New(&log)},
	)
	if n := strings.Count(log.String(), "the sessions of readers could not be read"); n != 1 || err != nil {
		t.Errorf("said %d times: %s, %v", n, log.String(), err)
	}
}
