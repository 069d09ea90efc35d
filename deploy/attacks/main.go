// Command attacks tries what must not be possible: each line is PASS or FAIL with what was seen. It starts two real
// servers on one external Postgres, which lets in over its unix socket and over loopback whoever comes from this
// machine, and acts as users of each role do, over the API and with the program.
//
//	go run ./attacks -program ../bin/loadstone
//	go run ./attacks -program ../bin/loadstone -only 'socket|sink'
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// attack is one line: PASS says that it was withstood.
type attack struct {
	item int    // of the round of safety: 1 is the control store, 7 what comes back from a backup
	name string // what is tried, in a few words
	// try attacks, and returns what was seen, or an error that says what was possible.
	try func(ctx context.Context, s *stage) (seen string, err error)
}

// limit is what one attack may take.
const limit = 5 * time.Minute

func main() {
	binary := flag.String("program", "../bin/loadstone", "the binary that is attacked")
	only := flag.String("only", "", "try only the attacks whose names match this expression")
	flag.Parse()
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer end()
	if err := play(ctx, *binary, *only); err != nil {
		fmt.Fprintln(os.Stderr, "attacks:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, binary, only string) error {
	matches, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	path, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	s, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer s.close()
	tried, failed := 0, 0
	for _, a := range attacks {
		if !matches.MatchString(a.name) {
			continue
		}
		tried++
		seen, err := s.withstand(ctx, a)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed++
			fmt.Printf("[FAIL] %d %s: %v\n", a.item, a.name, err)
			continue
		}
		fmt.Printf("[PASS] %d %s: %s\n", a.item, a.name, seen)
	}
	fmt.Printf("\n%d of %d attacks were withstood.\n", tried-failed, tried)
	if failed > 0 || tried == 0 {
		return fmt.Errorf("%d of %d attacks succeeded", failed, tried)
	}
	return nil
}

// withstand tries one attack. Servers that do not live afterwards have not withstood it.
func (s *stage) withstand(ctx context.Context, a attack) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	seen, err := a.try(ctx, s)
	if err != nil {
		return "", err
	}
	for _, server := range s.servers {
		if err := server.Gone(); err != nil {
			return "", err
		}
	}
	return seen, nil
}
